// SPDX-License-Identifier: BSD-2-Clause
/* Counts less what has been cleared. */
#include "fabric/daemon/pma/pma.h"
#include "prm/pma.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

uint64_t pma_total(const struct net *n, uint32_t row, unsigned source)
{
	if (source >= PMA_RCV_SL)
		return net_sl_total(n, row, NET_IN, source - PMA_RCV_SL);
	if (source >= PMA_XMIT_SL)
		return net_sl_total(n, row, NET_OUT, source - PMA_XMIT_SL);
	switch (source) {
	case PMA_UNICAST_XMIT:
		return net_total(n, row, NET_XMIT_PACKETS) -
		       net_total(n, row, NET_MULTICAST_XMIT_PACKETS);
	case PMA_UNICAST_RCV:
		return net_total(n, row, NET_RCV_PACKETS) -
		       net_total(n, row, NET_MULTICAST_RCV_PACKETS);
	default:
		return net_total(n, row, (enum net_counter)source);
	}
}

static_assert(NET_SLS <= PMA_SOURCES, "service levels have the places of a group");

static size_t group_place(enum pma_group group, unsigned source)
{
	if (source >= PMA_RCV_SL)
		source -= PMA_RCV_SL;
	else if (source >= PMA_XMIT_SL)
		source -= PMA_XMIT_SL;
	return (size_t)group * PMA_SOURCES + source;
}

static uint64_t pma_group_get(const struct net *n, uint32_t row, enum pma_group group,
			      unsigned source)
{
	const uint64_t *cleared = n->ports[row].counters_cleared;

	return pma_total(n, row, source) - (cleared ? cleared[group_place(group, source)] : 0);
}

/* From now on the count continues from 'value'. */
static void pma_group_set(struct net *n, uint32_t row, enum pma_group group, unsigned source,
			  uint64_t value)
{
	uint64_t **cleared = &n->ports[row].counters_cleared;
	uint64_t base = pma_total(n, row, source) - value;

	/* Most ports are never cleared, or have nothing to clear, so they have no memory for it. */
	if (!*cleared && !base)
		return;
	if (!*cleared)
		*cleared = calloc(group_place(PMA_GROUPS, 0), sizeof(**cleared));
	/* Without memory the counter simply counts on. */
	if (*cleared)
		(*cleared)[group_place(group, source)] = base;
}

/* Returns the attribute in which the kernel looks for the counter. */
static enum pma_group count_group(enum net_counter c)
{
	return c < NET_XMIT_DISCARDS ? PMA_GROUP_EXTENDED : PMA_GROUP_BASIC;
}

uint64_t pma_count(const struct net *n, uint32_t row, enum net_counter c)
{
	return pma_group_get(n, row, count_group(c), c);
}

void pma_clear(struct net *n, uint32_t row, enum net_counter c)
{
	pma_group_set(n, row, count_group(c), c, 0);
}

/*
 * Attributes that are counters (IBTA 16.1.3.5, 16.1.4).  A field that no row of the tables names
 * counts what does not happen here (bad symbols, waiting for credits, marks of congestion), so it
 * is always 0.  Of the attributes for each virtual lane only those are here that are always 0,
 * because packets are not told apart by their operations.
 */

#define SELECT_BYTES 4u /* bytes of opcode, port and CounterSelect */

struct count_field {
	struct prm_field field;
	uint8_t source;
	uint8_t select; /* its bit in CounterSelect, or from SELECT2 on in CounterSelect2 */
};

#define SELECT2 16u /* of PortCountersExtended */

static const struct count_field basic_fields[] = {
	{PRM_FIELD(48, 8), NET_LINK_RECOVERED, 1},
	{PRM_FIELD(56, 8), NET_LINK_DOWNED, 2},
	{PRM_FIELD(64, 16), NET_RCV_ERRORS, 3},
	{PRM_FIELD(96, 16), NET_RCV_SWITCH_RELAY_ERRORS, 5},
	{PRM_FIELD(112, 16), NET_XMIT_DISCARDS, 6},
	{PRM_FIELD(128, 8), NET_XMIT_CONSTRAINT_ERRORS, 7},
	{PRM_FIELD(136, 8), NET_RCV_CONSTRAINT_ERRORS, 8},
	{PRM_FIELD(176, 16), NET_VL15_DROPPED, 11},
	{PRM_FIELD(192, 32), NET_XMIT_DATA, 12},
	{PRM_FIELD(224, 32), NET_RCV_DATA, 13},
	{PRM_FIELD(256, 32), NET_XMIT_PACKETS, 14},
	{PRM_FIELD(288, 32), NET_RCV_PACKETS, 15},
};

static const struct count_field extended_fields[] = {
	{PRM_FIELD(64, 64), NET_XMIT_DATA, 0},
	{PRM_FIELD(128, 64), NET_RCV_DATA, 1},
	{PRM_FIELD(192, 64), NET_XMIT_PACKETS, 2},
	{PRM_FIELD(256, 64), NET_RCV_PACKETS, 3},
	{PRM_FIELD(320, 64), PMA_UNICAST_XMIT, 4},
	{PRM_FIELD(384, 64), PMA_UNICAST_RCV, 5},
	{PRM_FIELD(448, 64), NET_MULTICAST_XMIT_PACKETS, 6},
	{PRM_FIELD(512, 64), NET_MULTICAST_RCV_PACKETS, 7},
	{PRM_FIELD(640, 64), NET_LINK_RECOVERED, SELECT2 + 1},
	{PRM_FIELD(704, 64), NET_LINK_DOWNED, SELECT2 + 2},
	{PRM_FIELD(768, 64), NET_RCV_ERRORS, SELECT2 + 3},
	{PRM_FIELD(896, 64), NET_RCV_SWITCH_RELAY_ERRORS, SELECT2 + 5},
	{PRM_FIELD(960, 64), NET_XMIT_DISCARDS, SELECT2 + 6},
	{PRM_FIELD(1024, 64), NET_XMIT_CONSTRAINT_ERRORS, SELECT2 + 7},
	{PRM_FIELD(1088, 64), NET_RCV_CONSTRAINT_ERRORS, SELECT2 + 8},
	{PRM_FIELD(1280, 64), NET_VL15_DROPPED, SELECT2 + 11},
};

/* Fields of PortMalformedPktErrors and PortDLIDMappingErrors. */
static const struct count_field rcv_detail_fields[] = {
	{PRM_FIELD(48, 16), NET_RCV_ERRORS, 1},
	{PRM_FIELD(80, 16), NET_RCV_SWITCH_RELAY_ERRORS, 3},
};

/* Fields of PortInactiveDiscards. */
static const struct count_field xmit_detail_fields[] = {
	{PRM_FIELD(32, 16), NET_XMIT_DISCARDS, 0},
};

#define SL_FIELD(first, sl)                                                    \
	{                                                                      \
		PRM_FIELD(32 + 32 * (sl), 32), (uint8_t)((first) + (sl)), (sl) \
	}
#define SL_FIELDS(first)                                                                          \
	SL_FIELD(first, 0), SL_FIELD(first, 1), SL_FIELD(first, 2), SL_FIELD(first, 3),           \
		SL_FIELD(first, 4), SL_FIELD(first, 5), SL_FIELD(first, 6), SL_FIELD(first, 7),   \
		SL_FIELD(first, 8), SL_FIELD(first, 9), SL_FIELD(first, 10), SL_FIELD(first, 11), \
		SL_FIELD(first, 12), SL_FIELD(first, 13), SL_FIELD(first, 14), SL_FIELD(first, 15)

static const struct count_field xmit_sl_fields[] = {SL_FIELDS(PMA_XMIT_SL)};
static const struct count_field rcv_sl_fields[] = {SL_FIELDS(PMA_RCV_SL)};

#define COUNT_FIELDS(list) (list), sizeof(list) / sizeof((list)[0])

static const struct count_attribute {
	uint16_t number;
	bool of_switch;
	enum pma_group group;
	const struct count_field *fields;
	size_t nfields;
} count_attributes[] = {
	{PMA_PORT_COUNTERS, false, PMA_GROUP_BASIC, COUNT_FIELDS(basic_fields)},
	{PMA_PORT_COUNTERS_EXTENDED, false, PMA_GROUP_EXTENDED, COUNT_FIELDS(extended_fields)},
	{PMA_RCV_ERROR_DETAILS, false, PMA_GROUP_RCV_DETAILS, COUNT_FIELDS(rcv_detail_fields)},
	{PMA_XMIT_DISCARD_DETAILS, false, PMA_GROUP_XMIT_DETAILS, COUNT_FIELDS(xmit_detail_fields)},
	{PMA_XMIT_DATA_SL, false, PMA_GROUP_XMIT_SL, COUNT_FIELDS(xmit_sl_fields)},
	{PMA_RCV_DATA_SL, false, PMA_GROUP_RCV_SL, COUNT_FIELDS(rcv_sl_fields)},
	{PMA_FLOW_CTL_COUNTERS, false, PMA_GROUP_NONE, NULL, 0},
	{PMA_VL_FLOW_CTL_ERRORS, false, PMA_GROUP_NONE, NULL, 0},
	{PMA_VL_XMIT_WAIT, false, PMA_GROUP_NONE, NULL, 0},
	{PMA_EXTENDED_SPEEDS, false, PMA_GROUP_NONE, NULL, 0},
	{PMA_SWITCH_VL_CONGESTION, true, PMA_GROUP_NONE, NULL, 0},
	{PMA_RCV_CONGESTION, false, PMA_GROUP_NONE, NULL, 0},
	{PMA_SL_RCV_FECN, false, PMA_GROUP_NONE, NULL, 0},
	{PMA_SL_RCV_BECN, false, PMA_GROUP_NONE, NULL, 0},
	{PMA_XMIT_CONGESTION, false, PMA_GROUP_NONE, NULL, 0},
	{PMA_VL_XMIT_CONGESTION, false, PMA_GROUP_NONE, NULL, 0},
};

static const struct count_attribute *count_attribute_find(unsigned number)
{
	for (size_t i = 0; i < sizeof(count_attributes) / sizeof(count_attributes[0]); i++)
		if (count_attributes[i].number == number)
			return &count_attributes[i];
	return NULL;
}

/* Gives the rows that a request is about: one, or all but a switch's own port. */
static void ports_of_request(const struct pma_request *r, uint32_t *first, uint32_t *end)
{
	const struct net_node *node = net_node_of(r->net, r->node_row);

	*first = r->row == SUBNET_NONE ? node->first_port + 1 : r->row;
	*end = r->row == SUBNET_NONE ? *first + node->nports : r->row + 1;
}

/* Counters stop at their highest number. */
static uint64_t count_in(uint64_t v, uint8_t width)
{
	uint64_t most = width == 64 ? UINT64_MAX : (1ull << width) - 1;

	return v < most ? v : most;
}

static void count_read(const struct pma_request *r, const struct count_attribute *a)
{
	uint32_t first, end;

	memset(r->data + SELECT_BYTES, 0, MAD_GMP_BYTES - SELECT_BYTES);
	ports_of_request(r, &first, &end);
	for (size_t i = 0; i < a->nfields; i++) {
		const struct count_field *f = &a->fields[i];
		uint64_t sum = 0;

		for (uint32_t row = first; row < end; row++)
			sum += pma_group_get(r->net, row, a->group, f->source);
		prm_set(r->data, f->field, count_in(sum, f->field.width));
	}
}

static void count_write(const struct pma_request *r, const struct count_attribute *a)
{
	uint64_t select = prm_get32(r->data, PC_COUNTER_SELECT);
	uint32_t first, end;

	if (a->group == PMA_GROUP_EXTENDED)
		select |= prm_get(r->data, PX_COUNTER_SELECT2) << SELECT2;
	ports_of_request(r, &first, &end);
	for (size_t i = 0; i < a->nfields; i++) {
		const struct count_field *f = &a->fields[i];

		if (!(select >> f->select & 1))
			continue;
		for (uint32_t row = first; row < end; row++)
			pma_group_set(r->net, row, a->group, f->source, prm_get(r->data, f->field));
	}
}

unsigned pma_attribute(struct pma_request *r, unsigned attribute)
{
	const struct count_attribute *a = count_attribute_find(attribute);

	if (!a || (a->of_switch && !net_is_switch(r->net, r->node_row)))
		return MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	if (r->set)
		count_write(r, a);
	count_read(r, a);
	return MAD_STATUS_OK;
}
