// SPDX-License-Identifier: BSD-2-Clause
/* Finds which attribute of which node an SMP asks for, and decides what happens to the SMP. */
#include "fabric/daemon/sma/sma.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/*
 * M_Keys (IBTA 14.2.4) decide who may set, and at protection 2 and above also get, what the agent
 * of a port has.  Ports of a switch share the key of its port 0.  An SM that has forgotten its key
 * waits for the lease to run out: the lease begins with the first wrong key and ends with the next
 * right one.  When it runs out, the protection becomes 0, so that the SM can read the key.
 */

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

	assert(s->fabric); /* only an open agent has leases */
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

/*
 * Decides whether this SMP may be answered.  If not, it counts the SMP and tells the SM
 * (IBTA 14.2.4).
 */
static must_check bool sma_mkey_admits(struct sma *s, uint32_t row, const struct mad_packet *p)
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

static void sma_mkey_close(struct sma *s)
{
	while (s->leases)
		lease_end(s, &s->leases);
}

#define SMP_CLASS_VERSION 1u

enum attribute_flag {
	ATTRIBUTE_SET = 1,	  /* may be set */
	ATTRIBUTE_OF_SWITCH = 2,  /* only switches have it */
	ATTRIBUTE_OF_VENDOR = 4,  /* only nodes of Mellanox have it */
	ATTRIBUTE_UNMODIFIED = 8, /* the modifier is 0 */
};

#define MELLANOX_VENDOR 0x2c9u

static const struct attribute {
	uint16_t number;
	uint8_t flags;
	smp_handler *handle;
} attribute_table[] = {
	{SMP_NODE_INFO, ATTRIBUTE_UNMODIFIED, sma_node_info},
	{SMP_PORT_INFO, ATTRIBUTE_SET, sma_port_info},
	{SMP_NODE_DESCRIPTION, ATTRIBUTE_UNMODIFIED, sma_node_description},
	{SMP_SWITCH_INFO, ATTRIBUTE_SET | ATTRIBUTE_OF_SWITCH | ATTRIBUTE_UNMODIFIED,
	 sma_switch_info},
	{SMP_LINEAR_TABLE, ATTRIBUTE_SET | ATTRIBUTE_OF_SWITCH, sma_linear_table},
	{SMP_MULTICAST_TABLE, ATTRIBUTE_SET | ATTRIBUTE_OF_SWITCH, sma_multicast_table},
	{SMP_PKEY_TABLE, ATTRIBUTE_SET, sma_pkey_table},
	{SMP_GUID_INFO, ATTRIBUTE_SET, sma_guid_info},
	{SMP_SL_TO_VL, ATTRIBUTE_SET, sma_sl_to_vl},
	{SMP_VL_ARBITRATION, ATTRIBUTE_SET, sma_vl_arbitration},
	{SMP_MELLANOX_EXTENDED_PORT_INFO, ATTRIBUTE_SET | ATTRIBUTE_OF_VENDOR,
	 sma_mellanox_port_info},
};

static const struct attribute *attribute_find(unsigned number)
{
	for (size_t i = 0; i < sizeof(attribute_table) / sizeof(attribute_table[0]); i++)
		if (attribute_table[i].number == number)
			return &attribute_table[i];
	return NULL;
}

static bool attribute_allows(const struct attribute *a, const struct smp_request *r)
{
	const struct net_node *node = net_node_of(r->net, r->row);

	if (r->set && !(a->flags & ATTRIBUTE_SET))
		return false;
	if (a->flags & ATTRIBUTE_OF_VENDOR && node->vendor_id != MELLANOX_VENDOR)
		return false;
	return !(a->flags & ATTRIBUTE_OF_SWITCH) || node->type == SMP_NODE_SWITCH;
}

static unsigned attribute_perform(struct sma *s, uint32_t row, uint8_t *mad)
{
	const struct attribute *a = attribute_find(mad_get16(mad, MAD_AT_ATTRIBUTE));
	struct smp_request r = {
		.net = s->fabric->net,
		.sma = s,
		.row = row,
		.modifier = mad_get32(mad, MAD_AT_MODIFIER),
		.set = mad[MAD_AT_METHOD] == MAD_SET,
		.key = mad_get64(mad, MAD_AT_SMP_MKEY),
		.data = mad + MAD_SMP_DATA,
	};

	if (mad[MAD_AT_CLASS_VERSION] != SMP_CLASS_VERSION)
		return MAD_STATUS_BAD_VERSION;
	if (!a || !attribute_allows(a, &r))
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (a->flags & ATTRIBUTE_UNMODIFIED && r.modifier)
		return MAD_STATUS_BAD_VALUE;
	return a->handle(&r);
}

static enum mad_verdict sma_handle(struct port_agent *agent, uint32_t row, struct mad_packet *p)
{
	struct sma *s = container_of(agent, struct sma, agent);
	unsigned method = p->mad[MAD_AT_METHOD];

	if (method != MAD_GET && method != MAD_SET && method != MAD_TRAP_REPRESS)
		return MAD_PASSED;
	/* The attribute belongs to the subnet manager, which is a program or the built-in one. */
	if (mad_get16(p->mad, MAD_AT_ATTRIBUTE) == SMP_SM_INFO)
		return MAD_PASSED;
	if (!sma_mkey_admits(s, row, p))
		return MAD_SILENT;
	if (method == MAD_TRAP_REPRESS) {
		notice_repress(s, row, p->mad);
		return MAD_SILENT;
	}
	mad_answer(p->mad, MAD_GET_RESP, attribute_perform(s, row, p->mad));
	return MAD_ANSWERED;
}

int sma_open(struct sma *s, struct mad_fabric *f)
{
	int err;

	*s = (struct sma){.agent.handle = sma_handle, .fabric = f};
	err = notice_open(s);
	if (err)
		return err;
	mad_port_agent(f, MAD_CLASS_SMP_LID, &s->agent);
	mad_port_agent(f, MAD_CLASS_SMP_DIRECTED, &s->agent);
	f->pkey_violated = sma_pkey_violated;
	f->qkey_violated = sma_qkey_violated;
	f->pkey_enforced = sma_pkey_enforced;
	f->key_user = s;
	return 0;
}

void sma_close(struct sma *s)
{
	if (s->fabric) {
		s->fabric->pkey_violated = NULL;
		s->fabric->qkey_violated = NULL;
		s->fabric->pkey_enforced = NULL;
	}
	sma_mkey_close(s);
	free(s->violations);
	notice_close(s);
}
