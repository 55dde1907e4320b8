// SPDX-License-Identifier: BSD-2-Clause
/*
 * Traps.  The SMA sends at once what a node has to tell its SM, and again, each time after twice as
 * long, until the SM represses it.  A node has one trap of each number under way: what happens
 * meanwhile goes out in a new one as soon as the SM has repressed that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/sma/sma.h"

#define NOTICE_BUCKETS	     256u
#define NOTICE_SHORTEST_NS   100000000ull
#define NOTICE_LONGEST_NS    64000000000ull
#define NOTICE_TIMEOUT_NS    4096ull /* times two to the power of SubnetTimeout */
#define NOTICE_URGENT	     1u
#define NOTICE_INFORMATIONAL 4u
#define NOTICE_GENERIC	     0x80u
#define NOTICE_AT_DETAILS    10u
#define DETAIL_LOCAL_CHANGES 5u /* where 144 has them */
#define DETAIL_CAPABILITIES  6u
#define DETAIL_CHANGES	     10u
#define DETAIL_CAPABILITIES2 12u

struct notice {
	struct loop_timer timer;
	struct notice *next;
	struct sma *sma;
	uint32_t row;
	uint32_t tid;
	uint32_t tries;
	uint16_t number;
	uint8_t type;
	bool again; /* 'details' are newer than the trap under way */
	uint8_t details[NOTICE_DETAILS];
};

struct notices {
	struct notice *bucket[NOTICE_BUCKETS]; /* hash by row */
	uint32_t next_tid;
};

static struct notice **notice_find(struct sma *s, uint32_t row, unsigned number)
{
	struct notice **at = &s->notices->bucket[row % NOTICE_BUCKETS];

	while (*at && ((*at)->row != row || (*at)->number != number))
		at = &(*at)->next;
	return at;
}

static void notice_end(struct sma *s, struct notice **at)
{
	struct notice *n = *at;

	*at = n->next;
	loop_timer_cancel(s->fabric->loop, &n->timer);
	free(n);
}

/* Tells whether there is a way to an SM at all. */
static bool notice_possible(const struct net *net, uint32_t row)
{
	return net_info(net, row, PI_LID) && net_info(net, row, PI_SM_LID);
}

static void notice_write(const struct notice *n, const struct net *net, uint8_t *mad)
{
	uint8_t *data = mad + MAD_SMP_DATA;

	mad[MAD_AT_BASE_VERSION] = 1;
	mad[MAD_AT_CLASS] = MAD_CLASS_SMP_LID;
	mad[MAD_AT_CLASS_VERSION] = 1;
	mad[MAD_AT_METHOD] = MAD_TRAP;
	mad_put64(mad, MAD_AT_TID, n->tid);
	mad_put16(mad, MAD_AT_ATTRIBUTE, SMP_NOTICE);
	data[0] = (uint8_t)(NOTICE_GENERIC | n->type);
	data[3] = (uint8_t)net_node_of(net, n->row)->type;
	mad_put16(data, 4, n->number);
	mad_put16(data, 6, net_info(net, n->row, PI_LID));
	memcpy(data + NOTICE_AT_DETAILS, n->details, NOTICE_DETAILS);
}

/* A packet that cannot be had counts as lost, because the next try comes. */
static void notice_emit(const struct notice *n)
{
	struct mad_fabric *f = n->sma->fabric;
	struct mad_packet *p = mad_packet_get(f);

	if (!p)
		return;
	notice_write(n, f->net, p->mad);
	p->row = n->row;
	p->slid = (uint16_t)net_info(f->net, n->row, PI_LID);
	p->dlid = (uint16_t)net_info(f->net, n->row, PI_SM_LID);
	p->sl = (uint8_t)net_info(f->net, n->row, PI_SM_SL);
	mad_emit(f, p);
}

static uint64_t notice_wait_ns(const struct notice *n)
{
	uint64_t ns = NOTICE_TIMEOUT_NS << net_info(n->sma->fabric->net, n->row, PI_SUBNET_TIMEOUT);

	if (ns < NOTICE_SHORTEST_NS)
		ns = NOTICE_SHORTEST_NS;
	for (uint32_t i = 1; i < n->tries && ns < NOTICE_LONGEST_NS; i++)
		ns *= 2;
	return ns;
}

static void notice_try(struct notice *n)
{
	notice_emit(n);
	n->tries++;
	loop_timer_arm(n->sma->fabric->loop, &n->timer,
		       loop_now(n->sma->fabric->loop) + notice_wait_ns(n));
}

static void notice_begin(struct notice *n)
{
	n->tid = n->sma->notices->next_tid++;
	n->tries = 0;
	n->again = false;
	notice_try(n);
}

static void notice_fire(struct loop *l, struct loop_timer *t)
{
	struct notice *n = container_of(t, struct notice, timer);

	(void)l;
	/* An SM that gives this port a LID looks at everything anyway, so the trap ends. */
	if (notice_possible(n->sma->fabric->net, n->row))
		notice_try(n);
	else
		notice_end(n->sma, notice_find(n->sma, n->row, n->number));
}

/* Sets what the trap says next, with the changes that it would have told of. */
static void notice_renew(struct notice *n, const uint8_t *details)
{
	unsigned earlier = n->again ? mad_get16(n->details, DETAIL_CHANGES) : 0;
	unsigned local = n->again ? n->details[DETAIL_LOCAL_CHANGES] : 0;

	memcpy(n->details, details, NOTICE_DETAILS);
	n->again = true;
	if (n->number != NOTICE_LOCAL_CHANGES)
		return;
	n->details[DETAIL_LOCAL_CHANGES] |= (uint8_t)local;
	mad_put16(n->details, DETAIL_CHANGES, mad_get16(details, DETAIL_CHANGES) | earlier);
}

void notice_send(struct sma *s, uint32_t row, unsigned type, unsigned number,
		 const uint8_t *details)
{
	uint32_t end = net_end_port(s->fabric->net, row);
	struct notice **at, *n;

	if (!notice_possible(s->fabric->net, end) ||
	    !(net_info(s->fabric->net, end, PI_CAP_MASK) & CAP_IS_TRAP))
		return;
	at = notice_find(s, end, number);
	n = *at;
	if (n) {
		notice_renew(n, details);
		return;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return;
	n->sma = s;
	n->row = end;
	n->type = (uint8_t)type;
	n->number = (uint16_t)number;
	n->timer.fire = notice_fire;
	memcpy(n->details, details, NOTICE_DETAILS);
	*at = n;
	notice_begin(n);
}

void notice_repress(struct sma *s, uint32_t row, const uint8_t *mad)
{
	struct net *net = s->fabric->net;
	struct notice **at =
		notice_find(s, net_end_port(net, row), mad_get16(mad + MAD_SMP_DATA, 4));

	if (!*at || (*at)->tid != mad_get64(mad, MAD_AT_TID))
		return;
	if ((*at)->again && notice_possible(net, (*at)->row))
		notice_begin(*at);
	else
		notice_end(s, at);
}

/* ---- what there is to tell ---- */

void notice_local_changes(struct sma *s, uint32_t row, unsigned changes)
{
	const struct net *net = s->fabric->net;
	uint32_t end = net_end_port(net, row), cap = net_info(net, end, PI_CAP_MASK);
	uint8_t details[NOTICE_DETAILS] = {0};

	/* Ports like those of ibsim have only the second bit, and use it for everything. */
	if (!(cap & (changes ? CAP_IS_OTHER_NOTICE | CAP_IS_CAP_NOTICE : CAP_IS_CAP_NOTICE)))
		return;
	mad_put16(details, 2, net_info(net, end, PI_LID));
	details[DETAIL_LOCAL_CHANGES] = changes != 0;
	mad_put32(details, DETAIL_CAPABILITIES, cap);
	mad_put16(details, DETAIL_CHANGES, changes);
	mad_put16(details, DETAIL_CAPABILITIES2, net_info(net, end, PI_CAP_MASK2));
	notice_send(s, end, NOTICE_INFORMATIONAL, NOTICE_LOCAL_CHANGES, details);
}

static void notice_link_state(struct sma *s, uint32_t row)
{
	uint8_t details[NOTICE_DETAILS] = {0};

	mad_put16(details, 0, net_info(s->fabric->net, net_end_port(s->fabric->net, row), PI_LID));
	notice_send(s, row, NOTICE_URGENT, NOTICE_LINK_STATE, details);
}

static void notice_event(struct net_listener *l, enum net_event event, uint32_t row, uint32_t what)
{
	struct sma *s = container_of(l, struct sma, listener);

	(void)what;
	switch (event) {
	case NET_SWITCH_CHANGE:
		notice_link_state(s, row);
		break;
	case NET_CAPABILITY:
		notice_local_changes(s, row, 0);
		break;
	case NET_DESCRIPTION:
		notice_local_changes(s, row, NOTICE_CHANGED_DESCRIPTION);
		break;
	default:
		break;
	}
}

int notice_open(struct sma *s)
{
	s->notices = calloc(1, sizeof(*s->notices));
	if (!s->notices)
		return -ENOMEM;
	s->notices->next_tid = 1;
	s->listener.event = notice_event;
	net_listen(s->fabric->net, &s->listener);
	return 0;
}

void notice_close(struct sma *s)
{
	if (!s->notices)
		return;
	for (uint32_t i = 0; i < NOTICE_BUCKETS; i++)
		while (s->notices->bucket[i])
			notice_end(s, &s->notices->bucket[i]);
	free(s->notices);
	s->notices = NULL;
}
