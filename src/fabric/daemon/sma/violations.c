// SPDX-License-Identifier: BSD-2-Clause
/*
 * How often a port was shown a bad key.  PortInfo itself counts SMPs.  Processes count packets of
 * programs, and PortInfo shows those since the last reset.
 */
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/sma/sma.h"

#define VIOLATIONS_MOST 0xffffu

static const struct violation_field {
	struct prm_field field;
	enum port_counter counted; /* what processes count; PORT_COUNTERS: they do not */
} violation_fields[] = {
	{PI_MKEY_VIOLATIONS, PORT_COUNTERS},
	{PI_PKEY_VIOLATIONS, PORT_PKEY_VIOLATIONS},
	{PI_QKEY_VIOLATIONS, PORT_QKEY_VIOLATIONS},
};

#define VIOLATION_FIELDS (sizeof(violation_fields) / sizeof(violation_fields[0]))

struct violations {
	uint64_t reset[VIOLATION_FIELDS]; /* what had been counted at the last reset */
};

static uint64_t violations_of_host(const struct net *n, uint32_t row, size_t i)
{
	if (!n->host_count || violation_fields[i].counted == PORT_COUNTERS ||
	    subnet_node_of(n->subnet, row)->kind != SUBNET_HCA)
		return 0;
	return n->host_count(n->user, row, violation_fields[i].counted);
}

void sma_violations_get(const struct smp_request *r, uint32_t row, uint8_t *info)
{
	const struct violations *all = r->sma ? r->sma->violations : NULL;

	for (size_t i = 0; i < VIOLATION_FIELDS; i++) {
		uint64_t v = net_info(r->net, row, violation_fields[i].field) +
			     violations_of_host(r->net, row, i) - (all ? all[row].reset[i] : 0);

		prm_set(info, violation_fields[i].field, v < VIOLATIONS_MOST ? v : VIOLATIONS_MOST);
	}
}

static void violations_reset(const struct smp_request *r, uint32_t row, size_t i)
{
	uint64_t counted = violations_of_host(r->net, row, i);
	struct violations **all = &r->sma->violations;

	net_info_set(r->net, row, violation_fields[i].field, 0);
	if (!*all && counted)
		*all = calloc(r->net->nports, sizeof(**all));
	/* Without memory the count goes on without a reset. */
	if (*all)
		(*all)[row].reset[i] = counted;
}

void sma_violations_set(const struct smp_request *r, uint32_t row, const uint8_t *info)
{
	for (size_t i = 0; i < VIOLATION_FIELDS; i++)
		if (!prm_get(info, violation_fields[i].field))
			violations_reset(r, row, i);
}

/* Writes who sent it to whom, from that byte of details on (IBTA 14.2.5.1, notices 257 to 259). */
static void violation_ends(uint8_t *details, unsigned at, const struct key_violation *v)
{
	mad_put32(details, at, (uint32_t)v->sl << 28 | (v->sqpn & IB_QPN_MASK));
	mad_put32(details, at + 4, v->dqpn & IB_QPN_MASK);
	if (v->grh) {
		memcpy(details + at + 8, v->sgid.raw, sizeof(v->sgid));
		memcpy(details + at + 24, v->dgid.raw, sizeof(v->dgid));
	}
}

static struct key_violation violation_of(const struct mad_packet *p, uint32_t row,
					 enum key_violation_kind kind)
{
	return (struct key_violation){
		.row = row,
		.key = kind == VIOLATION_QKEY ? p->qkey : p->pkey,
		.sqpn = p->sqpn,
		.dqpn = p->dqpn,
		.slid = p->slid,
		.dlid = p->dlid,
		.sl = p->sl,
		.kind = (uint8_t)kind,
		.grh = p->grh,
		.sgid = p->sgid,
		.dgid = p->dgid,
	};
}

static void key_violated(struct sma *s, const struct key_violation *v)
{
	uint8_t details[NOTICE_DETAILS] = {0};

	if (s->fabric->net->subnet->ports[v->row].ethernet)
		return;
	mad_put16(details, 2, v->slid);
	mad_put16(details, 4, v->dlid);
	mad_put32(details, 6, v->key);
	violation_ends(details, 10, v);
	notice_send(s, v->row, NOTICE_SECURITY,
		    v->kind == VIOLATION_QKEY ? NOTICE_BAD_QKEY : NOTICE_BAD_PKEY, details);
}

/* Counts a MAD with a bad key in a field of PortInfo, and tells the SM. */
static void mad_violated(struct sma *s, const struct mad_packet *p, enum key_violation_kind kind,
			 struct prm_field field)
{
	struct net *net = s->fabric->net;
	uint32_t end = net_end_port(net, p->row);
	uint32_t count = net_info(net, end, field);
	struct key_violation v;

	if (net->subnet->ports[end].ethernet)
		return;
	if (count < VIOLATIONS_MOST)
		net_info_set(net, end, field, count + 1);
	v = violation_of(p, end, kind);
	key_violated(s, &v);
}

void sma_pkey_violated(void *sma, const struct mad_packet *p)
{
	mad_violated(sma, p, VIOLATION_PKEY, (struct prm_field)PI_PKEY_VIOLATIONS);
}

void sma_qkey_violated(void *sma, const struct mad_packet *p)
{
	mad_violated(sma, p, VIOLATION_QKEY, (struct prm_field)PI_QKEY_VIOLATIONS);
}

/* Which parts of a notice 259 are valid. */
enum pkey_at_switch_valid {
	VALID_LIDS = 0x3,
	VALID_PKEY = 0x4,
	VALID_SL = 0x8,
	VALID_QPS = 0x30,
	VALID_GIDS = 0xc0,
};

static void pkey_enforced(struct sma *s, uint32_t row, const struct key_violation *v)
{
	const struct net *net = s->fabric->net;
	uint8_t details[NOTICE_DETAILS] = {0};
	unsigned valid = VALID_LIDS | VALID_PKEY | VALID_SL | VALID_QPS;

	mad_put16(details, 2, v->slid);
	mad_put16(details, 4, v->dlid);
	mad_put16(details, 6, v->key);
	violation_ends(details, 8, v);
	if (v->grh)
		valid |= VALID_GIDS;
	mad_put16(details, 0, valid);
	mad_put16(details, 48, net_info(net, net_end_port(net, row), PI_LID));
	details[50] = net->ports[row].number;
	notice_send(s, row, NOTICE_SECURITY, NOTICE_BAD_PKEY_AT_SWITCH, details);
}

void sma_pkey_enforced(void *sma, const struct mad_packet *p, uint32_t row)
{
	const struct key_violation v = violation_of(p, row, VIOLATION_PKEY_AT_SWITCH);

	pkey_enforced(sma, row, &v);
}

void sma_key_violated(struct sma *s, const struct key_violation *v)
{
	const struct subnet_packet p = {.dlid = v->dlid, .pkey = (uint16_t)v->key};
	uint32_t row;

	if (v->kind != VIOLATION_PKEY_AT_SWITCH) {
		key_violated(s, v);
		return;
	}
	/* Since then the packet may have got a way. */
	row = subnet_refused_at(s->fabric->net->subnet, v->row, &p);
	if (row != SUBNET_NONE)
		pkey_enforced(s, row, v);
}
