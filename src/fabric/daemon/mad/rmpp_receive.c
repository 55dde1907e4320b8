// SPDX-License-Identifier: BSD-2-Clause
/* Messages of several packets as they arrive: the receiving machine, with time; see rmpp_glue.h. */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/mad/rmpp_glue.h"
#include "fabric/daemon/mad/rmpp_recv.h"

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
