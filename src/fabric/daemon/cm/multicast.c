// SPDX-License-Identifier: BSD-2-Clause
/*
 * Groups that programs join.  On Ethernet nobody is asked: the group's GID follows from its address, and
 * the port hears the group when the program attaches its queue pair.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/cm/id.h"

#define MULTICAST_QPN 0xffffffu
#define HOPS	      64u

bool cm_address_is_multicast(const struct cm_address *a)
{
	return a->family == AF_INET ? (a->ip[12] & 0xf0) == 0xe0 : a->ip[0] == 0xff;
}

struct cm_group *cm_group_find(const struct cm *c, uint32_t number)
{
	for (const struct cm_id *id = cm_id_next(c, 0); id; id = cm_id_next(c, id->number + 1))
		for (struct cm_group *g = id->groups; g; g = g->next)
			if (g->number == number)
				return g;
	return NULL;
}

/* The GID of a group of RoCE v2: that of its IPv4 address, or its IPv6 address. */
static union ib_gid group_gid(const struct cm_address *a)
{
	union ib_gid gid = {.half = {0, 0}};

	memcpy(gid.raw, a->ip, 16);
	if (a->family == AF_INET)
		gid.raw[10] = gid.raw[11] = 0xff;
	return gid;
}

static void group_tell(struct cm_group *g, const union ib_gid *mgid)
{
	struct cm_event *e = cm_event_make(g->id, CM_MULTICAST_JOIN, 0);
	struct cm_path path = g->id->path;
	struct rdma_ucm_ud_param *ud;

	if (!e)
		return;
	e->group = g;
	e->body.uid = g->uid;
	e->body.id = g->number;
	ud = &e->body.param.ud;
	ud->qp_num = MULTICAST_QPN;
	ud->qkey = g->id->qkey ? g->id->qkey : CM_UDP_QKEY;
	g->id->path =
		(struct cm_path){.sgid = cm_port_gid(g->id), .dgid = *mgid, .hop_limit = HOPS};
	cm_ah_attr(g->id, &ud->ah_attr);
	g->id->path = path;
	cm_event_queue(e);
}

int cm_join(struct cm_id *id, const struct cm_address *a, uint64_t uid, uint32_t *number)
{
	struct cm_group *g;
	union ib_gid mgid;

	if (id->row == SUBNET_NONE || id->qp_type != IB_QPT_UD ||
	    (id->state != CM_ADDR_BOUND && id->state != CM_ADDR_IS_RESOLVED) ||
	    cm_address_is_any(a))
		return -EINVAL;
	/* Groups of InfiniBand are the subnet administration's, which we do not ask yet. */
	if (!id->cm->mad->net->subnet->ports[id->row].ethernet)
		return -EOPNOTSUPP;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	mgid = group_gid(a);
	*g = (struct cm_group){
		.next = id->groups, .id = id, .number = id->cm->next_group++, .uid = uid};
	id->groups = g;
	*number = g->number;
	group_tell(g, &mgid);
	return 0;
}

void cm_leave(struct cm_group *g)
{
	struct cm_group **at = &g->id->groups;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	free(g);
}
