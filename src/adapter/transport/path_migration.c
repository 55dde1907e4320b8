// SPDX-License-Identifier: BSD-2-Clause
/* See path_migration.h. */
#include "adapter/transport/path_migration.h"

#include <string.h>

#include "adapter/qp/path.h"
#include "adapter/qp/qp_explain.h"
#include "base/trace.h"

static const char *const state_names[] = {
	[IB_MIG_MIGRATED] = "MIGRATED",
	[IB_MIG_REARM] = "REARM",
	[IB_MIG_ARMED] = "ARMED",
	[MIGRATION_DUE] = "DUE",
};

/* Changes the state if it is still 'from'. */
static bool migration_step(struct qp *qp, uint32_t from, uint32_t to, const char *why)
{
	if (!atomic_compare_exchange_strong(&qp->migration, &from, to))
		return false;
	trace(path, state, qp->qpn, state_names[from], state_names[to], why);
	return true;
}

enum ib_mig_state migration_state(const struct qp *qp)
{
	return (enum ib_mig_state)min_u32(atomic_load(&qp->migration), IB_MIG_ARMED);
}

/* A program cannot arm, because the peer does, and does not take its wish back while the peer may
 * have armed.  Setting what is set changes nothing. */
bool migration_may_set(const struct qp *qp, uint32_t state)
{
	switch (state) {
	case IB_MIG_MIGRATED:
		return migration_state(qp) != IB_MIG_REARM;
	case IB_MIG_REARM:
		return migration_state(qp) != IB_MIG_ARMED;
	default:
		return false;
	}
}

/* Notes that an armed queue pair has to migrate. */
static bool migration_note(struct qp *qp, const char *why)
{
	if (!migration_step(qp, IB_MIG_ARMED, MIGRATION_DUE, why))
		return false;
	if (explaining())
		qp_explain(qp, "the alternate path takes over (%s)", why);
	return true;
}

uint32_t migration_set(struct qp *qp, uint32_t state)
{
	if (state == IB_MIG_MIGRATED) {
		(void)migration_note(qp, "modify");
		return migration_take(qp);
	}
	if (migration_step(qp, IB_MIG_MIGRATED, IB_MIG_REARM, "modify")) {
		atomic_store(&qp->migration_refused, false);
		/* From here on the peer's requests have to be packets. */
		resp_close(qp);
	}
	return 0;
}

uint32_t migration_take(struct qp *qp)
{
	struct qp_attr *attr = &qp->attr;

	if (!migration_step(qp, MIGRATION_DUE, IB_MIG_MIGRATED, "alternate-path"))
		return 0;
	attr->ah = attr->alt_ah;
	attr->udp_sport = attr->alt_ah.udp_sport;
	attr->port_num = attr->alt_port_num;
	attr->pkey_index = attr->alt_pkey_index;
	attr->timeout = attr->alt_timeout;
	qp_async(qp, IB_EVENT_PATH_MIG);
	return IB_QP_AV | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_TIMEOUT | IB_QP_RETRY_CNT;
}

bool migration_begin(struct qp *qp, const char *why)
{
	if (migration_note(qp, why))
		qp_kick(qp);
	return migration_is_due(qp);
}

/* ---- what the peer says ---- */

static bool same_addresses(const struct path *path, const struct path *own)
{
	if (path->grh != own->grh || (own->grh && !path_has_gids_of(path, own)))
		return false;
	return path->slid == own->dlid && path->dlid == own->slid;
}

bool migration_has_addresses(const struct qp *qp, const struct path *path)
{
	struct path alt;

	path_from_ah(qp->adapter, &qp->attr.alt_ah, &alt);
	return same_addresses(path, &alt);
}

/* True if the packet, which is from the peer's queue pair, came along the alternate path (IBTA
 * 9.6.1.5 and 17.2.8.1). */
static bool came_along_alternate(const struct qp *qp, const struct pkt *pkt)
{
	uint16_t pkey = subnet_pkey(qp->adapter->port, qp->attr.alt_pkey_index);

	return pkey_match(pkt->pkey, pkey) && migration_has_addresses(qp, pkt->path);
}

enum migration_verdict migration_check(struct qp *qp, const struct pkt *pkt)
{
	if (pkt->migreq_clear || migration_state(qp) != IB_MIG_ARMED ||
	    !qp_is_peer(qp, pkt->path->src_port, pkt->sqpn))
		return MIGRATION_NO_MATTER;
	if (came_along_alternate(qp, pkt)) {
		(void)migration_begin(qp, "peer-migrated");
		return MIGRATION_FOLLOWED;
	}
	trace(packet, dropped, qp->qpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn,
	      "path-migration");
	if (explaining())
		qp_explain_received(qp, pkt,
				    "the peer has migrated, and not to this QP's alternate path: "
				    "compare alt_ah_attr and alt_pkey_index of both");
	/* One event is enough until the program arms again: the peer may repeat the packet. */
	if (!atomic_exchange(&qp->migration_refused, true))
		qp_async(qp, IB_EVENT_PATH_MIG_ERR);
	return MIGRATION_REFUSED;
}

void migration_heard(struct qp *qp, const struct pkt *pkt)
{
	if (pkt->migreq_clear)
		(void)migration_step(qp, IB_MIG_REARM, IB_MIG_ARMED, "peer-armed");
}
