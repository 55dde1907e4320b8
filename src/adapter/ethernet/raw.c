// SPDX-License-Identifier: BSD-2-Clause
/* Raw packet queue pairs: frames that they send, and frames that arrive. */
#include "adapter/ethernet/raw.h"

#include "adapter/ethernet/egress.h"
#include "adapter/ethernet/ethernet.h"
#include "adapter/ethernet/route.h"
#include "adapter/ethernet/rss.h"
#include "adapter/frame/frame.h"
#include "adapter/qp/qp_explain.h"
#include "adapter/queue/cq.h"
#include "adapter/queue/recvq.h"
#include "adapter/ste/tunnel.h"
#include "base/trace.h"
#include "prm/wqe.h"
#include "usermem/usermem.h"
#include "wire/bth.h"
#include "wire/counter_shard.h"
#include "wire/payload.h"

#include <string.h>

/*
 * Code puts a frame together in one piece, on the stack, because segmentation and
 * checksums change it and steering reads it.
 */

/* ---- sending ---- */

/* The checksums of a frame or datagram within a tunnel. */
static void fill_inner_checksums(uint8_t *frame, const struct ste_frame *outer, uint8_t flags)
{
	struct ste_frame inside;
	struct ste_tunnel t;

	if (!ste_tunnel_find(outer, &t) || !ste_tunnel_inside(outer, &t, &inside))
		return;
	if (flags & WQE_ETH_L3_INNER_CSUM)
		frame_fill_l3_checksum(frame, &inside.at);
	if (flags & WQE_ETH_L4_INNER_CSUM)
		frame_fill_l4_checksum(frame, inside.len, &inside.key, &inside.at);
}

static void fill_checksums(uint8_t *frame, uint32_t bytes, uint8_t flags)
{
	struct ste_frame f = {.bytes = frame, .len = bytes};

	if (!frame_parse(frame, min_u32(bytes, FRAME_HEADERS_MAX), bytes, &f.key, &f.at))
		return;
	/* The outer sum is over the inner one, so that comes first. */
	if (flags & (WQE_ETH_L3_INNER_CSUM | WQE_ETH_L4_INNER_CSUM))
		fill_inner_checksums(frame, &f, flags);
	if (flags & WQE_ETH_L3_CSUM)
		frame_fill_l3_checksum(frame, &f.at);
	if (flags & WQE_ETH_L4_CSUM)
		frame_fill_l4_checksum(frame, bytes, &f.key, &f.at);
}

static enum raw_verdict send_frame(struct qp *qp, uint8_t *frame, uint32_t bytes)
{
	const struct ethernet *e = qp->adapter->ethernet;

	if (unlikely(steering_any(&e->rules[FLOW_NIC_TX]) || steering_any(&e->rules[FLOW_FDB])))
		return egress_send(qp, frame, bytes);
	return frame_to_wire(qp->adapter, qp->qpn, frame, bytes);
}

/* Copies payload bytes [off, off + n) of the request behind the header. */
static bool raw_gather(struct qp *qp, const struct send_wqe *w, uint64_t off, uint32_t n,
		       uint8_t *to)
{
	struct run dst = {to, n};
	struct runs src;

	runs_begin(&src);
	return send_wqe_runs(qp->adapter, w, qp->create.pdn, 0, off, n, &src) == MKEY_OK &&
	       (!n || usermem_pull(&dst, 1, src.run, src.n));
}

/* How many bytes of payload the frame that begins at this offset has. */
static uint64_t raw_payload(const struct send_wqe *w, uint64_t off)
{
	if (w->opcode == WQE_OP_TSO)
		return min_u64(w->len - off, w->eth_mss);
	if (w->opcode != WQE_OP_ENHANCED_MPSW)
		return w->len - off;
	for (uint32_t i = 0; i < w->nsegs; i++) {
		if (!off)
			return w->seg[i].len;
		off -= min_u64(off, w->seg[i].len);
	}
	return 0;
}

enum raw_verdict raw_send(struct qp *qp, const struct send_wqe *w, uint64_t *off)
{
	bool tso = w->opcode == WQE_OP_TSO;
	uint8_t frame[FRAME_MAX];

	do {
		uint64_t payload = raw_payload(w, *off);
		uint32_t n = (uint32_t)min_u64(payload, FRAME_MAX + 1);
		uint32_t bytes = w->eth_header_len + n;
		enum raw_verdict v;

		if (bytes < FRAME_MIN || bytes > FRAME_MAX)
			return RAW_BAD_LENGTH;
		memcpy(frame, w->eth_header, w->eth_header_len);
		if (!raw_gather(qp, w, *off, n, frame + w->eth_header_len))
			return RAW_BAD_KEY;
		if (tso &&
		    !frame_segment(frame, bytes, w->eth_header_len, (uint32_t)(*off / w->eth_mss),
				   (uint32_t)*off, *off + n == w->len))
			return RAW_BAD_WQE;
		if (w->eth_flags & WQE_ETH_CSUM)
			fill_checksums(frame, bytes, w->eth_flags);
		v = send_frame(qp, frame, bytes);
		if (v != RAW_SENT)
			return v;
		*off += n;
	} while (*off < w->len);
	return RAW_SENT;
}

/* ---- frames that arrive: from the rules that they match to the queues that get them ---- */

/* A frame on its way to queues, with what their completions say of it. */
struct arrival {
	struct adapter *adapter;
	const struct pkt *pkt;
	const uint8_t *frame;
	uint32_t bytes;
	const void *sender_domain; /* NULL: another process has sent it */
	bool group;		   /* sent to a group address */
	bool taken;
	bool switched; /* a rule of the switch has taken it */
	struct flow_key key;
	struct cqe64 cqe; /* the fields that are the same for all */
};

/* A receive ring, and where its completions go; the caller holds its lock. */
struct target {
	struct adapter *adapter;
	struct qp *qp; /* NULL: a work queue */
	struct recv_ring *ring;
	struct srq *srq; /* in place of the ring; or NULL */
	struct cq *cq;
	uint32_t pdn;
	uint32_t uidx;
	uint32_t number;
	bool strip_vlan;
};

static const char *drop_words(const char *why)
{
	static const char *const words[][2] = {
		{"no-receive", "dropped: no receive is posted"},
		{"state", "dropped: the queue is not ready: a QP takes frames from RTR on, a work "
			  "queue in RDY"},
		{"own-frame",
		 "dropped: frames of a context do not come back to it, unless the QP was made with "
		 "MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC or _MC"},
		{"by-rule", "dropped: a flow rule says so"},
		{"malformed", "dropped: its headers are malformed"},
		{"bad-entry", "dropped: a steering entry is not understood (the log says which)"},
		{"no-object", "dropped: a steering entry leads to a queue that is not there"},
		{"no-table", "dropped: a steering entry leads to a table that is not there"},
		{"no-rule", "dropped: no flow rule takes it (ibv_create_flow)"},
	};

	for (size_t i = 0; i < array_size(words); i++)
		if (!strcmp(words[i][0], why))
			return words[i][1];
	return why;
}

/* number: that of the queue which does not take it. */
static void frame_dropped(const struct adapter *a, const struct pkt *pkt, uint32_t number,
			  const char *why)
{
	trace(packet, dropped, number, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn, why);
	if (explaining())
		qp_explain_frame(a, number, pkt, drop_words(why));
}

/* The offset of a tag that this queue strips. */
#define VLAN_AT 12u

/* Returns 0, or the syndrome of the receive that failed. */
static uint8_t raw_scatter(const struct target *t, const struct arrival *in,
			   const struct recv_wqe *wqe, uint32_t *bytes)
{
	bool strip = t->strip_vlan && in->key.vlan;
	struct run src[2] = {{(void *)(uintptr_t)in->frame, in->bytes}};
	uint32_t nsrc = 1;
	struct runs dst;

	*bytes = in->bytes;
	if (strip) {
		*bytes -= FRAME_VLAN_BYTES;
		src[0].len = VLAN_AT;
		src[1] = (struct run){
			(void *)(uintptr_t)(in->frame + VLAN_AT + FRAME_VLAN_BYTES),
			*bytes - VLAN_AT,
		};
		nsrc = 2;
	}
	if (*bytes > recv_capacity(wqe))
		return CQE_SYN_LOCAL_LENGTH;
	runs_begin(&dst);
	if (recv_runs(t->adapter, wqe, t->pdn, 0, *bytes, &dst) != MKEY_OK)
		return CQE_SYN_LOCAL_PROT;
	usermem_own_ahead(dst.run, dst.n);
	return usermem_pull(dst.run, dst.n, src, nsrc) ? 0 : CQE_SYN_LOCAL_PROT;
}

/* A batch of so many frames shows that frames come as fast as they are taken; the next batch may have
 * twice as many, which is the most that a channel delivers at a time. */
#define FRAMES_MANY 32u

/* Notes a queue that has too few receives for the next batch, or for that half of its ring. */
static void receives_note(const struct target *t)
{
	struct adapter *a = t->adapter;
	uint32_t frames = atomic_load_explicit(&a->frames, memory_order_relaxed) + 1;
	uint16_t enough;

	atomic_store_explicit(&a->frames, frames, memory_order_relaxed);
	if (likely(frames < FRAMES_MANY) || t->srq ||
	    atomic_load_explicit(&a->few_receives, memory_order_relaxed))
		return;
	enough = (uint16_t)min_u32(2 * FRAMES_MANY, t->ring->wqes / 2);
	if (recv_ring_left(t->ring, enough) < enough)
		atomic_store_explicit(&a->few_receives, true, memory_order_relaxed);
}

/* Puts the frame into the next receive.  False: the queue has become unusable. */
static bool raw_place(const struct target *t, const struct arrival *in, const struct cqe64 *about)
{
	struct cqe64 cqe = *about;
	struct recv_wqe wqe;
	uint32_t bytes;
	uint8_t syndrome;

	receives_note(t);
	switch (t->srq ? srq_take(t->srq, &wqe) : recv_ring_take(t->ring, &wqe)) {
	case RECV_OK:
		if (t->srq)
			trace(srq, taken, t->number, srq_number(t->srq), wqe.count);
		break;
	case RECV_EMPTY:
		frame_dropped(t->adapter, in->pkt, t->number, "no-receive");
		shard_count(t->adapter->counters, HW_OUT_OF_BUFFER, 1);
		return true;
	default:
		return false;
	}
	syndrome = raw_scatter(t, in, &wqe, &bytes);
	/* The frame's stores still wait for their lines.  A receiver that looks all the time would
	 * have fetched this line back by now, had we asked for it before the copy. */
	cq_own_ahead(t->cq);
	if (syndrome) {
		if (explaining())
			qp_explain_frame(t->adapter, t->number, in->pkt,
					 syndrome == CQE_SYN_LOCAL_LENGTH
						 ? "the receive is too short and completes with "
						   "IBV_WC_LOC_LEN_ERR"
						 : "the receive's memory cannot be accessed; it "
						   "completes with IBV_WC_LOC_PROT_ERR");
		if (syndrome == CQE_SYN_LOCAL_LENGTH)
			shard_count(t->adapter->counters, HW_RESP_LOCAL_LENGTH_ERROR, 1);
		(void)recv_error_push(t->adapter, t->cq, t->uidx, t->number, wqe.index, syndrome);
		return false;
	}
	if (t->strip_vlan && in->key.vlan) {
		cqe.l4_hdr_type_etc |= CQE_ETH_CVLAN_STRIPPED;
		memcpy(&cqe.vlan_info, in->key.vlan_tag, sizeof(cqe.vlan_info));
	}
	cqe.srqn_uidx = be32_of(t->uidx);
	cqe.byte_cnt = be32_of(bytes);
	cqe.wqe_counter = be16_of(wqe.index);
	if (unlikely(!cq_push(t->cq, &cqe, CQ_WAKE_ARMED))) {
		if (!t->qp)
			return false;
		qp_cannot_complete(t->qp);
	}
	return true;
}

static void to_wq(struct wq *wq, const struct arrival *in, const struct cqe64 *about)
{
	const struct target t = {
		.adapter = wq->adapter,
		.ring = &wq->ring,
		.srq = wq->create.srq,
		.cq = wq->create.cq,
		.pdn = wq->create.pdn,
		.uidx = wq->create.uidx,
		.number = wq->wqn,
		.strip_vlan = wq->strip_vlan,
	};

	spin_lock(&wq->lock);
	if (wq_state(wq) != IB_WQS_RDY)
		frame_dropped(wq->adapter, in->pkt, wq->wqn, "state");
	else if (!raw_place(&t, in, about))
		wq_fail(wq);
	spin_unlock(&wq->lock);
}

static bool raw_receives(const struct qp *qp)
{
	enum ib_qp_state s = qp_state(qp);

	return s == IB_QPS_RTR || s == IB_QPS_RTS || s == IB_QPS_SQD || s == IB_QPS_SQE;
}

static void to_qp(struct qp *qp, const struct arrival *in, const struct cqe64 *about)
{
	const struct target t = {
		.adapter = qp->adapter,
		.qp = qp,
		.ring = &qp->rq,
		.cq = qp->create.recv_cq,
		.pdn = qp->create.pdn,
		.uidx = qp->create.uidx,
		.number = qp->qpn,
		.strip_vlan = qp->create.strip_vlan,
	};

	resp_lock(qp);
	if (!raw_receives(qp))
		frame_dropped(qp->adapter, in->pkt, qp->qpn, "state");
	else if (!raw_place(&t, in, about))
		qp_fail(qp, "receive-refused");
	resp_unlock(qp);
}

/*
 * True if the frame may come to the queue.  Frames of a context come back to it only if its queue
 * asked for that (mlx5dv_create_qp(3), MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC and _MC).
 */
static bool loops_back(const struct qp *qp, const struct arrival *in)
{
	uint32_t allowed = in->group ? QP_LOOPBACK_MC : QP_LOOPBACK_UC;

	if (!in->sender_domain || in->sender_domain != qp->create.domain)
		return true;
	return atomic_load_explicit(&qp->loopback, memory_order_relaxed) & allowed &&
	       !(in->group && qp->create.block_self_mcast);
}

/* Describes the headers and their checksums for the completion. */
static void raw_describe(struct arrival *in, const struct frame_layout *at)
{
	const struct flow_key *key = &in->key;
	uint8_t l3 = key->ip_version == 4   ? CQE_ETH_L3_IPV4
		     : key->ip_version == 6 ? CQE_ETH_L3_IPV6
					    : CQE_ETH_L3_NONE;
	uint8_t l4 = key->l4_proto == IP_PROTO_TCP   ? CQE_ETH_L4_TCP
		     : key->l4_proto == IP_PROTO_UDP ? CQE_ETH_L4_UDP
						     : CQE_ETH_L4_NONE;
	uint8_t ok = CQE_ETH_L2_OK;

	if (key->ip_version == 6 || frame_l3_checksum_ok(in->frame, at))
		ok |= CQE_ETH_L3_OK;
	if (frame_l4_checksum_ok(in->frame, in->bytes, key, at))
		ok |= CQE_ETH_L4_OK;
	in->cqe = (struct cqe64){
		.hds_ip_ext = ok,
		.l4_hdr_type_etc = (uint8_t)(l3 << CQE_ETH_L3_SHIFT | l4 << CQE_ETH_L4_SHIFT),
		.op_own = CQE_OP_RESP_SEND << 4,
	};
}

/* Gives the frame to the queue of a QP, or to one of the queues over which the QP spreads its
 * frames. */
static void arrival_to_qp(struct qp *qp, const struct arrival *in, uint32_t tag)
{
	struct cqe64 cqe = in->cqe;
	const struct rss *rss;

	cqe.sop_drop_qpn = be32_of(tag);
	rss = hazard_take(&qp->rss);
	if (rss) {
		uint32_t hash;
		struct wq *wq = rss_choose(rss, &in->key, &hash, &cqe.rss_hash_type);

		cqe.rss_hash_result = be32_of(hash);
		to_wq(wq, in, &cqe);
	} else {
		to_qp(qp, in, &cqe);
	}
}

/* ---- through tables beyond the root ---- */

struct receive_route {
	struct frame_route route;
	const struct arrival *in;
};

/* Describes the frame as it is now, after changes. */
static void arrival_changed(const struct frame_route *r, const struct arrival *was,
			    struct arrival *in)
{
	*in = *was;
	if (r->frame.bytes == was->frame && r->frame.len == was->bytes &&
	    !memcmp(&r->frame.key, &was->key, sizeof(was->key)))
		return;
	in->frame = r->frame.bytes;
	in->bytes = r->frame.len;
	in->key = r->frame.key;
	raw_describe(in, &r->frame.at);
}

static void route_received(struct frame_route *r, const struct steer_target *to)
{
	const struct arrival *was = container_of(r, struct receive_route, route)->in;
	struct qp *qp = to->kind == STEER_TIR ? number_find(&r->adapter->qps, to->number) : NULL;
	struct arrival in;

	if (!qp || qp->create.type != IB_QPT_RAW_PACKET) {
		frame_dropped(r->adapter, was->pkt, to->number, "no-object");
		return;
	}
	if (!loops_back(qp, was)) {
		frame_dropped(r->adapter, was->pkt, qp->qpn, "own-frame");
		return;
	}
	arrival_changed(r, was, &in);
	in.cqe.imm_inval_pkey = be32_of(r->frame.reg_b);
	arrival_to_qp(qp, &in, r->frame.flow_tag);
}

static void route_receive_dropped(struct frame_route *r, const char *why)
{
	const struct receive_route *rr = container_of(r, struct receive_route, route);

	frame_dropped(r->adapter, rr->in->pkt, rr->in->pkt->dqpn, why);
}

/* Follows a rule that changes the frame or leads to a table.  Whatever becomes of the frame there,
 * other rules get it as it came. */
static void arrival_ruled(const struct arrival *in, const struct flow_action *action,
			  void (*arrive)(struct frame_route *r, const struct steer_target *to))
{
	uint8_t room[FRAME_MAX];
	struct receive_route rr = {
		.route = {.adapter = in->adapter,
			  .frame = {.bytes = in->frame,
				    .len = in->bytes,
				    .room = room,
				    .room_bytes = sizeof(room),
				    .format = in->adapter->attr.steering_format,
				    .flow_tag = action->tag},
			  .arrive = arrive,
			  .dropped = route_receive_dropped},
		.in = in,
	};
	const struct steer_target queue = {.kind = STEER_TIR,
					   .number = action->qp ? action->qp->qpn : 0};
	const struct steer_target host = {.kind = STEER_VPORT};

	ste_frame_parse(&rr.route.frame);
	if (action->modify && !route_modify(&rr.route, action->modify))
		return;
	if (action->table)
		route_to_table(&rr.route, action->table);
	else if (action->qp || action->pass)
		arrive(&rr.route, action->qp ? &queue : &host);
	else
		route_receive_dropped(&rr.route, "by-rule");
}

static void raw_deliver(void *user, const struct flow_action *action)
{
	struct arrival *in = user;
	struct qp *qp = action->qp;

	in->taken = true;
	if (qp && !loops_back(qp, in)) {
		frame_dropped(qp->adapter, in->pkt, qp->qpn, "own-frame");
		return;
	}
	if (unlikely(action->counter))
		flow_counter_add(action->counter, in->bytes);
	if (action->table || action->modify)
		arrival_ruled(in, action, route_received);
	else if (qp)
		arrival_to_qp(qp, in, action->tag);
	else
		frame_dropped(in->adapter, in->pkt, in->pkt->dqpn, "by-rule");
}

static const void *domain_of(struct adapter *a, uint32_t qpn)
{
	const struct qp *qp = number_find(&a->qps, qpn);

	return qp ? qp->create.domain : NULL;
}

/* No rule takes the frame.  All frames come to all ports, so most of these are not meant for this
 * one. */
static void frame_unwanted(const struct adapter *a, const struct arrival *in)
{
	const struct pkt *pkt = in->pkt;

	trace(packet, dropped, pkt->dqpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn, "no-rule");
	if (explaining() &&
	    (in->group || !memcmp(in->key.dst_mac, a->port->mac, sizeof(a->port->mac))))
		qp_explain_frame(a, pkt->dqpn, pkt, drop_words("no-rule"));
}

static void arrival_find(struct arrival *in, enum flow_domain domain,
			 void (*fn)(void *user, const struct flow_action *action))
{
	const struct steering_frame frame = {&in->key, in->frame, in->bytes};

	steering_find(&in->adapter->ethernet->rules[domain], &frame, fn, in);
}

static void arrival_steer(struct arrival *in)
{
	arrival_find(in, FLOW_NIC_RX, raw_deliver);
	if (!in->taken)
		frame_unwanted(in->adapter, in);
}

/* Gives sniffers a copy, also of what their own context has sent. */
static void raw_sniffed(void *user, const struct flow_action *action)
{
	arrival_to_qp(action->qp, user, action->tag);
}

static void arrival_sniff(struct arrival *in)
{
	arrival_find(in, FLOW_SNIFFER, raw_sniffed);
}

/* ---- from the wire through the switch ---- */

static void route_switched(struct frame_route *r, const struct steer_target *to)
{
	const struct arrival *was = container_of(r, struct receive_route, route)->in;
	struct arrival in;

	if (to->kind == STEER_VPORT && to->number == STEER_UPLINK) {
		/* If the wire has no room for the frame, it is lost, as at any port of a switch. */
		(void)frame_to_wire(r->adapter, FRAME_OF_SWITCH, r->frame.bytes, r->frame.len);
		return;
	}
	if (to->kind != STEER_VPORT || to->number) {
		frame_dropped(r->adapter, was->pkt, to->number, "no-object");
		return;
	}
	arrival_changed(r, was, &in);
	arrival_steer(&in);
}

/* Only the first rule counts, because a switch has one way for a frame. */
static void raw_switch(void *user, const struct flow_action *action)
{
	struct arrival *in = user;

	if (in->switched)
		return;
	in->switched = true;
	if (action->counter)
		flow_counter_add(action->counter, in->bytes);
	if (action->table || action->modify)
		arrival_ruled(in, action, route_switched);
	else if (action->pass)
		arrival_steer(in);
	else
		frame_dropped(in->adapter, in->pkt, in->pkt->dqpn, "by-rule");
}

static bool frame_of_own_port(const struct adapter *a, const struct pkt *pkt)
{
	return pkt->path->src_port == wire_port_row(a->wire) && pkt->sqpn != FRAME_OF_TIE;
}

/* True if a switch of this port has passed the frame on.  Each program of the port has met it when
 * it came from the wire. */
static bool frame_was_here(const struct adapter *a, const struct pkt *pkt)
{
	return unlikely(pkt->sqpn == FRAME_OF_SWITCH) && frame_of_own_port(a, pkt);
}

static void arrival_from_wire(struct arrival *in)
{
	struct adapter *a = in->adapter;
	const struct steering *rules = &a->ethernet->rules[FLOW_FDB];

	/* What this port has sent has been through the switch already. */
	if (unlikely(steering_any(rules)) && !frame_of_own_port(a, in->pkt))
		arrival_find(in, FLOW_FDB, raw_switch);
	if (!in->switched)
		arrival_steer(in);
}

/* False: it is no frame, or we cannot read it. */
static bool arrival_open(struct arrival *in, uint8_t copy[FRAME_MAX])
{
	const struct pkt *pkt = in->pkt;
	struct run whole = {copy, in->bytes};

	if (in->bytes > FRAME_MAX || in->bytes < FRAME_MIN)
		return false;
	/* A frame of our own process lies in one piece on the sender's stack.  A peer may go on
	 * writing while we read, so we copy its frame. */
	if (pkt->batched || pkt->nruns != 1) {
		if (payload_is_long_frame(pkt))
			memcpy(copy, pkt->runs[0].addr, in->bytes);
		else if (!payload_pull(&whole, 1, pkt))
			return false;
		in->frame = copy;
	} else {
		in->frame = pkt->runs[0].addr;
		in->sender_domain = domain_of(in->adapter, pkt->sqpn);
	}
	return true;
}

/* False: the headers are cut off; all fields are absent. */
static bool arrival_parse(struct arrival *in)
{
	struct frame_layout at;
	bool whole = frame_parse(in->frame, min_u32(in->bytes, FRAME_HEADERS_MAX), in->bytes,
				 &in->key, &at);

	if (!whole) {
		in->key = (struct flow_key){0};
		at = (struct frame_layout){0};
	}
	in->group = in->frame[0] & 1;
	raw_describe(in, &at);
	return whole;
}

bool raw_receive(struct adapter *a, const struct pkt *pkt)
{
	struct arrival in = {.adapter = a, .pkt = pkt, .bytes = pkt->payload_len};
	const struct steering *rules = a->ethernet->rules;
	bool ruled = steering_any(&rules[FLOW_NIC_RX]) || steering_any(&rules[FLOW_FDB]);
	uint8_t copy[FRAME_MAX];
	bool whole;

	if ((!ruled && !steering_any(&rules[FLOW_SNIFFER])) || frame_was_here(a, pkt) ||
	    !arrival_open(&in, copy))
		return false;
	whole = arrival_parse(&in);
	arrival_sniff(&in);
	if (ruled && whole)
		arrival_from_wire(&in);
	else if (ruled)
		frame_dropped(a, pkt, pkt->dqpn, "malformed");
	return in.taken || in.switched;
}

void raw_receive_from_switch(struct adapter *a, const struct pkt *pkt)
{
	struct arrival in = {.adapter = a, .pkt = pkt, .bytes = pkt->payload_len};
	uint8_t copy[FRAME_MAX];

	if (!arrival_open(&in, copy))
		return;
	if (arrival_parse(&in))
		arrival_steer(&in);
	else
		frame_dropped(a, pkt, pkt->dqpn, "malformed");
}

void raw_sniff(struct adapter *a, const struct pkt *pkt)
{
	struct arrival in = {.adapter = a, .pkt = pkt, .bytes = pkt->payload_len};
	uint8_t copy[FRAME_MAX];

	if (!steering_any(&a->ethernet->rules[FLOW_SNIFFER]) || !arrival_open(&in, copy))
		return;
	(void)arrival_parse(&in);
	arrival_sniff(&in);
}
