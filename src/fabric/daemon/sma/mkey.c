// SPDX-License-Identifier: BSD-2-Clause
/*
 * M_Keys (IBTA 14.2.4) decide who may set, and at protection 2 and above also get, what the agent
 * of a port has.  Ports of a switch share the key of its port 0.  An SM that has forgotten its key
 * waits for the lease to run out: the lease begins with the first wrong key and ends with the next
 * right one.  When it runs out, the protection becomes 0, so that the SM can read the key.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/sma/sma.h"

#define NS_PER_S	   1000000000ull
#define PROTECT_GETS	   2u
#define VIOLATIONS_MOST	   0xffffu
#define DETAIL_RETURN_PATH 30u /* bytes of a directed route that fit into the notice */

struct mkey_lease {
	struct loop_timer timer;
	struct mkey_lease *next;
	struct sma *sma;
	uint32_t row;
};

static struct mkey_lease **lease_find(struct sma *s, uint32_t row)
{
	struct mkey_lease **at = &s->leases;

	while (*at && (*at)->row != row)
		at = &(*at)->next;
	return at;
}

static void lease_end(struct sma *s, struct mkey_lease **at)
{
	struct mkey_lease *lease = *at;

	*at = lease->next;
	loop_timer_cancel(s->fabric->loop, &lease->timer);
	free(lease);
}

static void lease_fire(struct loop *l, struct loop_timer *t)
{
	struct mkey_lease *lease = container_of(t, struct mkey_lease, timer);
	struct sma *s = lease->sma;

	(void)l;
	net_info_set(s->fabric->net, lease->row, PI_MKEY_PROTECT, 0);
	lease_end(s, lease_find(s, lease->row));
}

static void lease_begin(struct sma *s, uint32_t row)
{
	uint32_t seconds = net_info(s->fabric->net, row, PI_MKEY_LEASE);
	struct mkey_lease *lease;

	if (!seconds || *lease_find(s, row))
		return;
	/* Without memory the lease begins with the next wrong key. */
	lease = calloc(1, sizeof(*lease));
	if (!lease)
		return;
	lease->sma = s;
	lease->row = row;
	lease->timer.fire = lease_fire;
	lease->next = s->leases;
	s->leases = lease;
	loop_timer_arm(s->fabric->loop, &lease->timer,
		       loop_now(s->fabric->loop) + seconds * NS_PER_S);
}

/* Tells who tried what, with which key and from where (IBTA 14.2.5.1, notice 256). */
static void mkey_tell(struct sma *s, uint32_t row, const struct mad_packet *p)
{
	uint8_t details[NOTICE_DETAILS] = {0};
	const uint8_t *mad = p->mad;
	unsigned hops = mad[MAD_AT_HOP_COUNT];

	mad_put16(details, 2, p->slid);
	details[6] = mad[MAD_AT_METHOD];
	memcpy(details + 8, mad + MAD_AT_ATTRIBUTE, 2);
	memcpy(details + 10, mad + MAD_AT_MODIFIER, 4);
	memcpy(details + 14, mad + MAD_AT_SMP_MKEY, 8);
	if (mad_is_directed(mad)) {
		memcpy(details + 4, mad + MAD_AT_DR_SLID, 2);
		details[23] =
			(uint8_t)(0x80 | (hops > DETAIL_RETURN_PATH ? 0x40 : 0) | (hops & 0x3f));
		memcpy(details + 24, mad + MAD_AT_DR_RETURN + 1, DETAIL_RETURN_PATH);
	}
	notice_send(s, row, NOTICE_SECURITY, NOTICE_BAD_MKEY, details);
}

static void mkey_violated(struct sma *s, uint32_t row, const struct mad_packet *p)
{
	struct net *net = s->fabric->net;
	uint32_t count = net_info(net, row, PI_MKEY_VIOLATIONS);

	if (count < VIOLATIONS_MOST)
		net_info_set(net, row, PI_MKEY_VIOLATIONS, count + 1);
	lease_begin(s, row);
	mkey_tell(s, row, p);
}

bool sma_mkey_admits(struct sma *s, uint32_t row, const struct mad_packet *p)
{
	struct net *net = s->fabric->net;
	uint32_t end = net_end_port(net, row);
	uint64_t key = prm_get(net->ports[end].info, PI_MKEY);
	struct mkey_lease **lease;

	if (!key || key == mad_get64(p->mad, MAD_AT_SMP_MKEY)) {
		lease = lease_find(s, end);
		if (*lease)
			lease_end(s, lease);
		return true;
	}
	if (p->mad[MAD_AT_METHOD] == MAD_GET && net_info(net, end, PI_MKEY_PROTECT) < PROTECT_GETS)
		return true;
	mkey_violated(s, end, p);
	return false;
}

void sma_mkey_close(struct sma *s)
{
	while (s->leases)
		lease_end(s, &s->leases);
}
