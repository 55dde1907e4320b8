// SPDX-License-Identifier: BSD-2-Clause
/* See capture.h. */
#include "wire/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hazard.h"
#include "base/record_ring.h"
#include "base/trace.h"
#include "wire/payload.h"
#include "wire/process.h"

struct capture {
	struct tap tap;
	struct trace_listener listener;
	struct capture *next; /* under the control lock */
	struct wire_process *process;
	struct capture_attr attr;
	struct record_ring ring;
};

/* ---- which packets ---- */

static bool gid_is(const union ib_gid *a, const union ib_gid *b)
{
	return a->half[0] == b->half[0] && a->half[1] == b->half[1];
}

static bool opcode_is(const struct pkt *p, uint64_t opcodes)
{
	return opcodes >> pkt_op(p) & 1 && opcodes >> (32 + (p->opcode >> 5)) & 1;
}

static bool term_matches(const struct capture_term *t, const struct pkt *p)
{
	const struct path *path = p->path;

	switch ((enum capture_field)t->field) {
	case CAPTURE_QPN:
		return p->sqpn == t->value || p->dqpn == t->value;
	case CAPTURE_SQPN:
		return p->sqpn == t->value;
	case CAPTURE_DQPN:
		return p->dqpn == t->value;
	case CAPTURE_LID:
		return path->slid == t->value || path->dlid == t->value;
	case CAPTURE_SLID:
		return path->slid == t->value;
	case CAPTURE_DLID:
		return path->dlid == t->value;
	case CAPTURE_GID:
		return path->grh && (gid_is(&path->sgid, &t->gid) || gid_is(&path->dgid, &t->gid));
	case CAPTURE_SGID:
		return path->grh && gid_is(&path->sgid, &t->gid);
	case CAPTURE_DGID:
		return path->grh && gid_is(&path->dgid, &t->gid);
	case CAPTURE_PKEY:
		return p->pkey == t->value;
	case CAPTURE_OPCODES:
		return opcode_is(p, t->value);
	case CAPTURE_FIELDS:
		break;
	}
	return false;
}

bool capture_matches(const struct capture_want *want, const struct pkt *p)
{
	for (uint32_t i = 0; i < want->nterms && i < CAPTURE_TERMS; i++)
		if (term_matches(&want->term[i], p) == !!want->term[i].differs)
			return false;
	return true;
}

/* ---- the tap ---- */

/* True for datagrams from and to queue pair 1 of a port of the fabric: the daemon shows those, where
 * it moves them (fabric/daemon/mad/forward.c). */
static bool packet_is_gsi(struct wire_process *h, enum tap_point at, uint32_t row,
			  const struct pkt *p)
{
	struct wire *w;

	if (at == TAP_DELIVERED)
		return p->sqpn == IB_GSI_QPN && p->path->src_port < h->attr.subnet->nports;
	if (p->dqpn != IB_GSI_QPN)
		return false;
	w = wire_process_wire(h, row);
	return w && !route_leads_out(w, p->path);
}

/* Bytes of the payload that the packet has here. */
static uint32_t payload_bytes(const struct pkt *p)
{
	return (pkt_is_frame(p) || pkt_props(p)->payload) && !p->placed ? p->payload_len : 0;
}

/* Copies the beginning of the payload. */
static bool payload_begin_pull(const struct run *to, const struct pkt *p)
{
	struct run from[RUNS_MAX];
	size_t left = to->len;
	uint32_t n = 0;

	if (to->len == p->payload_len || p->source)
		return payload_pull(to, 1, p);
	for (; left && n < p->nruns && n < RUNS_MAX; n++) {
		from[n] = p->runs[n];
		from[n].len = from[n].len < left ? from[n].len : left;
		left -= from[n].len;
	}
	return !left && payload_pull_runs(to, 1, p, from, n);
}

/* Fills the record in the ring.  The reader may write there, too, so nothing is read back. */
static void capture_copy(uint8_t *record, const struct capture_head *head, const struct pkt *p)
{
	struct capture_head written = *head;
	uint8_t *at = record + sizeof(written);
	const struct run to = {at + head->header_bytes, head->bytes};
	struct pkt copied = *p;

	copied.payload_len = head->bytes;
	copied.placed = false;
	if (head->kind == CAPTURE_PACKET)
		(void)record_pack(at, &copied, false);
	/* The memory of the payload may have gone. */
	if (head->bytes && !payload_begin_pull(&to, p))
		written.bytes = 0;
	memcpy(record, &written, sizeof(written));
}

static void capture_packet(struct tap *t, enum tap_point at, uint64_t ns, uint32_t row,
			   const struct pkt *p)
{
	struct capture *c = container_of(t, struct capture, tap);
	uint32_t port = c->process->attr.subnet->ports[row].host_index, bytes, room;
	bool frame = pkt_is_frame(p);
	struct capture_head head;
	uint32_t header;
	void *record;

	if (!(c->attr.ports >> port & 1) || !capture_matches(&c->attr.want, p) ||
	    (!frame && packet_is_gsi(c->process, at, row, p)))
		return;
	header = frame ? 0 : record_header_bytes(p);
	bytes = min_u32(payload_bytes(p), c->attr.want.snaplen);
	if (!frame)
		bytes = min_u32(bytes, CAPTURE_PAYLOAD_MAX);
	room = (uint32_t)sizeof(head) + header + bytes;
	record = record_ring_reserve(&c->ring, room, port);
	if (!record)
		return;
	/* The reader waits for what is reserved, so no packet comes behind later ones. */
	head = (struct capture_head){
		.ns = ns ? ns : clock_realtime_ns(),
		.row = row,
		.kind = frame ? CAPTURE_FRAME : CAPTURE_PACKET,
		.received = at == TAP_DELIVERED,
		.header_bytes = header,
		.bytes = bytes,
		.whole = payload_bytes(p),
	};
	capture_copy(record, &head, p);
	record_ring_commit(&c->ring, record, room);
}

/* ---- trace points ---- */

static void capture_event(struct trace_listener *l, const char *text, size_t n)
{
	struct capture *c = container_of(l, struct capture, listener);
	uint32_t room = (uint32_t)(sizeof(struct capture_head) + n);
	uint8_t *record = record_ring_reserve(&c->ring, room, 0);
	struct capture_head head;

	if (!record)
		return;
	/* The reader waits for what is reserved, so no event comes behind later ones. */
	head = (struct capture_head){
		.ns = clock_realtime_ns(),
		.row = SUBNET_NONE,
		.kind = CAPTURE_TRACE,
		.bytes = (uint32_t)n,
		.whole = (uint64_t)syscall(SYS_gettid),
	};
	memcpy(record, &head, sizeof(head));
	memcpy(record + sizeof(head), text, n);
	record_ring_commit(&c->ring, record, room);
}

#define POINTS_WQE	"post.*,srq.*,wqe.*,cqe.*,cq.polled,qp.state"
#define POINTS_DOORBELL "doorbell.*"
#define POINTS_DPA	"dpa.*"

static void capture_listen(struct capture *c)
{
	static const struct {
		uint32_t event;
		const char *points;
	} kinds[] = {{CAPTURE_EVENT_WQE, POINTS_WQE},
		     {CAPTURE_EVENT_DOORBELL, POINTS_DOORBELL},
		     {CAPTURE_EVENT_DPA, POINTS_DPA}};
	const uint32_t events = c->attr.want.events;
	const bool others = events & CAPTURE_EVENT_DECISION;
	char list[128];
	size_t n = 0;

	/* The points that are wanted, or if others are, those that are not: bypass.left makes
	 * requests take another way. */
	list[0] = '\0';
	for (size_t i = 0; i < array_size(kinds); i++)
		if (!(events & kinds[i].event) == others)
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s,", kinds[i].points);
	if (others)
		snprintf(list + n, sizeof(list) - n, "bypass.left");
	c->listener.event = capture_event;
	trace_listen(&c->listener, others ? "*" : list, others ? list : "");
}

/* ---- beginning and end ---- */

int wire_capture_begin(struct wire_process *h, const struct capture_attr *attr, int fd)
{
	struct capture *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->attr = *attr;
	c->process = h;
	c->tap.packet = capture_packet;
	ret = record_ring_map(&c->ring, fd, attr->want.ring_bytes, SLOT_PORTS);
	if (ret) {
		free(c);
		return ret;
	}
	if (attr->want.events & CAPTURE_EVENT_PACKET)
		tap_insert(h, &c->tap);
	if (attr->want.events & CAPTURE_EVENTS_TRACED)
		capture_listen(c);
	pthread_mutex_lock(&h->control);
	c->next = h->captures;
	h->captures = c;
	pthread_mutex_unlock(&h->control);
	atomic_store_explicit(&c->ring.head->joined, 1, memory_order_release);
	return 0;
}

static void capture_free(struct capture *c)
{
	record_ring_unmap(&c->ring);
	free(c);
}

/* From now on the capture sees nothing new; wire_captures_let_go frees it. */
static void capture_finish(struct capture *c)
{
	struct wire_process *h = c->process;

	tap_remove(h, &c->tap);
	trace_unlisten(&c->listener);
	c->next = atomic_load(&h->captures_ended);
	while (!atomic_compare_exchange_weak(&h->captures_ended, &c->next, c))
		;
}

bool wire_captures_let_go(struct wire_process *h)
{
	struct capture *c, *next;

	if (likely(!atomic_load_explicit(&h->captures_ended, memory_order_relaxed)))
		return false;
	c = atomic_exchange(&h->captures_ended, NULL);
	hazard_wait_all();
	trace_unlisten_wait();
	for (; c; c = next) {
		next = c->next;
		capture_free(c);
	}
	return true;
}

void wire_capture_end(struct wire_process *h, uint32_t id)
{
	struct capture *c, **at;

	pthread_mutex_lock(&h->control);
	for (at = &h->captures; *at && (*at)->attr.id != id;)
		at = &(*at)->next;
	c = *at;
	if (c)
		*at = c->next;
	pthread_mutex_unlock(&h->control);
	if (c)
		capture_finish(c);
}

void wire_captures_end(struct wire_process *h)
{
	struct capture *c;

	do {
		pthread_mutex_lock(&h->control);
		c = h->captures;
		if (c)
			h->captures = c->next;
		pthread_mutex_unlock(&h->control);
		if (c)
			capture_finish(c);
	} while (c);
	(void)wire_captures_let_go(h);
}

/* ---- for the reader ---- */

static void mad_to_packet(const struct capture_mad *m, struct record_pkt *out)
{
	out->path = (struct path){
		.slid = m->slid,
		.dlid = m->dlid,
		.sl = m->sl & 15,
		.grh = m->grh,
		.roce_v1 = m->roce_v1,
		.hop_limit = m->hop_limit,
		.traffic_class = m->traffic_class,
		.flow_label = m->flow_label,
		.sgid = m->sgid,
		.dgid = m->dgid,
		.src_port = SUBNET_NONE,
		.dst_port = SUBNET_NONE,
	};
	out->pkt = (struct pkt){
		.opcode = BTH_UD | BTH_SEND_ONLY,
		.pkey = m->pkey,
		.dqpn = m->dqpn,
		.sqpn = m->sqpn,
		.qkey = m->qkey,
		.npkts = 1,
		.path = &out->path,
		.payload_len = MAD_BYTES,
		.runs = out->runs,
	};
}

/* Lets the packet have its whole payload, with zeros where it was not copied. */
static void payload_complete(struct captured *c, const uint8_t *copied)
{
	static const uint8_t zeros[CAPTURE_PAYLOAD_MAX];
	struct pkt *p = &c->packet.pkt;

	/* The payload is only read, although a run has no const. */
	c->runs[0] = (struct run){(void *)(uintptr_t)copied, c->bytes};
	c->runs[1] = (struct run){(void *)(uintptr_t)zeros, p->payload_len - c->bytes};
	p->runs = c->runs;
	p->nruns = 2;
	p->foreign = NULL;
	p->withdrawn = NULL;
}

static bool packet_unpack(const struct capture_head *head, uint32_t bytes, const uint8_t *at,
			  struct captured *out)
{
	struct pkt *p = &out->packet.pkt;

	if (record_unpack(at, bytes, NULL, &out->packet) || p->payload_len < head->bytes ||
	    (head->whole && !pkt_props(p)->payload))
		return false;
	p->payload_len =
		(uint32_t)(head->whole < CAPTURE_PAYLOAD_MAX ? head->whole : CAPTURE_PAYLOAD_MAX);
	return head->bytes <= p->payload_len;
}

bool capture_unpack(const struct capture_head *head, uint32_t bytes, struct captured *out)
{
	const uint8_t *at = (const uint8_t *)(head + 1);

	if (bytes < sizeof(*head) || head->header_bytes > bytes - sizeof(*head) ||
	    head->bytes > bytes - sizeof(*head) - head->header_bytes)
		return false;
	out->bytes = head->bytes;
	switch ((enum capture_kind)head->kind) {
	case CAPTURE_FRAME:
		out->frame = at;
		return true;
	case CAPTURE_MAD:
		if (head->header_bytes || head->bytes != sizeof(struct capture_mad))
			return false;
		mad_to_packet((const struct capture_mad *)at, &out->packet);
		at += offsetof(struct capture_mad, mad);
		out->bytes = MAD_BYTES;
		break;
	case CAPTURE_PACKET:
		if (!packet_unpack(head, bytes - (uint32_t)sizeof(*head), at, out))
			return false;
		at += head->header_bytes;
		break;
	default:
		return false;
	}
	payload_complete(out, at);
	return true;
}
