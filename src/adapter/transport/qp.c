// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs: how they are created, modified and destroyed. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/bypass/bypass.h"
#include "adapter/ethernet/rss.h"
#include "adapter/local/local.h"
#include "adapter/qp/path.h"
#include "adapter/qp/qp.h"
#include "adapter/qp/qp_state.h"
#include "adapter/transport/ack_timer.h"
#include "adapter/transport/icm_writer.h"
#include "adapter/qp/flow.h"
#include "adapter/transport/completer.h"
#include "adapter/transport/dc.h"
#include "adapter/transport/explain.h"
#include "adapter/transport/multicast.h"
#include "adapter/transport/path_migration.h"
#include "adapter/transport/responder.h"
#include "base/fence.h"
#include "base/trace.h"
#include "base/hazard.h"
#include "wire/route.h"

static const uint8_t bth_of[] = {
	[IB_QPT_RC] = BTH_RC,	       [IB_QPT_UC] = BTH_UC,	   [IB_QPT_UD] = BTH_UD,
	[IB_QPT_RAW_PACKET] = BTH_RAW, [IB_QPT_XRC_INI] = BTH_XRC, [IB_QPT_XRC_TGT] = BTH_XRC,
	[IB_QPT_DCI] = BTH_DC,	       [IB_QPT_DCT] = BTH_DC,
};

/* An RSS QP has neither rings nor completions of its own. */
static int check_rss(const struct qp_create_attr *attr)
{
	if (attr->type != IB_QPT_RAW_PACKET || attr->send_cq || attr->recv_cq || attr->srq ||
	    attr->sq_blocks || attr->rq_wqes)
		return -EINVAL;
	return rss_attr_ok(attr->rss) ? 0 : -EINVAL;
}

static int check_create(const struct qp_create_attr *attr)
{
	if (attr->rss)
		return check_rss(attr);
	if (attr->type != IB_QPT_RC && attr->type != IB_QPT_UC && attr->type != IB_QPT_UD &&
	    attr->type != IB_QPT_XRC_INI && attr->type != IB_QPT_XRC_TGT &&
	    attr->type != IB_QPT_RAW_PACKET && attr->type != IB_QPT_DCI && attr->type != IB_QPT_DCT)
		return -EOPNOTSUPP;
	if (attr->srq && attr->type == IB_QPT_RAW_PACKET)
		return -EINVAL;
	if (!attr->send_cq != !ib_qp_type_sends(attr->type) ||
	    !attr->xrcdn != (attr->type != IB_QPT_XRC_TGT))
		return -EINVAL;
	if (!ib_qp_type_sends(attr->type) && attr->sq_blocks)
		return -EINVAL;
	/* An XRC initiator, an XRC target (IBTA annex A14) and a DCI have no receives of their
	 * own. */
	if (attr->type == IB_QPT_XRC_INI || attr->type == IB_QPT_XRC_TGT ||
	    attr->type == IB_QPT_DCI) {
		if (attr->srq || attr->rq_wqes)
			return -EINVAL;
	} else if (!attr->recv_cq) {
		return -EINVAL;
	}
	if (attr->type == IB_QPT_DCT && (!attr->srq || attr->rq_wqes))
		return -EINVAL;
	if (attr->dc_streams &&
	    (attr->type != IB_QPT_DCI || attr->log_dc_errored > ADAPTER_LOG_MAX_DC_ERRORED))
		return -EINVAL;
	/* 65536 would alias the 16-bit counters of the doorbell record. */
	if ((attr->sq_blocks && !is_power_of_two(attr->sq_blocks)) || attr->sq_blocks > 0x8000 ||
	    (attr->rq_wqes && !is_power_of_two(attr->rq_wqes)) || attr->rq_wqes > 0x8000)
		return -EINVAL;
	if (attr->rq_wqes && (!is_power_of_two(attr->rq_wqe_bytes) || attr->rq_wqe_bytes < 16))
		return -EINVAL;
	return 0;
}

/* Lists the queue pair for people if it has no block, because then peers use packets. */
static void qp_note(struct qp *qp)
{
	if (!qp->resp.shared)
		expose_note_qp(wire_expose(qp->adapter->wire), qp->qpn, qp->create.type,
			       qp->attr.dest_qpn);
}

int qp_create(struct adapter *a, const struct qp_create_attr *attr, struct qp **out)
{
	int ret = check_create(attr);
	struct qp *qp;
	int64_t qpn;

	if (ret)
		return ret;
	if (attr->type == IB_QPT_RAW_PACKET && !a->port->ethernet)
		return -EOPNOTSUPP;
	qp = aligned_alloc(64, align_up(sizeof(*qp), 64));
	if (!qp)
		return -ENOMEM;
	memset(qp, 0, sizeof(*qp));
	qp->adapter = a;
	qp->create = *attr;
	atomic_init(&qp->loopback, attr->loopback);
	qp->bth = bth_of[attr->type];
	qp->reliable = qp->bth == BTH_RC || qp->bth == BTH_XRC || qp->bth == BTH_DC;
	if (attr->rss) {
		struct rss *rss = rss_create(attr->rss);

		/* the caller may free its attributes after this call */
		qp->create.rss = NULL;
		atomic_init(&qp->rss, rss);
		if (!rss) {
			ret = -ENOMEM;
			goto free_qp;
		}
	}
	if (attr->sq_blocks) {
		qp->send_ops = calloc(attr->sq_blocks, sizeof(*qp->send_ops));
		if (!qp->send_ops) {
			ret = -ENOMEM;
			goto free_qp;
		}
	}
	if (attr->type == IB_QPT_DCI)
		qp->dci = dci_create(attr);
	if (attr->type == IB_QPT_DCT)
		qp->dct = dct_create(attr);
	if (!qp->dci != (attr->type != IB_QPT_DCI) || !qp->dct != (attr->type != IB_QPT_DCT)) {
		ret = -ENOMEM;
		goto free_parts;
	}
	qpn = number_take(&a->qps, &a->attr, NUMBER_QPN);
	if (qpn < 0) {
		ret = (int)qpn;
		goto free_parts;
	}
	qp->qpn = (uint32_t)qpn;
	qp->req.direct = qp_is_direct(qp);
	/* Other queue pairs need only a note; each responder of a DC target has a block of its
	 * own. */
	qp->resp.shared =
		qp_is_connected(qp) ? expose_qp(wire_expose(a->wire), qp->qpn, attr->type) : NULL;
	qp_note(qp);
	qp->attr.path_mtu = IB_MTU_4096;
	/* SPDK asks for the port before it sets one. */
	qp->attr.port_num = ADAPTER_QP_PORTS;
	qp_reset_queues(qp);
	qp->timer.fire = ack_timer_fired;
	qp->flow.timer.fire = flow_due;
	wait_init(qp);
	qp_list(qp);
	if (attr->send_cq)
		cq_hold(attr->send_cq, qp->qpn);
	if (attr->recv_cq)
		cq_hold(attr->recv_cq, qp->qpn);
	if (attr->srq)
		srq_hold(attr->srq);
	number_publish(&a->qps, qp->qpn, qp);
	*out = qp;
	return 0;

free_parts:
	free(qp->dct);
	free(qp->dci);
	free(qp->send_ops);
free_qp:
	free(atomic_load(&qp->rss));
	free(qp);
	return ret;
}

uint32_t qp_number(const struct qp *qp)
{
	return qp->qpn;
}

void qp_destroy(struct qp *qp)
{
	struct adapter *a = qp->adapter;

	/* Send the answer to the peer's last message, which may still wait for a poll. */
	qp_continue(qp);
	/* From here on new packets and timers do not find the QP. */
	number_publish(&a->qps, qp->qpn, NULL);
	multicast_forget(qp);
	icm_writer_forget(qp);
	qp_lock(qp);
	completer_withdraw(qp);
	atomic_store(&qp->state, (uint32_t)IB_QPS_RESET);
	resp_revoke(qp);
	qp_unlock(qp);
	bypass_revoke_qp(qp);
	qp_forget(qp);
	hazard_wait(qp, sizeof(*qp));
	explain_flush();
	if (qp->dct)
		dct_destroy(qp);
	if (qp->create.send_cq)
		cq_release(qp->create.send_cq, qp->qpn);
	if (qp->create.recv_cq)
		cq_release(qp->create.recv_cq, qp->qpn);
	if (qp->create.srq)
		srq_release(qp->create.srq);
	if (qp->resp.shared)
		expose_qp_end(qp->resp.shared);
	expose_note_qp_end(wire_expose(a->wire), qp->qpn);
	expose_object_end(wire_expose(a->wire), qp->row);
	number_give(&a->qps, qp->qpn);
	free(qp->dci);
	free(qp->send_ops);
	free(atomic_load(&qp->rss));
	free(qp);
}

/* The reason why an address vector is refused, the primary path's or the alternate one's; NULL: it
 * is fine. */
static const char *path_refused(const struct qp *qp, const struct ib_ah *ah)
{
	if (ah->port_num > ADAPTER_QP_PORTS || ah->sgid_index >= SUBNET_ETHERNET_GIDS)
		return "ah_attr: the port has no such number, or no such sgid_index";
	/* RoCE routes by GID only. */
	if (qp->adapter->port->ethernet && !ah->is_global)
		return "ah_attr.is_global is 0, and RoCE needs a GRH: set is_global, grh.dgid and "
		       "grh.sgid_index";
	return NULL;
}

static const char *alternate_refused(const struct qp *qp, const struct qp_attr *attr)
{
	if (attr->alt_port_num < 1 || attr->alt_port_num > ADAPTER_QP_PORTS)
		return "alt_port_num: the device has no such port for queue pairs; the first is 1";
	if (attr->alt_pkey_index >= SUBNET_MAX_PKEYS)
		return "alt_pkey_index is past the end of the P_Key table";
	if (attr->alt_timeout > 31)
		return "alt_timeout is at most 31";
	return path_refused(qp, &attr->alt_ah);
}

/* The reason why an attribute is refused; NULL: all are fine. */
static const char *attribute_refused(const struct qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	const char *why = NULL;

	if (mask & IB_QP_PORT && (attr->port_num < 1 || attr->port_num > ADAPTER_QP_PORTS))
		return "port_num: the device has no such port for queue pairs; the first is 1";
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index >= SUBNET_MAX_PKEYS)
		return "pkey_index is past the end of the P_Key table";
	if (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096))
		return "path_mtu is none of IBV_MTU_256 to IBV_MTU_4096";
	if (mask & IB_QP_AV)
		why = path_refused(qp, &attr->ah);
	if (!why && mask & IB_QP_ALT_PATH)
		why = alternate_refused(qp, attr);
	if (why)
		return why;
	if (mask & IB_QP_PATH_MIG_STATE && !migration_may_set(qp, attr->path_mig_state))
		return "path_mig_state: IBV_MIG_REARM can be set in the state MIGRATED, and "
		       "IBV_MIG_MIGRATED in the state ARMED, into which only the peer leads";
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > ADAPTER_MAX_RD_ATOMIC)
		return "max_rd_atomic is larger than the device's max_qp_init_rd_atom";
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > ADAPTER_MAX_RD_ATOMIC)
		return "max_dest_rd_atomic is larger than the device's max_qp_rd_atom";
	if ((mask & IB_QP_TIMEOUT && attr->timeout > 31) ||
	    (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7) ||
	    (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31))
		return "timeout and min_rnr_timer are at most 31, retry_cnt and rnr_retry 7";
	return NULL;
}

/* True if the program may modify the QP so.  If not, notes why. */
static bool modification_ok(const struct qp *qp, const struct qp_attr *attr, uint32_t mask,
			    enum ib_qp_state cur, enum ib_qp_state next)
{
	const char *refused = attribute_refused(qp, attr, mask);

	if (!qp_transition_ok(qp->create.type, cur, next, mask)) {
		if (explaining())
			explain_transition(qp, cur, next, mask);
		return false;
	}
	return !refused || explained(false, "QP 0x%x: %s", qp->qpn, refused);
}

/* Copies the attributes that mask names. */
static void take_attributes(struct qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	struct qp_attr *to = &qp->attr;

#define TAKE(bit, field)                         \
	do {                                     \
		if (mask & (bit))                \
			to->field = attr->field; \
	} while (0)
	TAKE(IB_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	TAKE(IB_QP_ACCESS_FLAGS, access);
	TAKE(IB_QP_PKEY_INDEX, pkey_index);
	TAKE(IB_QP_PORT, port_num);
	TAKE(IB_QP_QKEY, qkey);
	TAKE(IB_QP_AV, ah);
	TAKE(IB_QP_PATH_MTU, path_mtu);
	TAKE(IB_QP_TIMEOUT, timeout);
	TAKE(IB_QP_RETRY_CNT, retry_cnt);
	TAKE(IB_QP_RNR_RETRY, rnr_retry);
	TAKE(IB_QP_RQ_PSN, rq_psn);
	TAKE(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IB_QP_SQ_PSN, sq_psn);
	TAKE(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IB_QP_ALT_PATH, alt_ah);
	TAKE(IB_QP_ALT_PATH, alt_port_num);
	TAKE(IB_QP_ALT_PATH, alt_pkey_index);
	TAKE(IB_QP_ALT_PATH, alt_timeout);
	TAKE(IB_QP_DEST_QPN, dest_qpn);
	TAKE(IB_QP_RATE_LIMIT, rate_limit);
#undef TAKE
}

static void set_expected_psn(struct qp *qp, uint32_t psn)
{
	resp_close(qp);
	qp->resp.epsn = psn;
}

/* The rights of a peer that executes by itself.  Without resources for READs and atomics it has no
 * right to these, because the responder would refuse them too. */
static uint32_t access_of_peer(const struct qp_attr *attr)
{
	const uint32_t answered = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC;

	return attr->max_dest_rd_atomic ? attr->access : attr->access & ~answered;
}

/* Sets the UDP source port from the attributes.  The queue pair may be sending meanwhile. */
static void qp_settle_udp_sport(struct qp *qp)
{
	const struct qp_attr *attr = &qp->attr;
	uint16_t port = attr->udp_sport
				? attr->udp_sport
				: path_udp_sport(attr->ah.flow_label, qp->qpn, attr->dest_qpn);

	atomic_store_explicit(&qp->path.udp_sport, port, memory_order_relaxed);
}

/* Derives what the state machines use from the attributes.  Returns true when resp_set_view
 * does. */
static bool apply_attributes(struct qp *qp, uint32_t mask)
{
	struct adapter *a = qp->adapter;

	qp->mtu = ib_mtu_bytes(qp->attr.path_mtu);
	if (mask & IB_QP_PKEY_INDEX)
		qp->pkey = subnet_pkey(a->port, qp->attr.pkey_index);
	if (mask & IB_QP_AV) {
		path_from_ah(a, &qp->attr.ah, &qp->path);
		qp->path.route = &qp->route;
	}
	if (mask & (IB_QP_AV | IB_QP_DEST_QPN))
		qp_settle_udp_sport(qp);
	qp->path.pkey = qp->pkey;
	qp->path.mtu = (uint8_t)qp->attr.path_mtu;
	if (mask & (IB_QP_AV | IB_QP_DEST_QPN | IB_QP_PKEY_INDEX | IB_QP_PATH_MTU))
		route_forget(&qp->route);
	if (mask & IB_QP_DEST_QPN)
		qp_note(qp);
	if (mask & IB_QP_TIMEOUT)
		ack_timer_set(qp);
	if (mask & IB_QP_RETRY_CNT)
		qp->comp.retry_left = qp->attr.retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		qp->comp.rnr_left = qp->attr.rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		set_expected_psn(qp, qp->attr.rq_psn & IB_PSN_MASK);
	if (mask & IB_QP_SQ_PSN) {
		qp->req.psn = qp->attr.sq_psn & IB_PSN_MASK;
		atomic_store(&qp->comp.acked_psn, qp->req.psn);
		qp->req.drained = false;
	}
	return resp_set_view(qp, &(struct qp_view){
					 .transport = qp->bth,
					 .dest_qpn = qp->attr.dest_qpn,
					 .port = qp->path.src_port,
					 .dest_port = qp->path.dst_port,
					 .pdn = qp->create.pdn,
					 .access = access_of_peer(&qp->attr),
					 .pkey = qp->pkey,
					 .xrcdn = qp->create.xrcdn,
				 });
}

/*
 * A queue begins at its first block after a reset.  Not every program sets the doorbell record back
 * (UCX does not for DC), so what it says now is of before, and counts for nothing until it changes or
 * the register names the queue.
 */
static void distrust_record(struct qp *qp)
{
	uint32_t record;

	if (qp->create.sq_blocks && !qp->create.region &&
	    usermem_fetch_be32(qp->producer, &record) && (uint16_t)record)
		atomic_store(&qp->req.silent_plus_1, record + UINT64_C(1));
}

static void enter_state(struct qp *qp, enum ib_qp_state from, enum ib_qp_state to)
{
	if (from == IB_QPS_RESET && to == IB_QPS_INIT)
		distrust_record(qp);
	/* The thread that flushes waits for peers' accesses first. */
	if (to == IB_QPS_ERR) {
		atomic_store(&qp->resp.revoked, true);
		atomic_store_explicit(&qp->failed_by, "ibv_modify_qp", memory_order_relaxed);
	}
	atomic_store(&qp->state, (uint32_t)to);
	if (to == IB_QPS_RESET || to == IB_QPS_ERR) {
		resp_revoke(qp);
		completer_withdraw(qp);
	}
	if (to == IB_QPS_RESET) {
		qp_reset_queues(qp);
		/* Packets that UC sent before may still be under way, with numbers that come
		 * again. */
		if (qp->bth == BTH_UC)
			qp->req.direct = false;
		if (qp->dci)
			dci_reset(qp->dci);
		qp_set_drain_sigerr(qp, false);
	}
	if (to == IB_QPS_RTR) {
		qp->was_ready = true;
		qp->resp.established = false;
	}
	if (to == IB_QPS_RTS && from == IB_QPS_SQE) {
		qp->req.stopped = false;
		atomic_store(&qp->comp.error_told, false);
	}
	if (to == IB_QPS_SQD && from == IB_QPS_RTS) {
		trace(sq, drain, qp->qpn, "modify");
		atomic_store(&qp->drain_notify, qp->attr.en_sqd_async_notify);
	}
	if (to == IB_QPS_ERR && from != IB_QPS_ERR)
		atomic_store(&qp->last_wqe_due, qp->create.srq != NULL);
	trace(qp, state, qp->qpn, qp_state_name(from), qp_state_name(to), "modify");
}

/*
 * Takes what has come while nobody looked, before the queue pair becomes what is wanted.  A device looks at a
 * packet when it comes, so that
 * - what an earlier connection has left is gone before RTR; otherwise it may fit the next connection, if that
 *   uses the same numbers.  A queue pair that is new has left nothing, and leaves its peer's first requests
 *   where they are;
 * - a request whose acknowledgement has come is not flushed.
 */
static void take_arrivals(struct qp *qp, enum ib_qp_state wanted)
{
	if ((wanted == IB_QPS_RTR && qp->was_ready) || wanted == IB_QPS_ERR)
		wire_catch_up(qp->adapter->wire);
}

/* Called without locks, after these attributes have changed. */
static void qp_reconnect(struct qp *qp, uint32_t mask, bool revoked)
{
	if (revoked)
		bypass_revoke_qp(qp);
	if (mask & IB_QP_AV && qp_is_connected(qp))
		wire_remote_connect(qp->adapter->wire, &qp->path, qp->attr.dest_qpn);
}

static void qp_migrate(struct qp *qp)
{
	bool revoked = false;
	uint32_t mask;

	qp_lock(qp);
	mask = migration_take(qp);
	if (mask)
		revoked = apply_attributes(qp, mask);
	qp_unlock(qp);
	qp_reconnect(qp, mask, revoked);
}

void qp_continue(struct qp *qp)
{
	if (migration_is_due(qp))
		qp_migrate(qp);
	(void)responder_continue(qp);
}

int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask)
{
	enum ib_qp_state cur, next = IB_QPS_RESET;
	bool revoked = true;
	int ret = -EINVAL;

	/* An RSS QP has no states; the errno is that of mlx5_ib. */
	if (qp->rss)
		return -ENOSYS;
	if (mask & IB_QP_STATE && attr->state == IB_QPS_RESET)
		qp_continue(qp); /* as in qp_destroy */
	if (mask & IB_QP_STATE)
		take_arrivals(qp, attr->state);
	qp_lock(qp);
	cur = qp_state(qp);
	if (mask & IB_QP_CUR_STATE && attr->cur_state != cur) {
		if (explaining())
			explain_cur_state(qp, cur, attr->cur_state);
		goto unlock;
	}
	next = mask & IB_QP_STATE ? attr->state : cur;
	if (!modification_ok(qp, attr, mask, cur, next))
		goto unlock;
	if (next != IB_QPS_RESET && next != IB_QPS_ERR) {
		take_attributes(qp, attr, mask);
		if (mask & IB_QP_PATH_MIG_STATE)
			mask |= migration_set(qp, attr->path_mig_state);
		revoked = apply_attributes(qp, mask);
	}
	enter_state(qp, cur, next);
	ret = 0;
unlock:
	qp_unlock(qp);
	if (!ret)
		qp_reconnect(qp, mask, revoked);
	/* flush, drain, or start what the program posted earlier */
	if (!ret && next != IB_QPS_RESET) {
		qp_kick(qp);
		adapter_run(qp->adapter);
	}
	return ret;
}

void qp_set_rss(struct qp *qp, struct rss *rss)
{
	rss = atomic_exchange(&qp->rss, rss);
	hazard_wait(rss, 1);
	free(rss);
}

void qp_set_loopback(struct qp *qp, uint32_t loopback)
{
	atomic_store(&qp->loopback, loopback);
}

void qp_set_udp_sport(struct qp *qp, uint16_t port)
{
	qp_lock(qp);
	qp->attr.udp_sport = port;
	qp_settle_udp_sport(qp);
	qp_unlock(qp);
}

void qp_query(struct qp *qp, struct qp_attr *attr)
{
	qp_lock(qp);
	*attr = qp->attr;
	attr->state = qp_state(qp);
	attr->cur_state = attr->state;
	attr->path_mig_state = migration_state(qp);
	attr->sq_draining = attr->state == IB_QPS_SQD &&
			    atomic_load(&qp->comp.head) != atomic_load(&qp->req.tail);
	/* The numbers of the next packets, as the device's context holds them. */
	if (attr->state != IB_QPS_RESET && attr->state != IB_QPS_INIT) {
		attr->rq_psn = qp->resp.epsn;
		attr->sq_psn = qp->req.psn;
	}
	qp_unlock(qp);
}

/* Prefetches the lines that the request needs.  They lie in the caches of the processor where the
 * program wrote it; if we fetched each line only when we use it, the delays would add up. */
static void fetch_ahead(const struct qp *qp)
{
	if (!qp->create.sq_blocks)
		return;
	__builtin_prefetch(qp->producer);
	__builtin_prefetch(send_ring_at(qp, qp->req.next_block));
	cq_own_ahead(qp->create.send_cq);
}

/* Notes the index that the register gave, unless the record says the same.  A value that lay in the
 * register for long may be older than the last one. */
static void note_rung(struct qp *qp, uint16_t pi)
{
	uint32_t old, record;

	/* A queue that was reset begins with the first block, whatever its register said before. */
	if (!qp->create.sq_blocks || qp->create.region || qp_state(qp) == IB_QPS_RESET)
		return;
	if (!send_ring_was_rung(qp) && usermem_fetch_be32(qp->producer, &record) &&
	    (uint16_t)record == pi)
		return;
	old = atomic_load(&qp->rung);
	if (!old || (int16_t)(pi - (uint16_t)old) > 0)
		atomic_store(&qp->rung, QP_RUNG | pi);
}

void adapter_doorbell(struct adapter *a, uint32_t qpn, uint16_t pi)
{
	struct qp *qp;

	hazard_enter();
	qp = number_find(&a->qps, qpn);
	if (qp) {
		fetch_ahead(qp);
		note_rung(qp, pi);
		qp_doorbell(qp);
	}
	hazard_leave();
}

void qp_recv_posted(struct qp *qp)
{
	/* Orders the store of the doorbell record before this read; partner: requester_flush. */
	fence_light();
	/* Only a QP in error acts at once: it flushes what the program has posted. */
	if (unlikely(qp_state(qp) == IB_QPS_ERR)) {
		qp_kick(qp);
		adapter_run(qp->adapter);
	}
}
