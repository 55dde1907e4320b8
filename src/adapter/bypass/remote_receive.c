// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process that dies in here leaves the locks of the receiver's QP and CQ behind.  The next holder
 * sees from the CQE how far it had come: the CQE is published before the CQ's index moves on
 * (settle in queue/cq.c), and a receive is claimed before its CQE is published and counted as taken
 * after that (recv_settle_claim).
 *
 * The peer's process may change its fields at any time, so each is loaded once, checked, and used
 * from the copy.
 */
#include "adapter/bypass/remote_receive.h"

#include "adapter/qp/recv.h"
#include "adapter/qp/send_wqe.h"
#include "usermem/usermem.h"

#define MAX_RING 65536u

/* The part of a receive that the message needs. */
struct receive_slot {
	uint32_t head;
	uint16_t index;
	struct runs runs;
};

static uint32_t remote_receive_load(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static uint64_t remote_receive_load64(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* Release: the next holder of the locks sees the steps in their order. */
static void remote_receive_store(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static uint8_t *arena_at(const struct remote *f, uint64_t offset, uint64_t bytes)
{
	return range_inside(offset, bytes, EXPOSE_ARENA_BYTES) ? f->arena + offset : NULL;
}

/* Is the receive at head posted? */
static bool remote_receive_posted(const struct remote *f, struct qp_block *b, uint32_t head,
				  uint32_t wqes)
{
	const uint8_t *dbrec;
	uint32_t producer;
	uint16_t ready;

	/* The producer index that we noted serves as many messages as it counted receives. */
	ready = (uint16_t)(remote_receive_load(&b->rq_seen) - head);
	if (likely(ready && ready <= wqes))
		return true;
	dbrec = arena_at(f, remote_receive_load64(&b->rq_dbrec), sizeof(be32));
	if (!dbrec || !usermem_load_be32(dbrec, &producer))
		return false;
	b->rq_seen = producer;
	ready = (uint16_t)(producer - head);
	return ready && ready <= wqes;
}

/* Appends one entry of the scatter list. */
static bool receive_slot_add(const struct remote *f, const struct wqe_data *d, uint32_t pdn,
			     uint64_t len, struct runs *to)
{
	uint64_t addr = be64_get(d->addr);
	struct key_block k;

	if (to->n == RUNS_MAX || !remote_key(f, be32_get(d->lkey), &k) || k.pdn != pdn ||
	    !(k.access & IB_ACCESS_LOCAL_WRITE) || !range_inside(addr - k.iova, len, k.length))
		return false;
	to->run[to->n++] = (struct run){f->arena + k.offset + (addr - k.iova), len};
	return true;
}

static bool receive_slot_find(const struct remote *f, struct qp_block *b, uint64_t len,
			      struct receive_slot *l)
{
	uint32_t wqes = remote_receive_load(&b->rq_wqes),
		 wqe_bytes = remote_receive_load(&b->rq_wqe_bytes),
		 pdn = remote_receive_load(&b->pdn);
	const uint8_t *at;

	l->head = remote_receive_load(&b->rq_head);
	if (!wqes || wqes > MAX_RING || wqes & (wqes - 1) ||
	    !remote_receive_posted(f, b, l->head, wqes))
		return false;
	l->index = (uint16_t)l->head;
	at = arena_at(f, remote_receive_load64(&b->rq_offset), (uint64_t)wqes * wqe_bytes);
	if (!at)
		return false;
	at += (uint64_t)(l->head & (wqes - 1)) * wqe_bytes;
	runs_begin(&l->runs);
	for (uint32_t off = 0; len && wqe_bytes - off >= sizeof(struct wqe_data);
	     off += (uint32_t)sizeof(struct wqe_data)) {
		struct wqe_data d;
		uint64_t part;

		if (!usermem_copy(&d, at + off, sizeof(d)))
			return false;
		if (be32_get(d.lkey) == WQE_DATA_LKEY_END && !be32_get(d.byte_count))
			return false;
		part = min_u64(be32_get(d.byte_count), len);
		if (part && !receive_slot_add(f, &d, pdn, part, &l->runs))
			return false;
		len -= part;
	}
	return !len;
}

/* The address of the next CQE; NULL: the ring is full, or not exposed. */
static uint8_t *next_cqe(const struct remote *f, struct cq_block *c, uint32_t pi, uint8_t *owner)
{
	uint32_t entries = remote_receive_load(&c->entries),
		 cqe_bytes = remote_receive_load(&c->cqe_bytes), ci;
	uint8_t *ring = arena_at(f, remote_receive_load64(&c->ring), (uint64_t)entries * cqe_bytes);
	const uint8_t *dbrec;

	if (!entries || entries & (entries - 1) || entries > MAX_RING || !ring ||
	    cqe_bytes < CQE_BYTES || cqe_bytes > 2 * CQE_BYTES)
		return NULL;
	if (unlikely(((pi - remote_receive_load(&c->ci)) & 0xffffff) >= entries)) {
		dbrec = arena_at(f, remote_receive_load64(&c->dbrec), sizeof(be32));
		if (!dbrec ||
		    !usermem_load_be32((const be32 *)(const void *)dbrec + DBREC_CQ_CI, &ci) ||
		    ((pi - ci) & 0xffffff) >= entries)
			return NULL;
		c->ci = ci;
	}
	*owner = !!(pi & entries);
	return ring + (uint64_t)(pi & (entries - 1)) * cqe_bytes + (cqe_bytes - CQE_BYTES);
}

static bool remote_receive_place(const struct qp *qp, const struct send_wqe *w,
				 const struct receive_slot *l)
{
	struct runs src;

	runs_begin(&src);
	return send_wqe_runs(qp->adapter, w, qp->create.pdn, 0, 0, w->len, &src) == MKEY_OK &&
	       usermem_pull(l->runs.run, l->runs.n, src.run, src.n, 0);
}

/* With the CQ's lock held. */
static bool remote_receive_complete(const struct qp *qp, const struct remote *f, struct qp_block *b,
				    struct cq_block *c, const struct send_wqe *w,
				    const struct receive_slot *l)
{
	bool imm = wqe_props(w->opcode)->imm;
	uint32_t pi = remote_receive_load(&c->pi);
	struct cqe64 cqe = recv_cqe(&(struct recv_done){
		.op = imm ? CQE_OP_RESP_SEND_IMM : CQE_OP_RESP_SEND,
		.path = &qp->path,
		.service_or_header = recv_service_or_header(qp, &qp->path),
		.peer_qpn = qp->qpn,
		.qpn = qp->attr.dest_qpn,
		.uidx = remote_receive_load(&b->uidx),
		.imm = imm ? w->imm : 0,
		.bytes = (uint32_t)w->len,
		.index = l->index,
	});
	uint8_t owner, *at = next_cqe(f, c, pi, &owner);

	if (!at || !remote_receive_place(qp, w, l))
		return false;
	cqe.word[CQE_WORD_LAST] |= cqe_last_word(0, 0, owner);
	b->rq_claim_pi = pi;
	remote_receive_store(&b->rq_claim, 1);
	if (!usermem_publish(at, &cqe, sizeof(cqe))) {
		remote_receive_store(&b->rq_claim, 0);
		return false;
	}
	remote_receive_store(&c->pi, pi + 1);
	return true;
}

bool remote_receive(const struct qp *qp, const struct remote *f, struct qp_block *b,
		    const struct send_wqe *w)
{
	struct cq_block *c = remote_cq(f, remote_receive_load(&b->cq));
	struct receive_slot l;
	bool done;

	if (!c || !receive_slot_find(f, b, w->len, &l) ||
	    !shared_lock_try(&c->lock, qp->adapter->slot))
		return false;
	done = remote_receive_complete(qp, f, b, c, w, &l);
	shared_unlock(&c->lock);
	if (done) {
		remote_receive_store(&b->rq_head, l.head + 1);
		remote_receive_store(&b->rq_claim, 0);
	}
	return done;
}
