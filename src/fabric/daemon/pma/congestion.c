// SPDX-License-Identifier: BSD-2-Clause
/*
 * Congestion control (IBTA A10): we keep what managers set and tell it, under the CC_Key.  No link
 * of ours is ever congested, so the settings have no effect and logs stay empty.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/pma/pma.h"
#include "prm/pma.h"

#define CC_CLASS_VERSION   2u
#define CC_TABLE_BLOCKS	   2u
#define CC_TABLE_ENTRIES   64u /* in one block */
#define CC_BLOCK_BYTES	   132u
#define CC_SWITCH_BYTES	   76u
#define CC_PORTS_A_BLOCK   48u
#define CC_PORT_BLOCKS	   6u /* for 255 ports and port 0 */
#define CC_PORT_VALID	   0x80u
#define CC_SLS		   16u
#define CC_KEY_BYTES	   14u
#define CC_TIME_UNIT	   1024u /* nanoseconds */
#define CC_VIOLATIONS_MOST 0xffffu

/* The settings of a switch, or of an end port of another node. */
struct cc_node {
	struct cc_node *next;
	uint32_t row;
	uint8_t key_info[MAD_GMP_BYTES];
	uint8_t switch_setting[CC_SWITCH_BYTES];
	uint8_t ports[CC_PORT_BLOCKS][MAD_GMP_BYTES];
	uint8_t ca_setting[CC_BLOCK_BYTES];
	uint8_t table[CC_TABLE_BLOCKS][CC_BLOCK_BYTES];
};

static const struct cc_node cc_fresh;

struct cc_request {
	const struct net *net;
	struct loop *loop;
	struct cc_node *node; /* node of a Set; a Get reads 'now' only */
	const struct cc_node *now;
	uint32_t row;
	uint32_t modifier;
	bool set;
	uint8_t *mad, *data;
};

static struct cc_node *cc_node_find(const struct pma *p, uint32_t row)
{
	struct cc_node *n = p->cc_nodes[row % PMA_BUCKETS];

	while (n && n->row != row)
		n = n->next;
	return n;
}

static struct cc_node *cc_node_make(struct pma *p, uint32_t row)
{
	struct cc_node **bucket = &p->cc_nodes[row % PMA_BUCKETS];
	struct cc_node *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->row = row;
	n->next = *bucket;
	*bucket = n;
	return n;
}

/* ---- attributes; a Get of each gets cleared data ---- */

static unsigned cc_info(struct cc_request *r)
{
	if (r->set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	prm_set(r->data, CC_INFO_TABLE_CAP, CC_TABLE_BLOCKS);
	return MAD_STATUS_OK;
}

static unsigned cc_key_info(struct cc_request *r)
{
	uint32_t violations = prm_get32(r->now->key_info, CC_KEY_INFO_VIOLATIONS);

	if (r->set) {
		/* Writing 0 resets the count; nothing else changes it. */
		if (prm_get32(r->data, CC_KEY_INFO_VIOLATIONS))
			prm_set(r->data, CC_KEY_INFO_VIOLATIONS, violations);
		memcpy(r->node->key_info, r->data, CC_KEY_BYTES);
	}
	memcpy(r->data, r->now->key_info, CC_KEY_BYTES);
	return MAD_STATUS_OK;
}

static uint32_t cc_time(const struct cc_request *r)
{
	return (uint32_t)(loop_now(r->loop) / CC_TIME_UNIT);
}

static unsigned cc_log(struct cc_request *r)
{
	uint8_t *data = r->mad + MAD_CC_LOG_DATA;

	if (r->set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	memset(data, 0, MAD_BYTES - MAD_CC_LOG_DATA);
	if (net_is_switch(r->net, r->row)) {
		prm_set(data, CC_LOG_TYPE, CC_LOG_SWITCH);
		prm_set(data, CC_LOG_SWITCH_TIME, cc_time(r));
	} else {
		prm_set(data, CC_LOG_TYPE, CC_LOG_CA);
		prm_set(data, CC_LOG_CA_TIME, cc_time(r));
	}
	return MAD_STATUS_OK;
}

/* The map's bits say which of these ranges the request means. */
static unsigned cc_switch_setting(struct cc_request *r)
{
	static const struct {
		uint8_t at, bytes;
	} parts[] = {{4, 32}, {36, 32}, {68, 2}, {70, 4}, {74, 2}};

	if (r->set) {
		uint32_t map = mad_get32(r->data, 0);

		memcpy(r->node->switch_setting, r->data, 4);
		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			if (map >> i & 1)
				memcpy(r->node->switch_setting + parts[i].at, r->data + parts[i].at,
				       parts[i].bytes);
	}
	memcpy(r->data, r->now->switch_setting, CC_SWITCH_BYTES);
	return MAD_STATUS_OK;
}

static unsigned cc_switch_ports(struct cc_request *r)
{
	uint32_t block = r->modifier;

	if (block > net_node_of(r->net, r->row)->nports / CC_PORTS_A_BLOCK)
		return MAD_STATUS_BAD_VALUE;
	for (uint32_t i = 0; r->set && i < MAD_GMP_BYTES; i += 4)
		if (r->data[i] & CC_PORT_VALID)
			memcpy(r->node->ports[block] + i, r->data + i, 4);
	memcpy(r->data, r->now->ports[block], MAD_GMP_BYTES);
	return MAD_STATUS_OK;
}

static unsigned cc_ca_setting(struct cc_request *r)
{
	if (r->set) {
		uint32_t map = mad_get16(r->data, 2);

		memcpy(r->node->ca_setting, r->data, 4);
		for (uint32_t sl = 0; sl < CC_SLS; sl++)
			if (map >> sl & 1)
				memcpy(r->node->ca_setting + 4 + sl * 8, r->data + 4 + sl * 8, 8);
	}
	memcpy(r->data, r->now->ca_setting, CC_BLOCK_BYTES);
	return MAD_STATUS_OK;
}

static unsigned cc_table(struct cc_request *r)
{
	if (r->modifier >= CC_TABLE_BLOCKS ||
	    (r->set && mad_get16(r->data, 0) >= CC_TABLE_BLOCKS * CC_TABLE_ENTRIES))
		return MAD_STATUS_BAD_VALUE;
	if (r->set)
		memcpy(r->node->table[r->modifier], r->data, CC_BLOCK_BYTES);
	memcpy(r->data, r->now->table[r->modifier], CC_BLOCK_BYTES);
	/* All blocks share the limit. */
	if (r->set)
		for (uint32_t i = 0; i < CC_TABLE_BLOCKS; i++)
			memcpy(r->node->table[i], r->data, 2);
	return MAD_STATUS_OK;
}

static unsigned cc_timestamp(struct cc_request *r)
{
	if (r->set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	mad_put32(r->data, 0, cc_time(r));
	return MAD_STATUS_OK;
}

static unsigned cc_class_port_info(struct cc_request *r)
{
	if (r->set)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	prm_set(r->data, CPI_BASE_VERSION, 1);
	prm_set(r->data, CPI_CLASS_VERSION, CC_CLASS_VERSION);
	return MAD_STATUS_OK;
}

enum cc_where { CC_EVERYWHERE, CC_AT_SWITCHES, CC_AT_OTHERS };

static const struct cc_row {
	uint16_t attribute;
	uint8_t where;
	bool modified; /* the modifier need not be 0 */
	unsigned (*handle)(struct cc_request *r);
} cc_rows[] = {
	{GMP_CLASS_PORT_INFO, CC_EVERYWHERE, false, cc_class_port_info},
	{CC_INFO, CC_EVERYWHERE, false, cc_info},
	{CC_KEY_INFO, CC_EVERYWHERE, false, cc_key_info},
	{CC_LOG, CC_EVERYWHERE, false, cc_log},
	{CC_SWITCH_SETTING, CC_AT_SWITCHES, false, cc_switch_setting},
	{CC_SWITCH_PORT_SETTING, CC_AT_SWITCHES, true, cc_switch_ports},
	{CC_CA_SETTING, CC_AT_OTHERS, false, cc_ca_setting},
	{CC_TABLE, CC_AT_OTHERS, true, cc_table},
	{CC_TIMESTAMP, CC_EVERYWHERE, false, cc_timestamp},
};

static const struct cc_row *cc_row_find(unsigned attribute, bool is_switch)
{
	for (size_t i = 0; i < sizeof(cc_rows) / sizeof(cc_rows[0]); i++)
		if (cc_rows[i].attribute == attribute &&
		    cc_rows[i].where != (is_switch ? CC_AT_OTHERS : CC_AT_SWITCHES))
			return &cc_rows[i];
	return NULL;
}

/* ---- keys and requests ---- */

/* Sets need the key, and so do Gets if it is protected (A10.4.2). */
static bool cc_admits(struct cc_node *node, const uint8_t *mad)
{
	uint64_t key = node ? prm_get(node->key_info, CC_KEY_INFO_KEY) : 0;
	uint32_t count;

	if (!key || key == mad_get64(mad, MAD_AT_CC_KEY))
		return true;
	if (mad[MAD_AT_METHOD] == MAD_GET && !prm_get32(node->key_info, CC_KEY_INFO_PROTECT))
		return true;
	count = prm_get32(node->key_info, CC_KEY_INFO_VIOLATIONS);
	if (count < CC_VIOLATIONS_MOST)
		prm_set(node->key_info, CC_KEY_INFO_VIOLATIONS, count + 1);
	return false;
}

static unsigned cc_perform(struct pma *p, struct cc_request *r)
{
	const struct cc_row *row =
		cc_row_find(mad_get16(r->mad, MAD_AT_ATTRIBUTE), net_is_switch(r->net, r->row));

	if (r->mad[MAD_AT_CLASS_VERSION] != CC_CLASS_VERSION)
		return MAD_STATUS_BAD_VERSION;
	if (!row)
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (r->modifier && !row->modified)
		return MAD_STATUS_BAD_VALUE;
	if (r->set && !r->node)
		r->node = cc_node_make(p, r->row);
	if (r->set && !r->node)
		return MAD_STATUS_BAD_VALUE;
	r->now = r->node ? r->node : &cc_fresh;
	if (!r->set)
		memset(r->data, 0, MAD_GMP_BYTES);
	return row->handle(r);
}

enum mad_verdict pma_congestion(struct port_agent *a, uint32_t row, struct mad_packet *p)
{
	struct pma *pma = container_of(a, struct pma, congestion);
	unsigned method = p->mad[MAD_AT_METHOD];
	struct cc_request r = {
		.net = pma->fabric->net,
		.loop = pma->fabric->loop,
		.row = net_end_port(pma->fabric->net, row),
		.modifier = mad_get32(p->mad, MAD_AT_MODIFIER),
		.set = method == MAD_SET,
		.mad = p->mad,
		.data = p->mad + MAD_GMP_DATA,
	};

	if (method != MAD_GET && method != MAD_SET)
		return MAD_PASSED;
	r.node = cc_node_find(pma, r.row);
	if (!cc_admits(r.node, p->mad))
		return MAD_SILENT;
	mad_answer(p->mad, MAD_GET_RESP, cc_perform(pma, &r));
	return MAD_ANSWERED;
}

void pma_congestion_close(struct pma *p)
{
	for (size_t i = 0; i < PMA_BUCKETS; i++)
		while (p->cc_nodes[i]) {
			struct cc_node *n = p->cc_nodes[i];

			p->cc_nodes[i] = n->next;
			free(n);
		}
}
