// SPDX-License-Identifier: BSD-2-Clause
/* See multicast.h.  IBTA volume 1, 10.5.2 and 11.3.6 ff. (attach and detach). */
#include "adapter/transport/multicast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/qp/qp.h"
#include "adapter/qp/qp_explain.h"
#include "adapter/transport/responder.h"
#include "base/hazard.h"
#include "base/trace.h"

struct multicast_group {
	_Atomic(struct multicast_group *) next;
	union ib_gid gid;
	uint16_t mlid; /* RoCE: 0 */
	uint32_t members;
	struct multicast_member {
		struct qp *qp;
		uint16_t
			mlid; /* by which it came, and has to go; RoCE looks at it for nothing else */
	} member[];
};

typedef _Atomic(struct multicast_group *) group_link;

static group_link *bucket_of(struct multicast *m, const union ib_gid *gid)
{
	uint64_t h = (gid->half[0] ^ gid->half[1]) * 0x9e3779b97f4a7c15ull;

	return &m->bucket[h >> 56 & (MULTICAST_BUCKETS - 1)];
}

static bool multicast_names(const struct multicast_group *g, const union ib_gid *gid, uint16_t mlid)
{
	return g->gid.half[0] == gid->half[0] && g->gid.half[1] == gid->half[1] && g->mlid == mlid;
}

/* The link that leads to the group, or to the end of its chain.  The caller holds the lock. */
static group_link *multicast_find(struct multicast *m, const union ib_gid *gid, uint16_t mlid)
{
	group_link *at = bucket_of(m, gid);
	struct multicast_group *g;

	while ((g = atomic_load_explicit(at, memory_order_relaxed)) &&
	       !multicast_names(g, gid, mlid))
		at = &g->next;
	return at;
}

static uint32_t index_of(const struct multicast_group *g, const struct qp *qp)
{
	uint32_t i = 0;

	while (i < g->members && g->member[i].qp != qp)
		i++;
	return i;
}

/* Puts 'fresh' (NULL: nothing) in place of the group that the link leads to.  The caller holds the
 * lock. */
static void multicast_replace(struct multicast *m, group_link *at, struct multicast_group *fresh)
{
	struct multicast_group *old = atomic_load_explicit(at, memory_order_relaxed);
	struct multicast_group *next =
		old ? atomic_load_explicit(&old->next, memory_order_relaxed) : NULL;

	if (fresh)
		atomic_store_explicit(&fresh->next, next, memory_order_relaxed);
	atomic_store_explicit(at, fresh ? fresh : next, memory_order_release);
	if (old) {
		hazard_wait(bucket_of(m, &old->gid), 1);
		free(old);
	}
}

static uint16_t mlid_of(const struct adapter *a, uint16_t mlid)
{
	/* A RoCE group has no LID (annex A16). */
	return a->port->ethernet ? 0 : mlid;
}

int qp_attach_mcast(struct qp *qp, const union ib_gid *gid, uint16_t mlid)
{
	struct adapter *a = qp->adapter;
	struct multicast *m = a->multicast;
	struct multicast_group *old, *fresh;
	const struct multicast_member joining = {qp, mlid};
	uint32_t n;
	group_link *at;
	int ret = 0;

	if (qp->create.type != IB_QPT_UD || !ib_gid_is_multicast(gid))
		return -EINVAL;
	mlid = mlid_of(a, mlid);
	pthread_mutex_lock(&m->lock);
	at = multicast_find(m, gid, mlid);
	old = atomic_load_explicit(at, memory_order_relaxed);
	n = old ? old->members : 0;
	if (old && index_of(old, qp) < n)
		goto unlock;
	ret = -ENOMEM;
	if (n >= ADAPTER_MAX_MCAST_QPS || (!old && m->groups >= ADAPTER_MAX_MCAST_GROUPS))
		goto unlock;
	fresh = malloc(sizeof(*fresh) + (n + 1) * sizeof(fresh->member[0]));
	if (!fresh)
		goto unlock;
	memset(fresh, 0, sizeof(*fresh));
	fresh->gid = *gid;
	fresh->mlid = mlid;
	fresh->members = n + 1;
	if (old)
		memcpy(fresh->member, old->member, n * sizeof(fresh->member[0]));
	fresh->member[n] = joining;
	m->groups += !old;
	multicast_replace(m, at, fresh);
	wire_join(a->wire, gid);
	ret = 1;
unlock:
	pthread_mutex_unlock(&m->lock);
	return ret;
}

/* Takes a member out of the group that the link leads to.  The caller holds the lock. */
static void multicast_leave(struct adapter *a, group_link *at, uint32_t i)
{
	struct multicast_group *old = atomic_load_explicit(at, memory_order_relaxed);
	uint32_t n = old->members - 1;
	struct multicast_group *fresh = NULL;

	wire_leave(a->wire, &old->gid);
	if (n) {
		fresh = malloc(sizeof(*fresh) + n * sizeof(fresh->member[0]));
		if (!fresh) {
			/* leaving must not fail: shrink the old group in place while nobody reads
			 * it */
			struct multicast_group *next =
				atomic_load_explicit(&old->next, memory_order_relaxed);

			atomic_store_explicit(at, next, memory_order_release);
			hazard_wait(bucket_of(a->multicast, &old->gid), 1);
			old->member[i] = old->member[n];
			old->members = n;
			atomic_store_explicit(at, old, memory_order_release);
			return;
		}
		memset(fresh, 0, sizeof(*fresh));
		fresh->gid = old->gid;
		fresh->mlid = old->mlid;
		fresh->members = n;
		memcpy(fresh->member, old->member, i * sizeof(fresh->member[0]));
		memcpy(fresh->member + i, old->member + i + 1, (n - i) * sizeof(fresh->member[0]));
	} else {
		a->multicast->groups--;
	}
	multicast_replace(a->multicast, at, fresh);
}

int qp_detach_mcast(struct qp *qp, const union ib_gid *gid, uint16_t mlid)
{
	struct adapter *a = qp->adapter;
	struct multicast_group *g;
	group_link *at;
	uint32_t i;
	int ret = -EINVAL;

	pthread_mutex_lock(&a->multicast->lock);
	at = multicast_find(a->multicast, gid, mlid_of(a, mlid));
	g = atomic_load_explicit(at, memory_order_relaxed);
	i = g ? index_of(g, qp) : 0;
	if (g && i < g->members && g->member[i].mlid == mlid) {
		multicast_leave(a, at, i);
		ret = 0;
	}
	pthread_mutex_unlock(&a->multicast->lock);
	return ret;
}

void multicast_forget(struct qp *qp)
{
	struct multicast *m = qp->adapter->multicast;

	if (qp->create.type != IB_QPT_UD)
		return;
	pthread_mutex_lock(&m->lock);
	for (unsigned b = 0; m->groups && b < MULTICAST_BUCKETS; b++) {
		group_link *at = &m->bucket[b];
		struct multicast_group *g;

		while ((g = atomic_load_explicit(at, memory_order_relaxed))) {
			uint32_t i = index_of(g, qp), n = g->members;

			if (i < n)
				multicast_leave(qp->adapter, at, i);
			/* the group has left the chain if this was its last member */
			if (i == n || n > 1)
				at = &atomic_load_explicit(at, memory_order_relaxed)->next;
		}
	}
	pthread_mutex_unlock(&m->lock);
}

static bool multicast_drop(const struct pkt *pkt, const char *why)
{
	trace(packet, dropped, pkt->dqpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn, why);
	return false;
}

static void multicast_drop_own(struct qp *qp, const struct pkt *pkt)
{
	trace(packet, dropped, qp->qpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn,
	      "own-message");
	if (explaining())
		qp_explain_received(qp, pkt,
				    "dropped: the QP has sent it itself and was made with "
				    "IBV_QP_CREATE_BLOCK_SELF_MCAST_LB");
}

/* A datagram from another machine names the port that it came to, and keeps its sender's address. */
static bool is_own_port(const struct adapter *a, const struct pkt *pkt)
{
	uint32_t own = wire_port_row(a->wire);

	return pkt->path->src_port == own &&
	       (!a->port->ethernet ||
		subnet_port_by_gid(wire_subnet(a->wire), &pkt->path->sgid) == own);
}

bool multicast_receive(struct adapter *a, const struct pkt *pkt)
{
	const union ib_gid *gid = &pkt->path->dgid;
	uint16_t mlid = mlid_of(a, pkt->path->dlid);
	group_link *bucket = bucket_of(a->multicast, gid);
	struct multicast_group *g;

	/* A multicast packet has a GRH (IBTA 9.6.1.2.1). */
	if (!pkt->path->grh)
		return multicast_drop(pkt, "no-grh");
	hazard_hold(bucket);
	g = atomic_load_explicit(bucket, memory_order_acquire);
	while (g && !multicast_names(g, gid, mlid))
		g = atomic_load_explicit(&g->next, memory_order_acquire);
	if (!g)
		return multicast_drop(pkt, "no-member");
	for (uint32_t i = 0; i < g->members; i++) {
		struct qp *qp = g->member[i].qp;
		bool own = qp->qpn == pkt->sqpn && is_own_port(a, pkt);

		if (!own || !qp->create.block_self_mcast)
			responder_receive(qp, pkt);
		else
			multicast_drop_own(qp, pkt);
	}
	return true;
}

void multicast_init(struct multicast *m)
{
	pthread_mutex_init(&m->lock, NULL);
}

void multicast_release(struct multicast *m)
{
	pthread_mutex_destroy(&m->lock);
}
