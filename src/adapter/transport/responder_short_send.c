// SPDX-License-Identifier: BSD-2-Clause
/* How the responder takes short SENDs; see responder.h. */
#include "adapter/transport/responder.h"

#include "adapter/qp/recv.h"
#include "adapter/transport/completer.h"
#include "adapter/transport/responder_state.h"
#include "base/word.h"
#include "usermem/usermem_touch.h"
#include "wire/counter_shard.h"

/* True if the request is the next message from the peer, whole, and the responder is in no unusual
 * state. */
static bool short_send_expected(const struct qp *qp, const struct short_send *b)
{
	const struct responder *r = &qp->resp;

	return qp->bth == (b->opcode & BTH_TRANSPORT_MASK) && resp_is_established(qp) &&
	       qp_is_migrated(qp) && qp_is_peer(qp, b->src_port, b->sqpn) &&
	       pkey_match(b->pkey, qp->pkey) && b->psn == r->epsn && !r->in_message &&
	       !r->nak_sent && b->payload_len <= qp->mtu;
}

static bool short_send_copy(uint8_t *to, const uint8_t *payload, uint32_t len)
{
	if (len == WORD_BYTES && (uintptr_t)to % WORD_BYTES == 0)
		return usermem_copy_8(to, payload);
	return usermem_copy(to, payload, len);
}

/* Takes a receive, and copies the payload of the request at 'place' in the record to the place that
 * the receive names. */
static bool short_send_place(struct qp *qp, const struct short_send *b, uint32_t place)
{
	const uint8_t *payload = b->payload + (size_t)place * short_send_stride(b);
	struct responder *r = &qp->resp;
	const struct wqe_data *d = r->recv.sge;
	uint8_t *to;

	if (recv_take_next(qp) != RECV_OK)
		return false;
	if (!b->payload_len)
		return true;
	if (!r->recv.nsge || be32_get(d->byte_count) < b->payload_len)
		return false;
	to = mkey_region_at(qp->adapter, be32_get(d->lkey), recv_pd(qp), IB_ACCESS_LOCAL_WRITE,
			    be64_get(d->addr), b->payload_len);
	return likely(to) && short_send_copy(to, payload, b->payload_len);
}

/*
 * Executes requests of one record as long as nothing about them is unusual: the word is closed, and
 * each takes a receive from the queue pair's own ring whose first entry is large enough.  It looks
 * up only once what is the same for all.  Returns how many it has executed; short_send_place finds what
 * is wrong with the next.
 */
static uint32_t short_send_run(struct qp *qp, const struct short_send *b, uint16_t *index)
{
	const uint8_t *payload = b->payload;
	const struct mkey_meaning *m = NULL;
	struct responder *r = &qp->resp;
	struct wqe_data d;
	uint32_t n;

	if (r->srq || r->have_recv || r->published || !b->payload_len)
		return 0;
	for (n = 0; n < b->n && recv_ring_peek(&qp->rq, &d); n++) {
		uint32_t key = be32_get(d.lkey);
		uint8_t *to;

		if (be32_get(d.byte_count) < b->payload_len)
			break;
		if (!m || m->region_key != key)
			m = mkey_region(qp->adapter, key, recv_pd(qp), IB_ACCESS_LOCAL_WRITE);
		to = m ? mkey_region_place(m, be64_get(d.addr), b->payload_len) : NULL;
		if (unlikely(!to || !short_send_copy(to, payload, b->payload_len)))
			break;
		index[n] = recv_ring_taken(&qp->rq);
		payload += short_send_stride(b);
	}
	r->epsn = psn_add(r->epsn, n);
	r->msn = psn_add(r->msn, n);
	return n;
}

/*
 * Counts one message more.  An open word stays open, because a peer that has sent this has nothing
 * under way by itself.  In a batch the word is closed once for all messages, until they are
 * acknowledged.  False: the word is revoked, or the peer has moved it.
 */
static bool short_send_count(struct qp *qp)
{
	struct responder *r = &qp->resp;
	uint32_t epsn = r->epsn, msn = r->msn;

	if (r->ack_owed) {
		resp_close(qp);
		if (r->epsn != epsn)
			return false;
	} else if (r->published) {
		uint64_t word = qp_word_load(&r->shared->word);

		if (!qp_word_is_open(word) || qp_word_epsn(word) != epsn ||
		    !qp_word_commit(&r->shared->word, word, 1, 1))
			return false;
	}
	r->epsn = psn_add(epsn, 1);
	r->msn = psn_add(msn, 1);
	return true;
}

/* Counts so many requests of the record, and the acknowledgement in front of it. */
static void short_sends_counted(struct qp *qp, const struct short_send *b, uint32_t requests)
{
	uint64_t octets = (uint64_t)requests * short_send_octets(b->opcode, b->payload_len);

	if (b->has_ack)
		octets += short_send_octets(BTH_ACK, 0);
	shard_count(qp->adapter->counters, PORT_RCV_DATA, octets / 4);
	shard_count(qp->adapter->counters, PORT_RCV_PACKETS, requests + b->has_ack);
}

/* Executes the requests.  The word is closed once in front of several, and their acknowledgement opens
 * it again.  What the peer has done by itself up to then counts, so these may be old ones. */
static uint32_t short_sends_execute(struct qp *qp, const struct short_send *b, uint16_t *index)
{
	struct responder *r = &qp->resp;
	uint32_t n;

	if (!short_send_expected(qp, b))
		return 0;
	if (b->n > 1 && b->ack_req && qp_is_reliable(qp)) {
		resp_close(qp);
		if (b->psn != r->epsn)
			return 0;
	}
	recv_begin(qp);
	for (n = short_send_run(qp, b, index);
	     n < b->n && short_send_place(qp, b, n) && short_send_count(qp); n++) {
		index[n] = r->recv.index;
		r->have_recv = false;
	}
	recv_end(qp);
	return n;
}

uint32_t responder_receive_short_sends(struct qp *qp, const struct short_send *b)
{
	uint16_t index[SHORT_SEND_MAX];
	uint32_t done, completed;

	resp_lock(qp);
	done = short_sends_execute(qp, b, index);
	if (likely(done)) {
		short_sends_counted(qp, b, done);
		if (b->has_ack)
			completer_receive_ack(qp, b);
		completed = recv_push_short_sends(qp, b, index, done);
		if (b->ack_req && qp_is_reliable(qp))
			resp_owe(qp, psn_add(b->psn, completed - 1));
	}
	resp_unlock(qp);
	return done;
}
