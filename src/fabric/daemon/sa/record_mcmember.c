// SPDX-License-Identifier: BSD-2-Clause
/* MCMemberRecord (15.2.5.17): joining, creating and leaving groups, and asking for them. */
#include "fabric/daemon/sa/sa.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- multicast groups and their members ---- */

#define GROUPS_MOST  NET_MULTICAST_CAP
#define LIFE_DEFAULT 18u

bool sa_is_multicast(const uint8_t *gid)
{
	return gid[0] == 0xff;
}

struct sa_group *sa_group_find(const struct sa *s, const uint8_t *mgid)
{
	for (struct sa_group *g = s->groups; g; g = g->next)
		if (!memcmp(&g->mgid, mgid, sizeof(g->mgid)))
			return g;
	return NULL;
}

static bool group_mlid_free(const struct sa *s, uint32_t mlid)
{
	for (const struct sa_group *g = s->groups; g; g = g->next)
		if (g->mlid == mlid)
			return false;
	return true;
}

/* Returns the lowest free MLID, or 0. */
static uint16_t group_mlid(const struct sa *s)
{
	for (uint32_t mlid = MAD_LID_MULTICAST; mlid < MAD_LID_MULTICAST + GROUPS_MOST; mlid++)
		if (group_mlid_free(s, mlid))
			return (uint16_t)mlid;
	return 0;
}

/*
 * Makes a group with the wanted MLID if that is free, else with the lowest free one.  NULL: none,
 * or no memory.
 */
static struct sa_group *sa_group_new(struct sa *s, uint16_t wanted_mlid)
{
	bool wanted = wanted_mlid >= MAD_LID_MULTICAST &&
		      wanted_mlid < MAD_LID_MULTICAST + GROUPS_MOST &&
		      group_mlid_free(s, wanted_mlid);
	uint16_t mlid = wanted ? wanted_mlid : group_mlid(s);
	struct sa_group *g = mlid ? calloc(1, sizeof(*g)) : NULL, **end;

	if (!g)
		return NULL;
	g->mlid = mlid;
	for (end = &s->groups; *end; end = &(*end)->next)
		;
	*end = g;
	s->ngroups++;
	return g;
}

static void group_free(struct sa_group *g)
{
	free(g->members);
	free(g);
}

static void sa_group_remove(struct sa *s, struct sa_group *g)
{
	struct sa_group **at = &s->groups;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	s->ngroups--;
	group_free(g);
}

/* The SM must make the trees anew. */
static void sa_group_changed(struct sa *s)
{
	if (s->groups_changed)
		loop_queue(s->fabric->loop, s->groups_changed);
}

struct sa_member *sa_member_find(struct sa_group *g, const uint8_t *gid)
{
	for (uint32_t i = 0; i < g->nmembers; i++)
		if (!memcmp(&g->members[i].gid, gid, sizeof(g->members[i].gid)))
			return &g->members[i];
	return NULL;
}

/* NULL: no memory. */
static struct sa_member *sa_member_new(struct sa_group *g)
{
	struct sa_member *m = reallocarray(g->members, g->nmembers + 1u, sizeof(*g->members));

	if (!m)
		return NULL;
	g->members = m;
	m += g->nmembers++;
	*m = (struct sa_member){0};
	return m;
}

static void sa_member_remove(struct sa_group *g, struct sa_member *m)
{
	*m = g->members[--g->nmembers];
}

/* A group without a full member does not exist (15.2.5.17), except the one that we keep. */
static bool sa_group_alive(const struct sa_group *g)
{
	for (uint32_t i = 0; i < g->nmembers; i++)
		if (g->members[i].join_state & (SA_JOIN_FULL | SA_JOIN_SENDS_FULL))
			return true;
	return g->well_known;
}

/* Makes IPoIB's broadcast group of the default partition (RFC 4391), which hosts join first. */
int sa_groups_open(struct sa *s)
{
	static const uint8_t broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,	0,
					      0,    0,	  0,	0,    0xff, 0xff, 0xff, 0xff};
	struct sa_group *g;

	if (sa_group_find(s, broadcast))
		return 0;
	g = sa_group_new(s, 0);
	if (!g)
		return -ENOMEM;
	memcpy(&g->mgid, broadcast, sizeof(broadcast));
	g->pkey = SUBNET_PKEY_DEFAULT;
	g->qkey = 0x0b1b;
	g->mtu = IB_MTU_2048;
	g->rate = 3; /* 10 Gb/s: every port has it */
	g->life = LIFE_DEFAULT;
	g->scope = 2;
	g->well_known = true;
	return 0;
}

void sa_groups_close(struct sa *s)
{
	while (s->groups)
		sa_group_remove(s, s->groups);
}

#define COMP(c) (1ull << MCM_COMP_##c)

#define MASK_JOIN   (COMP(MGID) | COMP(PORT_GID) | COMP(JOIN_STATE))
#define MASK_CREATE (MASK_JOIN | COMP(QKEY) | COMP(CLASS) | COMP(PKEY) | COMP(FLOW) | COMP(SL))

#define GROUP_LIFE	   18u
#define PKEY_PARTITION	   0x7fffu
#define SIGNATURE_IPOIB_V4 0x401bu
#define SIGNATURE_IPOIB_V6 0x601bu
#define SIGNATURE_SA	   0xa01bu
#define SCOPE_LINK_LOCAL   2u

/* ---- what a request says ---- */

static uint32_t field_wanted(const struct sa_query *q, struct prm_field f)
{
	return prm_get32(q->record, f);
}

static bool both_asked(const struct sa_query *q, unsigned selector)
{
	return sa_asked(q, selector) && sa_asked(q, selector + 1);
}

static bool values_valid(const struct sa_query *q)
{
	uint32_t mtu = field_wanted(q, MCM_MTU);

	if (both_asked(q, MCM_COMP_MTU_SEL) && (mtu < IB_MTU_256 || mtu > IB_MTU_4096))
		return false;
	return !both_asked(q, MCM_COMP_RATE_SEL) || sa_rate_valid(field_wanted(q, MCM_RATE));
}

/* Tells whether the group has what the request names; MTU, rate, life time by selectors. */
static bool group_has(const struct sa_query *q, const struct sa_group *g)
{
	uint32_t pkey = field_wanted(q, MCM_PKEY);

	if (sa_asked(q, MCM_COMP_PKEY) && ((pkey & PKEY_PARTITION) != (g->pkey & PKEY_PARTITION) ||
					   !((pkey | g->pkey) & ~PKEY_PARTITION & 0xffffu)))
		return false;
	if ((sa_asked(q, MCM_COMP_QKEY) && field_wanted(q, MCM_QKEY) != g->qkey) ||
	    (sa_asked(q, MCM_COMP_CLASS) && field_wanted(q, MCM_CLASS) != g->traffic_class) ||
	    (sa_asked(q, MCM_COMP_SL) && field_wanted(q, MCM_SL) != g->sl) ||
	    (sa_asked(q, MCM_COMP_FLOW) && field_wanted(q, MCM_FLOW) != g->flow) ||
	    (sa_asked(q, MCM_COMP_HOP_LIMIT) && field_wanted(q, MCM_HOP_LIMIT) != g->hop_limit))
		return false;
	if (both_asked(q, MCM_COMP_MTU_SEL) &&
	    !sa_select((enum sa_selector)field_wanted(q, MCM_MTU_SEL), field_wanted(q, MCM_MTU),
		       g->mtu))
		return false;
	if (both_asked(q, MCM_COMP_RATE_SEL) &&
	    !sa_select_rate((enum sa_selector)field_wanted(q, MCM_RATE_SEL),
			    field_wanted(q, MCM_RATE), g->rate))
		return false;
	return !both_asked(q, MCM_COMP_LIFE_SEL) ||
	       sa_select((enum sa_selector)field_wanted(q, MCM_LIFE_SEL), field_wanted(q, MCM_LIFE),
			 g->life);
}

/* Writes what the group is into a record. */
static void group_tell(const struct sa_group *g, uint8_t *record)
{
	memcpy(record + MCM_AT_MGID, &g->mgid, sizeof(g->mgid));
	prm_set(record, MCM_QKEY, g->qkey);
	prm_set(record, MCM_MLID, g->mlid);
	prm_set(record, MCM_MTU_SEL, SA_EXACTLY);
	prm_set(record, MCM_MTU, g->mtu);
	prm_set(record, MCM_CLASS, g->traffic_class);
	prm_set(record, MCM_PKEY, g->pkey);
	prm_set(record, MCM_RATE_SEL, SA_EXACTLY);
	prm_set(record, MCM_RATE, g->rate);
	prm_set(record, MCM_LIFE_SEL, SA_EXACTLY);
	prm_set(record, MCM_LIFE, g->life);
	prm_set(record, MCM_SL, g->sl);
	prm_set(record, MCM_FLOW, g->flow);
	prm_set(record, MCM_HOP_LIMIT, g->hop_limit);
	prm_set(record, MCM_SCOPE, g->scope);
}

/* ---- creating ---- */

/* Returns the value that a selector leaves between the port's and the one asked for; 0: there is
 * none.  Values are positions in a list that rises. */
static uint32_t value_select(enum sa_selector selector, uint32_t value, uint32_t port)
{
	switch (selector) {
	case SA_GREATER:
		return value < port ? port : 0;
	case SA_LESS:
		return value > port ? port : value - 1;
	case SA_EXACTLY:
		return value;
	case SA_LARGEST:
		break;
	}
	return port;
}

static unsigned group_choose_mtu(const struct sa_query *q, uint32_t row, struct sa_group *g)
{
	uint32_t port = net_info(q->net, row, PI_NEIGHBOR_MTU), mtu = port;

	if (both_asked(q, MCM_COMP_MTU_SEL))
		mtu = value_select((enum sa_selector)field_wanted(q, MCM_MTU_SEL),
				   field_wanted(q, MCM_MTU), port);
	g->mtu = (uint8_t)mtu;
	return mtu >= IB_MTU_256 && mtu <= IB_MTU_4096 ? MAD_STATUS_OK : SA_INVALID;
}

static unsigned group_choose_rate(const struct sa_query *q, uint32_t row, struct sa_group *g)
{
	uint32_t port = sa_port_rate(q->net, row), order = sa_rate_order(port);

	if (both_asked(q, MCM_COMP_RATE_SEL))
		order = value_select((enum sa_selector)field_wanted(q, MCM_RATE_SEL),
				     sa_rate_order(field_wanted(q, MCM_RATE)), order);
	g->rate = (uint8_t)sa_rate_of_order(order);
	return g->rate ? MAD_STATUS_OK : SA_INVALID;
}

/* Tells whether an asker may give a group this name (o15-0.1.6). */
static bool mgid_allowed(const struct sa *s, const struct sa_query *q, const uint8_t *mgid)
{
	uint32_t signature = mad_get16(mgid, 2);
	uint8_t broadcast[16];
	const struct sa_group *g;

	if (!sa_is_multicast(mgid))
		return false;
	if (signature == SIGNATURE_SA && (mgid[1] & 0xf) == SCOPE_LINK_LOCAL)
		return false;
	if (signature != SIGNATURE_IPOIB_V4 && signature != SIGNATURE_IPOIB_V6)
		return !(mgid[1] & 0xe0);
	/* Groups of IPoIB take over what the broadcast group of their partition has. */
	memset(broadcast, 0, sizeof(broadcast));
	broadcast[0] = 0xff;
	broadcast[1] = (uint8_t)(0x10 | (mgid[1] & 0xf));
	mad_put16(broadcast, 2, SIGNATURE_IPOIB_V4);
	memcpy(broadcast + 4, mgid + 4, 2);
	memset(broadcast + 12, 0xff, 4);
	if (!memcmp(broadcast, mgid, sizeof(broadcast)))
		return true;
	g = sa_group_find(s, broadcast);
	return g && group_has(q, g);
}

/* Invents a name that no group has; the scope is the asker's, if it names one. */
static void mgid_invent(struct sa *s, const struct sa_query *q, uint8_t *mgid)
{
	uint32_t scope =
		sa_asked(q, MCM_COMP_SCOPE) ? field_wanted(q, MCM_SCOPE) : SCOPE_LINK_LOCAL;

	do {
		memset(mgid, 0, 16);
		mgid[0] = 0xff;
		mgid[1] = (uint8_t)(0x10 | scope);
		mad_put16(mgid, 2, SIGNATURE_SA);
		memcpy(mgid + 4, s->fabric->net->ports[s->row].info + 8, 8);
		mad_put32(mgid, 12, ++s->next_mgid);
	} while (sa_group_find(s, mgid));
}

static unsigned group_create(struct sa_query *q, uint32_t row, struct sa_group **out)
{
	static const uint8_t none[16];
	uint8_t *mgid = q->record + MCM_AT_MGID;
	struct sa_group *g, made = {0};
	unsigned status;

	if (!(field_wanted(q, MCM_JOIN_STATE) & (SA_JOIN_FULL | SA_JOIN_SENDS_FULL)))
		return SA_INVALID;
	if ((q->mask & MASK_CREATE) != MASK_CREATE)
		return SA_INSUFFICIENT;
	if (!memcmp(mgid, none, sizeof(none)))
		mgid_invent(q->sa, q, mgid);
	else if (!mgid_allowed(q->sa, q, mgid))
		return SA_INVALID;
	status = group_choose_mtu(q, row, &made);
	if (!status)
		status = group_choose_rate(q, row, &made);
	if (status)
		return status;
	g = sa_group_new(q->sa,
			 sa_asked(q, MCM_COMP_MLID) ? (uint16_t)field_wanted(q, MCM_MLID) : 0);
	if (!g)
		return SA_NO_RESOURCES;
	memcpy(&g->mgid, mgid, sizeof(g->mgid));
	g->mtu = made.mtu;
	g->rate = made.rate;
	g->life =
		both_asked(q, MCM_COMP_LIFE_SEL) ? (uint8_t)field_wanted(q, MCM_LIFE) : GROUP_LIFE;
	g->pkey = (uint16_t)field_wanted(q, MCM_PKEY);
	g->qkey = field_wanted(q, MCM_QKEY);
	g->flow = field_wanted(q, MCM_FLOW);
	g->sl = (uint8_t)field_wanted(q, MCM_SL);
	g->traffic_class = (uint8_t)field_wanted(q, MCM_CLASS);
	g->hop_limit =
		sa_asked(q, MCM_COMP_HOP_LIMIT) ? (uint8_t)field_wanted(q, MCM_HOP_LIMIT) : 0;
	g->scope = mgid[1] & 0xf;
	*out = g;
	return MAD_STATUS_OK;
}

/* ---- joining ---- */

static bool port_can(const struct sa_query *q, uint32_t row, const struct sa_group *g)
{
	return net_info(q->net, row, PI_NEIGHBOR_MTU) >= g->mtu &&
	       sa_rate_compare(sa_port_rate(q->net, row), g->rate) >= 0 &&
	       sa_has_pkey(q->net, row, g->pkey);
}

/* Only its port may change a membership, or its partition if another port asked for it. */
static bool member_allows(const struct sa_query *q, const struct sa_group *g,
			  const struct sa_member *m)
{
	return m->proxy ? sa_has_pkey(q->net, q->from, g->pkey) : m->row == q->from;
}

static unsigned member_join(struct sa_query *q, uint32_t row, struct sa_group *g)
{
	struct sa_member *m = sa_member_find(g, q->record + MCM_AT_PORT_GID);
	uint32_t state = field_wanted(q, MCM_JOIN_STATE);

	if (!state || !group_has(q, g) || !port_can(q, row, g) || (m && !member_allows(q, g, m)))
		return SA_INVALID;
	if (!m) {
		m = sa_member_new(g);
		if (!m)
			return SA_NO_RESOURCES;
		memcpy(&m->gid, q->record + MCM_AT_PORT_GID, sizeof(m->gid));
		m->row = row;
		m->proxy = row != q->from;
	}
	m->join_state |= (uint8_t)state;
	group_tell(g, q->record);
	prm_set(q->record, MCM_JOIN_STATE, m->join_state);
	return MAD_STATUS_OK;
}

/* Finds who asks, and for which port.  Returns a status. */
static unsigned mcmember_port(const struct sa_query *q, uint32_t *row)
{
	uint16_t shared;

	if (mad_get64(q->record, MCM_AT_PORT_GID) !=
	    prm_get(q->net->ports[q->sa->row].info, PI_GID_PREFIX))
		return SA_INVALID_GID;
	*row = sa_port_by_gid(q->net, q->record + MCM_AT_PORT_GID);
	if (*row == SUBNET_NONE || q->from == SUBNET_NONE)
		return SA_INVALID;
	if (*row != q->from && !sa_share_pkey(q->net, *row, q->from, &shared))
		return SA_INVALID;
	return MAD_STATUS_OK;
}

static unsigned mcmember_set(struct sa_query *q)
{
	struct sa_group *g = sa_group_find(q->sa, q->record + MCM_AT_MGID);
	bool fresh = !g;
	unsigned status;
	uint32_t row;

	status = mcmember_port(q, &row);
	if (status)
		return status;
	if (sa_asked(q, MCM_COMP_PKEY) && !(field_wanted(q, MCM_PKEY) & PKEY_PARTITION))
		return SA_INVALID;
	if (fresh)
		status = group_create(q, row, &g);
	if (status)
		return status;
	status = member_join(q, row, g);
	if (status && fresh)
		sa_group_remove(q->sa, g);
	if (status)
		return status;
	if (fresh)
		sa_report_group(q->sa, g, SA_TRAP_GROUP_CREATED);
	sa_group_changed(q->sa);
	return MAD_STATUS_OK;
}

/* ---- leaving ---- */

static unsigned mcmember_delete(struct sa_query *q)
{
	struct sa_group *g = sa_group_find(q->sa, q->record + MCM_AT_MGID);
	uint32_t state = field_wanted(q, MCM_JOIN_STATE);
	struct sa_member *m;

	if (!g)
		return SA_INVALID;
	m = sa_member_find(g, q->record + MCM_AT_PORT_GID);
	if (!m || !state || (state & ~(uint32_t)m->join_state) || !member_allows(q, g, m))
		return SA_INVALID;
	m->join_state &= (uint8_t)~state;
	group_tell(g, q->record);
	prm_set(q->record, MCM_JOIN_STATE, m->join_state);
	if (!m->join_state)
		sa_member_remove(g, m);
	if (!sa_group_alive(g)) {
		sa_report_group(q->sa, g, SA_TRAP_GROUP_DELETED);
		sa_group_remove(q->sa, g);
	}
	sa_group_changed(q->sa);
	return MAD_STATUS_OK;
}

static unsigned mcmember_change(struct sa_query *q, unsigned method)
{
	if ((q->mask & MASK_JOIN) != MASK_JOIN)
		return SA_INSUFFICIENT;
	if (!values_valid(q))
		return SA_INVALID;
	return method == MAD_SET ? mcmember_set(q) : mcmember_delete(q);
}

/* ---- asking ---- */

/*
 * Askers that we trust see each member.  Others see groups; they see a member only by its GID, and
 * never the member's part of a record (15.4.1.2).
 */
static bool members_shown(const struct sa_query *q)
{
	return q->trusted && !sa_asked(q, MCM_COMP_PORT_GID);
}

static unsigned mcmember_check(struct sa_query *q)
{
	return values_valid(q) ? MAD_STATUS_OK : SA_INVALID;
}

static uint64_t mcmember_count(const struct sa_query *q)
{
	uint64_t n = 0;

	for (const struct sa_group *g = q->sa->groups; g; g = g->next)
		n += members_shown(q) ? g->nmembers : 1;
	return n;
}

/* Returns number i, in the count of members_shown. */
static struct sa_group *mcmember_at(const struct sa_query *q, uint64_t i, struct sa_member **m)
{
	*m = NULL;
	for (struct sa_group *g = q->sa->groups; g; g = g->next) {
		uint32_t here = members_shown(q) ? g->nmembers : 1;

		if (i < here) {
			if (members_shown(q))
				*m = &g->members[i];
			return g;
		}
		i -= here;
	}
	return NULL;
}

static bool mcmember_get(const struct sa_query *q, uint64_t i, uint8_t *out)
{
	struct sa_member *m;
	struct sa_group *g = mcmember_at(q, i, &m);
	uint32_t state;

	if (!g || !group_has(q, g) ||
	    (q->from != SUBNET_NONE && !sa_has_pkey(q->net, q->from, g->pkey)))
		return false;
	if (sa_asked(q, MCM_COMP_PORT_GID)) {
		m = sa_member_find(g, q->record + MCM_AT_PORT_GID);
		if (!m)
			return false;
	}
	group_tell(g, out);
	state = m ? m->join_state : 0;
	if (sa_asked(q, MCM_COMP_JOIN_STATE) && field_wanted(q, MCM_JOIN_STATE) != state)
		return false;
	if (sa_asked(q, MCM_COMP_PROXY) && m && field_wanted(q, MCM_PROXY) != m->proxy)
		return false;
	if (!m || !q->trusted)
		return true;
	memcpy(out + MCM_AT_PORT_GID, &m->gid, sizeof(m->gid));
	prm_set(out, MCM_JOIN_STATE, state);
	prm_set(out, MCM_PROXY, m->proxy);
	return true;
}

/* The functions above match the other fields. */
static const struct sa_field mcmember_fields[] = {
	[MCM_COMP_MGID] = {0, 128},
	[MCM_COMP_MLID] = {288, 16},
	[MCM_COMP_SCOPE] = {384, 4},
};

const struct sa_record sa_mc_member_record = {
	.attribute = SA_MC_MEMBER_RECORD,
	.bytes = MCM_BYTES,
	.fields = mcmember_fields,
	.nfields = sizeof(mcmember_fields) / sizeof(mcmember_fields[0]),
	.check = mcmember_check,
	.count = mcmember_count,
	.get = mcmember_get,
	.change = mcmember_change,
};
