// SPDX-License-Identifier: BSD-2-Clause
/*
 * PathRecord: pairs of end ports, with the limits of the way on which the tables lead; and
 * MultiPathRecord, which asks for paths between lists of ports.
 */
#include "fabric/daemon/sa/sa.h"

#include <string.h>

#define PATH_LIFE     18u /* as long as the SMA's answers may take: 4.096 us << 18 */
#define MPR_MOST_GIDS 11u /* as many as one MAD has */

/* ---- a record ---- */

/* Gives the P_Key of the path: the one asked for if both have it, else one that they share. */
static bool path_pkey(const struct sa_query *q, bool asked, uint32_t wanted, uint32_t from,
		      uint32_t to, uint16_t *pkey)
{
	if (!sa_share_pkey(q->net, from, to, pkey))
		return false;
	if (!asked)
		return true;
	*pkey = (uint16_t)wanted;
	return sa_has_pkey(q->net, from, *pkey) && sa_has_pkey(q->net, to, *pkey);
}

struct path_ends {
	uint32_t from, to; /* rows */
	uint32_t listed;   /* place of 'to' in q->rows, or SUBNET_NONE */
	uint32_t slid, dlid;
	const uint8_t *sgid,
		*dgid; /* those that the query names, as a port has several; NULL: its own */
	bool pkey_asked;
	uint32_t pkey;
};

static void path_gid(const struct net *n, uint32_t row, const uint8_t *asked, uint8_t *out)
{
	union ib_gid own;

	sa_port_gid(n, row, &own);
	memcpy(out, asked ? asked : own.raw, sizeof(own));
}

static bool path_limits(const struct sa_query *q, const struct path_ends *e, struct sa_limits *l)
{
	if (e->listed == SUBNET_NONE)
		return sa_way(q->net, e->from, e->to, e->dlid, l);
	return sa_way_listed(q, e->from, e->listed, e->dlid, l);
}

static bool path_fill(const struct sa_query *q, const struct path_ends *e, uint8_t *out)
{
	const struct net *n = q->net;
	struct sa_limits limits;
	uint16_t pkey;

	if (!path_limits(q, e, &limits) ||
	    !path_pkey(q, e->pkey_asked, e->pkey, e->from, e->to, &pkey))
		return false;
	path_gid(n, e->to, e->dgid, out + PR_AT_DGID);
	path_gid(n, e->from, e->sgid, out + PR_AT_SGID);
	prm_set(out, PR_DLID, e->dlid);
	prm_set(out, PR_SLID, e->slid);
	prm_set(out, PR_REVERSIBLE, 1);
	prm_set(out, PR_PKEY, pkey);
	prm_set(out, PR_MTU_SEL, SA_EXACTLY);
	prm_set(out, PR_MTU, limits.mtu);
	prm_set(out, PR_RATE_SEL, SA_EXACTLY);
	prm_set(out, PR_RATE, limits.rate);
	prm_set(out, PR_LIFE_SEL, SA_EXACTLY);
	prm_set(out, PR_LIFE, PATH_LIFE);
	return true;
}

/* ---- PathRecord ---- */

/* The functions below match GIDs, LIDs, rates and the like; the rest is compared as it is. */
static const struct sa_field path_fields[] = {
	{0, 0},	   {0, 0}, {0, 0},   {0, 0}, {320, 16}, {336, 16}, {352, 1}, {0, 0},
	{356, 20}, {0, 0}, {384, 8}, {0, 0}, {0, 0},	{0, 0},	   {0, 0},   {428, 4},
};

/* What check finds: the ends; SUBNET_NONE: all ports that q->rows lists. */
enum path_scratch { PATH_FROM, PATH_TO };

/* Finds an end by GID, LID or both, which must agree.  Returns a status. */
static unsigned path_end(const struct sa_query *q, bool by_gid, const uint8_t *gid, bool by_lid,
			 uint32_t lid, uint32_t *row)
{
	uint32_t row_of_lid;

	*row = SUBNET_NONE;
	if (by_gid) {
		*row = sa_port_by_gid(q->net, gid);
		if (*row == SUBNET_NONE)
			return SA_INVALID_GID;
	}
	if (!by_lid)
		return MAD_STATUS_OK;
	row_of_lid = sa_port_by_lid(q->net, lid);
	if (row_of_lid == SUBNET_NONE)
		return SA_NO_RECORDS;
	if (by_gid && *row != row_of_lid)
		return SA_INVALID;
	*row = row_of_lid;
	return MAD_STATUS_OK;
}

static bool path_values_valid(bool mtu_asked, uint32_t mtu, bool rate_asked, uint32_t rate)
{
	if (mtu_asked && (mtu < IB_MTU_256 || mtu > IB_MTU_4096))
		return false;
	return !rate_asked || sa_rate_valid(rate);
}

static bool path_is_multicast(const struct sa_query *q)
{
	return sa_asked(q, PR_COMP_DGID) && sa_is_multicast(q->record + PR_AT_DGID);
}

/* Lists the ports of a side that the query does not name. */
static unsigned path_list_rows(struct sa_query *q)
{
	const bool all_to = q->scratch[PATH_TO] == SUBNET_NONE && !path_is_multicast(q);

	return q->scratch[PATH_FROM] != SUBNET_NONE && !all_to ? MAD_STATUS_OK : sa_list_ports(q);
}

static unsigned path_check(struct sa_query *q)
{
	unsigned status;

	if (!path_values_valid(sa_asked(q, PR_COMP_MTU_SEL) && sa_asked(q, PR_COMP_MTU),
			       prm_get32(q->record, PR_MTU),
			       sa_asked(q, PR_COMP_RATE_SEL) && sa_asked(q, PR_COMP_RATE),
			       prm_get32(q->record, PR_RATE)))
		return SA_INVALID;
	status = path_end(q, sa_asked(q, PR_COMP_SGID), q->record + PR_AT_SGID,
			  sa_asked(q, PR_COMP_SLID), prm_get32(q->record, PR_SLID),
			  &q->scratch[PATH_FROM]);
	if (status)
		return status;
	q->scratch[PATH_TO] = SUBNET_NONE;
	if (!path_is_multicast(q))
		status = path_end(q, sa_asked(q, PR_COMP_DGID), q->record + PR_AT_DGID,
				  sa_asked(q, PR_COMP_DLID), prm_get32(q->record, PR_DLID),
				  &q->scratch[PATH_TO]);
	return status ? status : path_list_rows(q);
}

static uint64_t path_count_side(const struct sa_query *q, enum path_scratch side)
{
	return q->scratch[side] == SUBNET_NONE ? q->nrows : 1;
}

static uint64_t path_count(const struct sa_query *q)
{
	if (path_is_multicast(q))
		return path_count_side(q, PATH_FROM);
	return path_count_side(q, PATH_FROM) * path_count_side(q, PATH_TO);
}

/* Gives row i of a side; false: no paths lead to that port. */
static bool path_side(const struct sa_query *q, enum path_scratch side, uint64_t i, uint32_t *row)
{
	*row = q->scratch[side] == SUBNET_NONE ? q->rows[i] : q->scratch[side];
	return sa_port_there(q->net, *row);
}

static const uint8_t *path_asked_gid(const struct sa_query *q, enum pr_component side)
{
	if (!sa_asked(q, side))
		return NULL;
	return q->record + (side == PR_COMP_SGID ? PR_AT_SGID : PR_AT_DGID);
}

/* The path to a group is the group's, whatever the way. */
static bool path_get_multicast(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	const struct sa_group *g = sa_group_find(q->sa, q->record + PR_AT_DGID);
	uint32_t from;

	if (!g || !path_side(q, PATH_FROM, i, &from) || !sa_has_pkey(q->net, from, g->pkey))
		return false;
	memcpy(out + PR_AT_DGID, &g->mgid, sizeof(g->mgid));
	path_gid(q->net, from, path_asked_gid(q, PR_COMP_SGID), out + PR_AT_SGID);
	prm_set(out, PR_DLID, g->mlid);
	prm_set(out, PR_SLID, sa_lid_of(q->net, from));
	prm_set(out, PR_FLOW, g->flow);
	prm_set(out, PR_HOP_LIMIT, g->hop_limit);
	prm_set(out, PR_CLASS, g->traffic_class);
	prm_set(out, PR_PKEY, g->pkey);
	prm_set(out, PR_SL, g->sl);
	prm_set(out, PR_MTU_SEL, SA_EXACTLY);
	prm_set(out, PR_MTU, g->mtu);
	prm_set(out, PR_RATE_SEL, SA_EXACTLY);
	prm_set(out, PR_RATE, g->rate);
	prm_set(out, PR_LIFE_SEL, SA_EXACTLY);
	prm_set(out, PR_LIFE, g->life);
	return true;
}

static bool path_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	const uint64_t to_count = path_count_side(q, PATH_TO);
	struct path_ends e = {
		.listed = SUBNET_NONE,
		.sgid = path_asked_gid(q, PR_COMP_SGID),
		.dgid = path_asked_gid(q, PR_COMP_DGID),
		.pkey_asked = sa_asked(q, PR_COMP_PKEY),
		.pkey = prm_get32(q->record, PR_PKEY),
	};

	if (path_is_multicast(q))
		return path_get_multicast(q, i, out);
	if (q->scratch[PATH_TO] == SUBNET_NONE)
		e.listed = (uint32_t)(i % to_count);
	if (!path_side(q, PATH_FROM, i / to_count, &e.from) ||
	    !path_side(q, PATH_TO, i % to_count, &e.to))
		return false;
	/* The query may name any of the port's LIDs. */
	e.slid = sa_asked(q, PR_COMP_SLID) ? prm_get32(q->record, PR_SLID)
					   : sa_lid_of(q->net, e.from);
	e.dlid =
		sa_asked(q, PR_COMP_DLID) ? prm_get32(q->record, PR_DLID) : sa_lid_of(q->net, e.to);
	return path_fill(q, &e, out);
}

static bool path_match(const struct sa_query *q, const uint8_t *record)
{
	if (sa_asked(q, PR_COMP_MTU_SEL) && sa_asked(q, PR_COMP_MTU) &&
	    !sa_select((enum sa_selector)prm_get32(q->record, PR_MTU_SEL),
		       prm_get32(q->record, PR_MTU), prm_get32(record, PR_MTU)))
		return false;
	if (sa_asked(q, PR_COMP_RATE_SEL) && sa_asked(q, PR_COMP_RATE) &&
	    !sa_select_rate((enum sa_selector)prm_get32(q->record, PR_RATE_SEL),
			    prm_get32(q->record, PR_RATE), prm_get32(record, PR_RATE)))
		return false;
	return !sa_asked(q, PR_COMP_LIFE_SEL) || !sa_asked(q, PR_COMP_LIFE) ||
	       sa_select((enum sa_selector)prm_get32(q->record, PR_LIFE_SEL),
			 prm_get32(q->record, PR_LIFE), prm_get32(record, PR_LIFE));
}

const struct sa_record sa_path_record = {
	.attribute = SA_PATH_RECORD,
	.bytes = PR_BYTES,
	.fields = path_fields,
	.nfields = sizeof(path_fields) / sizeof(path_fields[0]),
	.check = path_check,
	.count = path_count,
	.get = path_get,
	.match = path_match,
};

/* ---- MultiPathRecord ---- */

static const uint8_t *multi_gid(const struct sa_query *q, uint32_t i)
{
	return q->record + MPR_AT_GIDS + (size_t)i * sizeof(union ib_gid);
}

static unsigned multi_check(struct sa_query *q)
{
	const uint32_t from = prm_get32(q->record, MPR_SGID_COUNT);
	const uint32_t to = prm_get32(q->record, MPR_DGID_COUNT);

	if (!sa_asked(q, MPR_COMP_SGID_COUNT) || !sa_asked(q, MPR_COMP_DGID_COUNT))
		return SA_INSUFFICIENT;
	if (!from || !to || from + to > MPR_MOST_GIDS)
		return SA_INVALID;
	if (!path_values_valid(sa_asked(q, MPR_COMP_MTU_SEL) && sa_asked(q, MPR_COMP_MTU),
			       prm_get32(q->record, MPR_MTU),
			       sa_asked(q, MPR_COMP_RATE_SEL) && sa_asked(q, MPR_COMP_RATE),
			       prm_get32(q->record, MPR_RATE)))
		return SA_INVALID;
	for (uint32_t i = 0; i < from + to; i++)
		if (sa_port_by_gid(q->net, multi_gid(q, i)) == SUBNET_NONE)
			return SA_INVALID_GID;
	return MAD_STATUS_OK;
}

static uint64_t multi_count(const struct sa_query *q)
{
	return (uint64_t)prm_get32(q->record, MPR_SGID_COUNT) *
	       prm_get32(q->record, MPR_DGID_COUNT);
}

static bool multi_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	const uint32_t nfrom = prm_get32(q->record, MPR_SGID_COUNT);
	struct path_ends e = {
		.listed = SUBNET_NONE,
		.sgid = multi_gid(q, (uint32_t)i % nfrom),
		.dgid = multi_gid(q, nfrom + (uint32_t)i / nfrom),
		.pkey_asked = sa_asked(q, MPR_COMP_PKEY),
		.pkey = prm_get32(q->record, MPR_PKEY),
	};

	e.from = sa_port_by_gid(q->net, e.sgid);
	e.to = sa_port_by_gid(q->net, e.dgid);
	if (e.from == SUBNET_NONE || e.to == SUBNET_NONE)
		return false;
	e.slid = sa_lid_of(q->net, e.from);
	e.dlid = sa_lid_of(q->net, e.to);
	return path_fill(q, &e, out);
}

static bool multi_match(const struct sa_query *q, const uint8_t *record)
{
	if (sa_asked(q, MPR_COMP_SL) && prm_get32(q->record, MPR_SL) != prm_get32(record, PR_SL))
		return false;
	if (sa_asked(q, MPR_COMP_MTU_SEL) && sa_asked(q, MPR_COMP_MTU) &&
	    !sa_select((enum sa_selector)prm_get32(q->record, MPR_MTU_SEL),
		       prm_get32(q->record, MPR_MTU), prm_get32(record, PR_MTU)))
		return false;
	if (sa_asked(q, MPR_COMP_RATE_SEL) && sa_asked(q, MPR_COMP_RATE) &&
	    !sa_select_rate((enum sa_selector)prm_get32(q->record, MPR_RATE_SEL),
			    prm_get32(q->record, MPR_RATE), prm_get32(record, PR_RATE)))
		return false;
	return !sa_asked(q, MPR_COMP_LIFE_SEL) || !sa_asked(q, MPR_COMP_LIFE) ||
	       sa_select((enum sa_selector)prm_get32(q->record, MPR_LIFE_SEL),
			 prm_get32(q->record, MPR_LIFE), prm_get32(record, PR_LIFE));
}

const struct sa_record sa_multi_path_record = {
	.attribute = SA_MULTI_PATH_RECORD,
	.bytes = PR_BYTES,
	.answered_as = SA_PATH_RECORD,
	.check = multi_check,
	.count = multi_count,
	.get = multi_get,
	.match = multi_match,
};
