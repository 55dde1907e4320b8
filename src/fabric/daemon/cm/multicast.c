// SPDX-License-Identifier: BSD-2-Clause
/*
 * Groups that programs join.  On Ethernet nobody is asked: the group's GID follows from its address, and
 * the port hears the group when the program attaches its queue pair.  On InfiniBand the subnet
 * administration makes groups and counts their members.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/cm/id.h"

#define MULTICAST_QPN 0xffffffu
#define HOPS	      64u
#define ASK_MS	      1000u
#define ASK_RETRIES   2u

#define JOIN_FULL	0x1u /* JoinState */
#define JOIN_SENDS_FULL 0x8u

#define COMP(c) (1ull << MCM_COMP_##c)

#define MASK_LEAVE (COMP(MGID) | COMP(PORT_GID) | COMP(JOIN_STATE))
/* What makes the group, too, if there is none. */
#define MASK_JOIN (MASK_LEAVE | COMP(PKEY) | COMP(QKEY) | COMP(SL) | COMP(FLOW) | COMP(CLASS))
/* A group of IP over InfiniBand has what the broadcast group has. */
#define MASK_JOIN_IPOIB \
	(MASK_JOIN | COMP(RATE_SEL) | COMP(RATE) | COMP(MTU_SEL) | COMP(MTU) | COMP(HOP_LIMIT))

struct cm_group *cm_group_find(const struct cm *c, uint32_t number)
{
	for (const struct cm_id *id = cm_id_first(c); id; id = cm_id_after(id))
		for (struct cm_group *g = id->groups; g; g = g->next)
			if (g->number == number)
				return g;
	return NULL;
}

/* An event of the group; NULL: there is no memory. */
static struct cm_event *group_event(struct cm_group *g, enum cm_event_type type, int status)
{
	struct cm_event *e = cm_event_make(g->id, type, status);

	if (!e)
		return NULL;
	e->group = g;
	e->body.uid = g->uid;
	e->body.id = g->number;
	return e;
}

static void group_fails(struct cm_group *g, int status)
{
	struct cm_event *e = group_event(g, CM_MULTICAST_ERROR, status);

	if (e)
		cm_event_queue(e);
}

/* The program learns how to send to the group. */
static void group_tell(struct cm_group *g, const struct cm_path *to, uint32_t qkey)
{
	struct cm_event *e = group_event(g, CM_MULTICAST_JOIN, 0);
	struct rdma_ucm_ud_param *ud;

	if (!e)
		return;
	ud = &e->body.param.ud;
	ud->qp_num = MULTICAST_QPN;
	ud->qkey = qkey;
	cm_ah_attr(g->id, to, &ud->ah_attr);
	cm_event_queue(e);
}

/* ---- Ethernet ---- */

/* The GID of a group of RoCE v2: that of its IPv4 address, or its IPv6 address. */
static union ib_gid gid_of_ethernet(const struct cm_address *a)
{
	union ib_gid gid = {.half = {0, 0}};

	memcpy(gid.raw, a->ip, 16);
	if (a->family == AF_INET)
		gid.raw[10] = gid.raw[11] = 0xff;
	return gid;
}

static void ethernet_join(struct cm_group *g, const struct cm_address *a)
{
	const struct cm_path to = {
		.sgid = cm_port_gid(g->id), .dgid = gid_of_ethernet(a), .hop_limit = HOPS};

	group_tell(g, &to, g->id->qkey ? g->id->qkey : CM_UDP_QKEY);
}

/* ---- InfiniBand ---- */

/* IPoIB's broadcast group of the default partition (RFC 4391), of link-local scope. */
static const uint8_t broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,	0,
				      0,    0,	  0,	0,    0xff, 0xff, 0xff, 0xff};

/* The name of a group of that address; zero: the subnet administration finds one. */
static void mgid_of_infiniband(const struct cm_id *id, const struct cm_address *a, uint8_t mgid[16])
{
	memset(mgid, 0, 16);
	if (cm_address_is_any(a))
		return;
	/* One that the subnet administration has given before is written as an IPv6 address. */
	if (a->family == CM_AF_IB ||
	    (a->family == AF_INET6 && a->ip[0] == 0xff && (a->ip[1] & 0xf0) == 0x10 &&
	     a->ip[2] == 0xa0 && a->ip[3] == 0x1b)) {
		memcpy(mgid, a->ip, 16);
		return;
	}
	memcpy(mgid, broadcast, 6);
	if (a->family == AF_INET6) {
		mgid[2] = 0x60;
		memcpy(mgid + 6, a->ip + 6, 10);
	} else {
		memcpy(mgid + 12, a->ip + 12, 4);
		mgid[12] &= 0xf;
	}
	/* Groups of rdma_cm differ from those of IP. */
	if (id->ps == RDMA_PS_UDP)
		mgid[3] = 0x01;
}

/* Does another group of the same port stand for the same membership? */
static bool member_is_shared(const struct cm_group *g)
{
	const struct cm *c = g->cm;

	for (const struct cm_id *id = cm_id_first(c); id; id = cm_id_after(id))
		for (const struct cm_group *o = id->groups; o; o = o->next)
			if (o != g && o->member && o->row == g->row &&
			    !memcmp(o->record + MCM_AT_MGID, g->record + MCM_AT_MGID, 16) &&
			    prm_get(o->record, MCM_JOIN_STATE) ==
				    prm_get(g->record, MCM_JOIN_STATE))
				return true;
	return false;
}

static int group_ask(struct cm_group *g, uint8_t method, uint64_t mask, struct cm_sa_request *r)
{
	const struct cm_sa_ask ask = {
		.method = method,
		.attribute = SA_MC_MEMBER_RECORD,
		.mask = mask,
		.record = g->record,
		.bytes = MCM_BYTES,
		.timeout_ms = ASK_MS,
		.retries = ASK_RETRIES,
	};

	return cm_sa_send(g->cm, r, g->row, &ask);
}

/* Takes the port out of the group, unless another id has joined for it, too. */
static void infiniband_leave(struct cm_group *g)
{
	/* The answer does not matter: the port may be without a subnet manager by now. */
	if (g->member && !member_is_shared(g) && group_ask(g, MAD_DELETE, MASK_LEAVE, NULL))
		return;
	g->member = false;
}

/* The group of InfiniBand is there, and its port a member. */
static void join_answered(struct cm_sa_request *r, int status, const uint8_t *record)
{
	struct cm_group *g = container_of(r, struct cm_group, request);
	struct cm_path to = {.there = true, .group = true};

	if (status)
		g->member = false;
	else /* It has a name now. */
		memcpy(g->record + MCM_AT_MGID, record + MCM_AT_MGID, 16);
	if (!g->id) {
		infiniband_leave(g);
		free(g);
		return;
	}
	if (status) {
		group_fails(g, status);
		return;
	}
	to.sgid = cm_port_gid(g->id);
	memcpy(&to.dgid, record + MCM_AT_MGID, 16);
	to.dlid = (uint16_t)prm_get(record, MCM_MLID);
	to.sl = (uint8_t)prm_get(record, MCM_SL);
	to.rate = (uint8_t)prm_get(record, MCM_RATE);
	to.flow_label = prm_get32(record, MCM_FLOW);
	to.traffic_class = (uint8_t)prm_get(record, MCM_CLASS);
	to.hop_limit = (uint8_t)prm_get(record, MCM_HOP_LIMIT);
	group_tell(g, &to, prm_get32(record, MCM_QKEY));
}

static int infiniband_join_send(struct cm_group *g, uint64_t mask)
{
	const int ret = group_ask(g, MAD_SET, mask, &g->request);

	g->request.done = join_answered;
	g->member = !ret;
	return ret;
}

/* The broadcast group says what groups of IP have. */
static void broadcast_answered(struct cm_sa_request *r, int status, const uint8_t *record)
{
	static const struct prm_field taken[] = {MCM_QKEY, MCM_MTU, MCM_CLASS, MCM_PKEY,
						 MCM_RATE, MCM_SL,  MCM_FLOW,  MCM_HOP_LIMIT};
	struct cm_group *g = container_of(r, struct cm_group, request);

	if (!g->id) {
		free(g);
		return;
	}
	for (size_t i = 0; !status && i < array_size(taken); i++)
		prm_set(g->record, taken[i], prm_get(record, taken[i]));
	prm_set(g->record, MCM_MTU_SEL, SA_EXACTLY);
	prm_set(g->record, MCM_RATE_SEL, SA_EXACTLY);
	if (!status)
		g->id->qkey = prm_get32(g->record, MCM_QKEY);
	if (!status)
		status = infiniband_join_send(g, MASK_JOIN_IPOIB);
	if (status)
		group_fails(g, status);
}

static int infiniband_join(struct cm_group *g, const struct cm_address *a, bool sends_only)
{
	struct cm_id *id = g->id;
	const union ib_gid port = cm_port_gid(id);
	uint8_t mgid[16];
	int ret;

	mgid_of_infiniband(id, a, mgid);
	memcpy(g->record + MCM_AT_PORT_GID, &port, 16);
	prm_set(g->record, MCM_JOIN_STATE, sends_only ? JOIN_SENDS_FULL : JOIN_FULL);
	if (id->ps == RDMA_PS_IPOIB) {
		memcpy(g->record + MCM_AT_MGID, broadcast, 16);
		ret = group_ask(g, MAD_GET, COMP(MGID), &g->request);
		g->request.done = broadcast_answered;
		memcpy(g->record + MCM_AT_MGID, mgid, 16);
		return ret;
	}
	if (!id->qkey)
		id->qkey = CM_UDP_QKEY;
	memcpy(g->record + MCM_AT_MGID, mgid, 16);
	prm_set(g->record, MCM_PKEY, id->src.pkey ? id->src.pkey : SUBNET_PKEY_DEFAULT);
	prm_set(g->record, MCM_QKEY, id->qkey);
	return infiniband_join_send(g, MASK_JOIN);
}

/* ---- both ---- */

int cm_join(struct cm_id *id, const struct cm_address *a, uint64_t uid, bool sends_only,
	    uint32_t *number)
{
	const bool ethernet = id->row != SUBNET_NONE && cm_subnet(id->cm)->ports[id->row].ethernet;
	struct cm_group *g;
	int ret = 0;

	if (id->row == SUBNET_NONE || id->qp_type != IB_QPT_UD ||
	    (id->state != CM_ADDR_BOUND && id->state != CM_ADDR_IS_RESOLVED) ||
	    (ethernet && cm_address_is_any(a)))
		return -EINVAL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = (struct cm_group){.next = id->groups,
			       .id = id,
			       .cm = id->cm,
			       .row = id->row,
			       .number = id->cm->next_group++,
			       .uid = uid};
	id->groups = g;
	*number = g->number;
	if (ethernet)
		ethernet_join(g, a);
	else
		ret = infiniband_join(g, a, sends_only);
	if (ret)
		cm_leave(g);
	return ret;
}

void cm_leave(struct cm_group *g)
{
	struct cm_group **at = &g->id->groups;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	g->id = NULL;
	/* The answer ends it. */
	if (cm_sa_waits(&g->request))
		return;
	infiniband_leave(g);
	free(g);
}

/* ---- what happens to ports ---- */

/* A port's memberships are worth nothing when its link or its subnet manager has changed. */
static void port_changes(struct net_listener *l, enum net_event event, uint32_t row, uint32_t what)
{
	struct cm *c = container_of(l, struct cm, listener);

	(void)what;
	if (event != NET_STATE && event != NET_LID && event != NET_REREGISTER)
		return;
	for (const struct cm_id *id = cm_id_first(c); id; id = cm_id_after(id))
		for (struct cm_group *g = id->row == row ? id->groups : NULL; g; g = g->next)
			if (g->member && !g->lost && !cm_sa_waits(&g->request)) {
				g->lost = true;
				loop_queue(c->mad->loop, &c->groups_lost);
			}
}

static void groups_are_lost(struct loop *l, struct loop_work *w)
{
	struct cm *c = container_of(w, struct cm, groups_lost);

	(void)l;
	for (const struct cm_id *id = cm_id_first(c); id; id = cm_id_after(id))
		for (struct cm_group *g = id->groups; g; g = g->next)
			if (g->lost && !g->told_lost) {
				g->told_lost = true;
				group_fails(g, -ENETRESET);
			}
}

void cm_groups_open(struct cm *c)
{
	c->groups_lost.run = groups_are_lost;
	c->listener.event = port_changes;
	net_listen(c->mad->net, &c->listener);
}

void cm_groups_close(struct cm *c)
{
	loop_unqueue(c->mad->loop, &c->groups_lost);
}
