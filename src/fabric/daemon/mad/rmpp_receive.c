// SPDX-License-Identifier: BSD-2-Clause
/* Messages of several packets as they come: the receiving machine, with time; see rmpp_glue.h. */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/mad/rmpp_glue.h"

#define BUCKETS	   4096u
#define MOST_PARTS 1024u	  /* unfinished messages of an agent */
#define MOST_BYTES (256ull << 20) /* of all unfinished messages */

struct rmpp_recv {
	struct rmpp_recv *next, **prev; /* of the agent */
	struct rmpp_recv *hash_next, **hash_prev;
	struct mad_agent *agent;
	struct loop_timer timer; /* of the whole; then, of a memory of it */
	struct rmpp_part part;
	struct mad_packet first; /* of its packets: who it is from */
};

static struct rmpp_recv **recv_bucket(const struct mad_fabric *f, const uint8_t *mad)
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

static struct rmpp_recv *recv_find(struct mad_agent *a, const struct mad_packet *p)
{
	struct rmpp_recv *r = a->fabric->receives ? *recv_bucket(a->fabric, p->mad) : NULL;

	while (r && !recv_is_of(r, a, p))
		r = r->hash_next;
	return r;
}

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

/* The rest has not come in time; or it is so long ago that nothing of it comes any more. */
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
		f->receives = calloc(BUCKETS, sizeof(struct rmpp_recv *));
	r = f->receives ? calloc(1, sizeof(*r)) : NULL;
	if (!r)
		return NULL;
	r->agent = a;
	r->first = *p;
	r->timer.fire = recv_timer_fires;
	r->prev = &a->recvs;
	r->next = a->recvs;
	if (r->next)
		r->next->prev = &r->next;
	a->recvs = r;
	head = recv_bucket(f, p->mad);
	r->hash_prev = head;
	r->hash_next = *head;
	if (r->hash_next)
		r->hash_next->hash_prev = &r->hash_next;
	*head = r;
	a->nrecvs++;
	recv_timer_arm(r, RMPP_TOTAL_MS);
	return r;
}

/* Gives the message away.  An answer that nobody waits for any more is nobody's. */
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

static void recv_data(struct mad_agent *a, const struct mad_packet *p)
{
	bool first = mad_get32(p->mad, MAD_AT_RMPP_SEGMENT) == 1;
	struct rmpp_recv *r = recv_find(a, p);
	struct rmpp_part none = {0}, *part = r ? &r->part : &none;
	uint8_t out[MAD_BYTES], status = 0;
	enum rmpp_outcome outcome;
	bool reply = false;
	size_t room;

	if (!r && first && p->mad[MAD_AT_RMPP_FLAGS] & MAD_RMPP_FIRST &&
	    !p->mad[MAD_AT_RMPP_STATUS]) {
		r = recv_new(a, p);
		if (!r) {
			recv_abort(a->fabric, p, RMPP_RESOURCES);
			return;
		}
		part = &r->part;
	}
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
