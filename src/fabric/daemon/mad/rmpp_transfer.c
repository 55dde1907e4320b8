// SPDX-License-Identifier: BSD-2-Clause
/* Messages of several packets: RMPP's machines, with packets and time; see rmpp_transfer.h. */
#include "fabric/daemon/mad/rmpp_transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- finds the message that a packet belongs to ---- */

/* Returns the bucket of the table for this TID; the table must be there. */
static struct rmpp_recv **rmpp_recv_bucket(const struct mad_fabric *f, const uint8_t *mad)
{
	return &f->receives[mad_get64(mad, MAD_AT_TID) * 0x9e3779b97f4a7c15ull >> 52];
}

static bool recv_is_of(const struct rmpp_recv *r, const struct mad_agent *a,
		       const struct mad_packet *p)
{
	const uint8_t *had = r->first.mad, *has = p->mad;

	return r->agent == a && r->first.sqpn == p->sqpn && r->first.slid == p->slid &&
	       r->first.grh == p->grh && !memcmp(&r->first.sgid, &p->sgid, sizeof(p->sgid)) &&
	       !memcmp(&had[MAD_AT_TID], &has[MAD_AT_TID], 8) &&
	       !memcmp(&had[MAD_AT_CLASS], &has[MAD_AT_CLASS], 3);
}

/* Returns the message that a packet belongs to, or NULL. */
static struct rmpp_recv *rmpp_recv_find(struct mad_agent *a, const struct mad_packet *p)
{
	struct rmpp_recv *r = a->fabric->receives ? *rmpp_recv_bucket(a->fabric, p->mad) : NULL;

	while (r && !recv_is_of(r, a, p))
		r = r->hash_next;
	return r;
}

/* ---- the direction turns (IBTA 13.6.6.3) ---- */

/*
 * An ACK has come that turns the direction of a request: it says how much of the answer may come at
 * first.
 */
static void rmpp_recv_turned(struct mad_agent *a, const struct mad_packet *p)
{
	struct rmpp_recv *r = rmpp_recv_find(a, p);

	if (r && r->part.complete)
		r->answer_window = mad_get32(p->mad, MAD_AT_RMPP_PAYLOAD);
}

/* Compares what both directions have in common, because the answer's packet is not there yet. */
static bool recv_is_asked(const struct rmpp_recv *r, const struct mad_send *answer)
{
	const uint8_t *had = r->first.mad, *has = answer->mad;

	return r->first.slid == answer->to.lid && !(had[MAD_AT_METHOD] & MAD_RESPONSE) &&
	       !memcmp(&had[MAD_AT_TID], &has[MAD_AT_TID], 8) &&
	       !memcmp(&had[MAD_AT_CLASS], &has[MAD_AT_CLASS], 2);
}

/* Returns the window that such an ACK has given for this answer; else 1. */
static uint32_t rmpp_recv_window(const struct mad_send *answer)
{
	const struct mad_agent *a = answer->agent;
	struct rmpp_recv *r =
		a->fabric->receives ? *rmpp_recv_bucket(a->fabric, answer->mad) : NULL;

	if (!(answer->mad[MAD_AT_METHOD] & MAD_RESPONSE))
		return 1;
	while (r && (r->agent != a || !recv_is_asked(r, answer)))
		r = r->hash_next;
	/* A window of nothing would never open, so it is 1. */
	return r && r->answer_window ? r->answer_window : 1;
}

/* ---- sends of several packets: the sending machine, with packets and timers ---- */

#define BURST 256u /* packets */

struct rmpp_transfer {
	struct rmpp_send machine;
	uint32_t retries;  /* left, since the last acknowledgement */
	uint8_t message[]; /* the one that it sends */
};

int rmpp_transfer_new(struct mad_send *send, const struct mad_send_attr *s)
{
	struct rmpp_transfer *t = malloc(sizeof(*t) + s->length);

	if (!t)
		return -ENOMEM;
	memcpy(t->message, s->mad, s->length);
	/* The headers as they travel: a request's TID differs. */
	memcpy(t->message, send->mad, MAD_HEADER_BYTES);
	if (!rmpp_send_init(&t->machine, t->message, s->length)) {
		free(t);
		return -EINVAL;
	}
	t->machine.window = rmpp_recv_window(send);
	t->machine.response_due = s->timeout_ms != 0;
	t->retries = s->retries;
	send->rmpp = t;
	return 0;
}

void rmpp_transfer_free(struct rmpp_transfer *t)
{
	free(t);
}

static bool transfer_acked(const struct rmpp_transfer *t)
{
	return t->machine.acked == t->machine.message.segments;
}

static void transfer_timer_arm(struct mad_send *send)
{
	struct loop *l = send->agent->fabric->loop;
	uint32_t ms = send->timeout_ms;

	if (!transfer_acked(send->rmpp) && (!ms || ms > RMPP_ACK_MS))
		ms = RMPP_ACK_MS;
	loop_timer_arm(l, &send->timer, loop_now(l) + ms * 1000000ull);
}

/*
 * Emits a burst of what the window allows; the next follows when the last packet of this has left.
 */
static void transfer_emit(struct mad_send *send)
{
	struct mad_fabric *f = send->agent->fabric;
	struct rmpp_send *s = &send->rmpp->machine;

	if (send->packet)
		return;
	for (uint32_t n = 1; n <= BURST; n++) {
		struct mad_packet *p = send_packet(send);

		if (p && rmpp_send_next(s, p->mad)) {
			if (n == BURST || !rmpp_send_allowed(s)) {
				send_emit(send, p);
				return;
			}
			mad_emit(f, p);
			continue;
		}
		if (p)
			mad_packet_put(f, p);
		break;
	}
	transfer_timer_arm(send);
}

void rmpp_transfer_begin(struct mad_send *send)
{
	send->waiting = send->timeout_ms != 0;
	transfer_emit(send);
}

void rmpp_transfer_left(struct mad_send *send)
{
	if (rmpp_send_allowed(&send->rmpp->machine))
		transfer_emit(send);
	transfer_timer_arm(send);
}

bool rmpp_transfer_again(struct mad_send *send)
{
	struct rmpp_transfer *t = send->rmpp;

	if (!t->retries || transfer_acked(t))
		return false;
	t->retries--;
	rmpp_send_rewind(&t->machine);
	transfer_emit(send);
	return true;
}

/* Sends these bytes back to where a packet came from. */
static void rmpp_reply(struct mad_fabric *f, const struct mad_packet *p,
		       const uint8_t out[MAD_BYTES])
{
	struct mad_packet *reply = mad_packet_get(f);

	if (!reply) {
		f->dropped++;
		return;
	}
	*reply = *p;
	reply->send = NULL;
	memcpy(reply->mad, out, MAD_BYTES);
	mad_turn(f, reply);
	mad_emit(f, reply);
}

/* Tells whether a control packet is for the send: it goes against the direction of the data. */
static bool control_is_to(const struct mad_send *send, const struct mad_packet *p)
{
	if (!send->rmpp || send->mad[MAD_AT_CLASS] != p->mad[MAD_AT_CLASS] ||
	    send->mad[MAD_AT_CLASS_VERSION] != p->mad[MAD_AT_CLASS_VERSION] ||
	    (send->mad[MAD_AT_METHOD] ^ p->mad[MAD_AT_METHOD]) != MAD_RESPONSE ||
	    send->to.grh != p->grh)
		return false;
	return p->grh ? !memcmp(&send->to.gid, &p->sgid, sizeof(p->sgid)) : send->to.lid == p->slid;
}

static void transfer_control(struct mad_send *send, const struct mad_packet *p)
{
	struct rmpp_transfer *t = send->rmpp;
	uint32_t acked = t->machine.acked;
	bool reply;
	uint8_t out[MAD_BYTES], status = 0;
	enum rmpp_outcome outcome = rmpp_send_control(&t->machine, p->mad, out, &reply, &status);

	if (reply)
		rmpp_reply(send->agent->fabric, p, out);
	if (outcome != RMPP_GO_ON) {
		send_detach(send);
		send_report(send, outcome == RMPP_DONE ? 0 : -EPROTO);
		return;
	}
	if (t->machine.acked == acked)
		return;
	t->retries = send->retries;
	if (!transfer_acked(t))
		transfer_emit(send);
	else
		transfer_timer_arm(send); /* from now on for the answer */
}

/* An ACK, STOP or ABORT, or a packet of no such type, has come for one of the agent's sends. */
static void rmpp_transfer_control(struct mad_agent *a, const struct mad_packet *p)
{
	struct mad_send *send = send_first(a->fabric, mad_get64(p->mad, MAD_AT_TID));
	uint8_t out[MAD_BYTES], why;

	while (send && (send->agent != a || !control_is_to(send, p)))
		send = send_next(send);
	if (send) {
		transfer_control(send, p);
		return;
	}
	/* A packet that no receiver would send is refused, whatever send it is for. */
	why = rmpp_control_check(p->mad);
	if (why) {
		rmpp_abort(p->mad, why, out);
		rmpp_reply(a->fabric, p, out);
	} else if (p->mad[MAD_AT_RMPP_TYPE] == MAD_RMPP_ACK &&
		   !mad_get32(p->mad, MAD_AT_RMPP_SEGMENT)) {
		rmpp_recv_turned(a, p);
	}
}

/* ---- messages of several packets as they arrive: the receiving machine, with time ---- */

#define MOST_PARTS 1024u	  /* unfinished messages of one agent */
#define MOST_BYTES (256ull << 20) /* bytes of all unfinished messages */

static void recv_end(struct rmpp_recv *r)
{
	struct mad_agent *a = r->agent;

	*r->prev = r->next;
	if (r->next)
		r->next->prev = r->prev;
	*r->hash_prev = r->hash_next;
	if (r->hash_next)
		r->hash_next->hash_prev = r->hash_prev;
	a->nrecvs -= !r->part.complete;
	a->fabric->receive_bytes -= r->part.room;
	loop_timer_cancel(a->fabric->loop, &r->timer);
	rmpp_part_free(&r->part);
	free(r);
}

void rmpp_receives_end(struct mad_agent *a)
{
	for (struct rmpp_recv *r = a->recvs, *next; r; r = next) {
		next = r->next;
		recv_end(r);
	}
}

static void recv_abort(struct mad_fabric *f, const struct mad_packet *p, uint8_t status)
{
	uint8_t out[MAD_BYTES];

	rmpp_abort(p->mad, status, out);
	rmpp_reply(f, p, out);
}

/*
 * The rest has not come in time; or the message ended so long ago that none of its packets comes
 * any more.
 */
static void recv_timer_fires(struct loop *l, struct loop_timer *t)
{
	struct rmpp_recv *r = container_of(t, struct rmpp_recv, timer);

	(void)l;
	if (!r->part.complete)
		recv_abort(r->agent->fabric, &r->first, RMPP_TOTAL_TIME);
	recv_end(r);
}

static void recv_timer_arm(struct rmpp_recv *r, uint32_t ms)
{
	struct loop *l = r->agent->fabric->loop;

	loop_timer_arm(l, &r->timer, loop_now(l) + ms * 1000000ull);
}

static struct rmpp_recv *recv_new(struct mad_agent *a, const struct mad_packet *p)
{
	struct mad_fabric *f = a->fabric;
	struct rmpp_recv *r, **head;

	if (a->nrecvs >= MOST_PARTS || f->receive_bytes >= MOST_BYTES)
		return NULL;
	if (!f->receives)
		f->receives = calloc(RMPP_BUCKETS, sizeof(struct rmpp_recv *));
	r = f->receives ? calloc(1, sizeof(*r)) : NULL;
	if (!r)
		return NULL;
	r->agent = a;
	r->first = *p;
	r->answer_window = 1;
	r->timer.fire = recv_timer_fires;
	r->prev = &a->recvs;
	r->next = a->recvs;
	if (r->next)
		r->next->prev = &r->next;
	a->recvs = r;
	head = rmpp_recv_bucket(f, p->mad);
	r->hash_prev = head;
	r->hash_next = *head;
	if (r->hash_next)
		r->hash_next->hash_prev = &r->hash_next;
	*head = r;
	a->nrecvs++;
	recv_timer_arm(r, RMPP_TOTAL_MS);
	return r;
}

/* Gives the message to the agent.  An answer that nobody waits for any more goes to nobody. */
static void recv_deliver(struct rmpp_recv *r, const struct mad_packet *p)
{
	struct mad_agent *a = r->agent;
	bool response = mad_is_response(p->mad);
	struct mad_send *send = response ? send_find(a, p) : NULL;
	struct mad_message m = {.from = agent_address_of(a->fabric, p),
				.length = r->part.length,
				.data = r->part.message,
				.owned = r->part.message};

	a->fabric->receive_bytes -= r->part.room;
	r->part.message = NULL;
	r->part.room = 0;
	a->nrecvs--;
	recv_timer_arm(r, RMPP_LINGER_MS);
	if (send)
		send_detach(send);
	if (send || !response)
		a->ops->receive(a, &m);
	if (send)
		send_report(send, 0);
	free(m.owned);
}

/*
 * Returns the message that a packet belongs to, a new one if it is the first packet.  NULL: there
 * is none; *refused: the sender has been told.
 */
static struct rmpp_recv *recv_of(struct mad_agent *a, const struct mad_packet *p, bool *refused)
{
	struct rmpp_recv *r = rmpp_recv_find(a, p);

	*refused = false;
	if (r || mad_get32(p->mad, MAD_AT_RMPP_SEGMENT) != 1 ||
	    !(p->mad[MAD_AT_RMPP_FLAGS] & MAD_RMPP_FIRST) || p->mad[MAD_AT_RMPP_STATUS])
		return r;
	r = recv_new(a, p);
	*refused = !r;
	if (!r)
		recv_abort(a->fabric, p, RMPP_RESOURCES);
	return r;
}

static void recv_data(struct mad_agent *a, const struct mad_packet *p)
{
	struct rmpp_part none = {0}, *part = &none;
	uint8_t out[MAD_BYTES], status = 0;
	enum rmpp_outcome outcome;
	bool reply = false, refused;
	struct rmpp_recv *r = recv_of(a, p, &refused);
	size_t room;

	if (refused)
		return;
	if (r)
		part = &r->part;
	room = part->room;
	outcome = rmpp_part_data(part, p->mad, out, &reply, &status);
	a->fabric->receive_bytes += part->room - room;
	if (reply)
		rmpp_reply(a->fabric, p, out);
	if (r && outcome == RMPP_DONE)
		recv_deliver(r, p);
	else if (r && outcome == RMPP_ENDED)
		recv_end(r);
}

void rmpp_receive(struct mad_agent *a, const struct mad_packet *p)
{
	if (p->mad[MAD_AT_RMPP_VERSION] == 1 && p->mad[MAD_AT_RMPP_TYPE] == MAD_RMPP_DATA)
		recv_data(a, p);
	else
		rmpp_transfer_control(a, p);
}
