// SPDX-License-Identifier: BSD-2-Clause
/* Finds which attribute of which node an SMP asks for, and decides what happens to the SMP. */
#include <stdlib.h>

#include "fabric/daemon/sma/sma.h"

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
