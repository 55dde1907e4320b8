// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flexio/internal.h"
#include "prm/cmd_qp.h"

#define LOG_DEPTH_MAX 15
/* Values for which attributes have no field: those of the manual's connections. */
#define ACK_TIMEOUT 14u
#define RNR_RETRIES 7u
#define HOP_LIMIT   64u

struct flexio_qp {
	struct flx_object object;
	struct mlx5dv_devx_obj *devx;
	struct flx_alias *alias;
	uint32_t number;
};

struct qp_command {
	uint8_t in[MODIFY_QP_IN_BYTES], out[CMD_OUT_BYTES];
};

static int qp_free(struct flexio_qp *qp)
{
	int err = qp->devx ? mlx5dv_devx_obj_destroy(qp->devx) : 0;

	if (err)
		return err;
	flx_alias_put(qp->alias);
	free(qp);
	return 0;
}

static void qp_drop(struct flx_object *object)
{
	(void)qp_free(container_of(object, struct flexio_qp, object));
}

/* ---- creation ---- */

static bool qp_wrong(const char *function, const char *field, long long value)
{
	flx_fail(function, "%s->%s: %lld is not possible",
		 strcmp(function, "flexio_qp_create") ? "fattr" : "qp_fattr", field, value);
	return false;
}

/* An attribute that the device can hold up to 'max'. */
struct qp_limit {
	const char *field;
	uint32_t value, max;
};

static bool qp_check_limits(const char *function, const struct qp_limit *limits, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (limits[i].value > limits[i].max)
			return qp_wrong(function, limits[i].field, limits[i].value);
	return true;
}

static bool qp_check_numbers(const struct flexio_qp_attr *attr)
{
	bool pool = attr->rq_type == FLEXIO_QP_QPC_RQ_TYPE_SRQ_RMP_XRC_SRQ_XRQ;
	const struct qp_limit limits[] = {
		{"uar_id", attr->uar_id, FLX_NUMBER_MAX},
		{"user_index", attr->user_index, FLX_NUMBER_MAX},
		{"sq_cqn", attr->no_sq ? 0 : attr->sq_cqn, FLX_NUMBER_MAX},
		{"rq_cqn", pool ? 0 : attr->rq_cqn, FLX_NUMBER_MAX},
		{"rmpqn", pool ? attr->rmpqn : 0, FLX_NUMBER_MAX},
	};

	return qp_check_limits("flexio_qp_create", limits, array_size(limits));
}

/* The rights that flexio_qp_attr lists. */
static bool qp_check_access(const char *function, const struct flexio_qp_attr *attr)
{
	const int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	return attr->qp_access_mask & ~known
		       ? qp_wrong(function, "qp_access_mask", attr->qp_access_mask)
		       : true;
}

static bool qp_check_attr(const struct flexio_qp_attr *attr)
{
	const char *function = "flexio_qp_create";

	if (attr->transport_type != FLEXIO_QPC_ST_RC && attr->transport_type != FLEXIO_QPC_ST_UC &&
	    attr->transport_type != FLEXIO_QPC_ST_UD)
		return qp_wrong(function, "transport_type", attr->transport_type);
	if (!qp_check_numbers(attr) || !qp_check_access(function, attr))
		return false;
	if (!attr->no_sq && (attr->log_sq_depth < 0 || attr->log_sq_depth > LOG_DEPTH_MAX))
		return qp_wrong(function, "log_sq_depth", attr->log_sq_depth);
	if (attr->log_rq_depth < 0 || attr->log_rq_depth > LOG_DEPTH_MAX)
		return qp_wrong(function, "log_rq_depth", attr->log_rq_depth);
	if (attr->rq_type != FLEXIO_QP_QPC_RQ_TYPE_REGULAR &&
	    attr->rq_type != FLEXIO_QP_QPC_RQ_TYPE_SRQ_RMP_XRC_SRQ_XRQ &&
	    attr->rq_type != FLEXIO_QP_QPC_RQ_TYPE_ZERO_SIZE_RQ)
		return qp_wrong(function, "rq_type", attr->rq_type);
	if (attr->qp_wq_buff_qmem.memtype > FLEXIO_MEMTYPE_HOST)
		return qp_wrong(function, "qp_wq_buff_qmem.memtype", attr->qp_wq_buff_qmem.memtype);
	if (attr->qp_wq_dbr_qmem.memtype > FLEXIO_MEMTYPE_HOST)
		return qp_wrong(function, "qp_wq_dbr_qmem.memtype", attr->qp_wq_dbr_qmem.memtype);
	return true;
}

static void qp_set_memory(const struct flexio_process *process, const struct flexio_qp_attr *attr,
			  uint8_t *in)
{
	const struct flexio_qmem *rings = &attr->qp_wq_buff_qmem, *record = &attr->qp_wq_dbr_qmem;
	uint8_t *qpc = in + CREATE_QP_CONTEXT;
	uint32_t dpa = DPA_UMEM + process->number;
	bool host = rings->memtype == FLEXIO_MEMTYPE_HOST;

	prm_set(in, CREATE_QP_UMEM, host ? rings->umem_id : dpa);
	prm_set(in, CREATE_QP_OFFSET, host ? rings->humem_offset : rings->daddr);
	host = record->memtype == FLEXIO_MEMTYPE_HOST;
	prm_set(qpc, QPC_DBR_UMEM, host ? record->umem_id : dpa);
	prm_set(qpc, QPC_DBR_ADDR, host ? record->humem_offset : record->daddr);
}

static void qp_fill(const struct flexio_qp_attr *attr, uint32_t pdn, uint8_t *qpc)
{
	bool zero = attr->rq_type == FLEXIO_QP_QPC_RQ_TYPE_ZERO_SIZE_RQ;

	prm_set(qpc, QPC_SERVICE, attr->transport_type);
	prm_set(qpc, QPC_PD, pdn);
	prm_set(qpc, QPC_MASTER, attr->no_sq == 0);
	prm_set(qpc, QPC_USER_INDEX, attr->user_index);
	prm_set(qpc, QPC_UAR_PAGE, attr->uar_id);
	prm_set(qpc, QPC_NO_SQ, attr->no_sq != 0);
	prm_set(qpc, QPC_LOG_SQ_SIZE, attr->no_sq ? 0 : (uint32_t)attr->log_sq_depth);
	prm_set(qpc, QPC_CQN_SEND, attr->sq_cqn);
	prm_set(qpc, QPC_RQ_TYPE, (uint32_t)attr->rq_type);
	prm_set(qpc, QPC_LOG_RQ_SIZE, zero ? 0 : (uint32_t)attr->log_rq_depth);
	prm_set(qpc, QPC_CQN_RECV, attr->rq_cqn);
	prm_set(qpc, QPC_SRQN, attr->rmpqn);
}

/* The receive queue lies in front of the send queue, where the queue pair has both. */
static uint64_t qp_ring_bytes(const struct flexio_qp_attr *attr)
{
	uint64_t receives =
		attr->rq_type == FLEXIO_QP_QPC_RQ_TYPE_REGULAR ? 16ull << attr->log_rq_depth : 0;

	return receives + (attr->no_sq ? 0 : 64ull << attr->log_sq_depth);
}

static bool qp_make(struct flexio_process *process, struct ibv_context *ctx,
		    const struct flexio_qp_attr *attr, struct flexio_qp *qp)
{
	struct ibv_pd *pd = attr->pd ? attr->pd : process->pd;
	uint8_t in[CREATE_QP_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	const char *function = "flexio_qp_create";
	uint32_t pdn;

	if (!qp_check_attr(attr) || !flx_pd_number(pd, function, "qp_fattr->pd", &pdn))
		return false;
	if (pd->context != ctx) {
		flx_fail(function, "qp_fattr->pd: it is of another context than the queue pair");
		return false;
	}
	if (ctx != process->ctx) {
		qp->alias = flx_alias_get(ctx, process, 0);
		if (!qp->alias) {
			flx_fail(function, "ibv_ctx: its device does not reach the process: %s",
				 strerror(errno));
			return false;
		}
	}
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_QP);
	qp_fill(attr, pdn, in + CREATE_QP_CONTEXT);
	qp_set_memory(process, attr, in);
	qp->devx = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	if (!qp->devx) {
		int err = errno;

		flx_fail(function,
			 "qp_fattr: the device refuses uar_id (0x%x), sq_cqn (0x%x), rq_cqn "
			 "(0x%x), rmpqn (0x%x), qp_wq_buff_qmem (%s) or qp_wq_dbr_qmem (%s): %s",
			 attr->uar_id, attr->sq_cqn, attr->rq_cqn, attr->rmpqn,
			 flx_qmem_text(&attr->qp_wq_buff_qmem).bytes,
			 flx_qmem_text(&attr->qp_wq_dbr_qmem).bytes, strerror(err));
		return false;
	}
	qp->number = prm_get32(out, CMD_OUT_NUMBER);
	return true;
}

static void qp_check_places(const struct flexio_process *process, const struct flexio_qp_attr *attr,
			    uint32_t number)
{
	const char *function = "flexio_qp_create";

	if (qp_ring_bytes(attr))
		flx_place_check(function, "qp_fattr->qp_wq_buff_qmem", &attr->qp_wq_buff_qmem,
				number, FLX_RING_UNIT);
	flx_place_check(function, "qp_fattr->qp_wq_dbr_qmem", &attr->qp_wq_dbr_qmem, number,
			FLX_RECORD_UNIT);
	if (!attr->no_sq)
		flx_uar_check(process, function, "qp_fattr->uar_id", attr->uar_id, number);
}

flexio_status flexio_qp_create(struct flexio_process *process, struct ibv_context *ibv_ctx,
			       struct flexio_qp_attr *qp_fattr, struct flexio_qp **qp_ptr)
{
	FLX_HOLD(hold);
	struct flexio_qp *qp;

	if (!flx_given(qp_ptr, __func__, "qp_ptr"))
		return FLEXIO_STATUS_FAILED;
	*qp_ptr = NULL;
	if (!flx_check(&hold, process, FLX_PROCESS, __func__, "process") ||
	    !flx_given(qp_fattr, __func__, "qp_fattr"))
		return FLEXIO_STATUS_FAILED;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return flx_fail(__func__, "no memory");
	if (!qp_make(process, ibv_ctx ? ibv_ctx : process->ctx, qp_fattr, qp)) {
		(void)qp_free(qp);
		return FLEXIO_STATUS_FAILED;
	}
	qp_check_places(process, qp_fattr, qp->number);
	flx_ring_check(process, __func__, "qp_fattr->qp_wq_buff_qmem", &qp_fattr->qp_wq_buff_qmem,
		       qp->number, qp_ring_bytes(qp_fattr));
	qp->object.destroy = qp_drop;
	flx_object_add(&qp->object, FLX_QP, process);
	*qp_ptr = qp;
	return FLEXIO_STATUS_SUCCESS;
}

flexio_status flexio_qp_destroy(struct flexio_qp *qp)
{
	FLX_HOLD(hold);

	if (!flx_claim(&hold, qp, FLX_QP, __func__, "qp"))
		return FLEXIO_STATUS_FAILED;
	qp_drop(&qp->object);
	return FLEXIO_STATUS_SUCCESS;
}

uint32_t flexio_qp_get_qp_num(struct flexio_qp *qp)
{
	FLX_HOLD(hold);

	return flx_check(&hold, qp, FLX_QP, __func__, "qp") ? qp->number : UINT32_MAX;
}

/* ---- states ---- */

/* Returns the state; QPC_STATE_ERR if the device does not say. */
static enum qpc_state qp_state_of(struct flexio_qp *qp)
{
	uint8_t in[SHORT_QP_IN_BYTES] = {0}, out[QUERY_QP_OUT_BYTES] = {0};

	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_QP);
	prm_set(in, CMD_IN_NUMBER, qp->number);
	if (mlx5dv_devx_obj_query(qp->devx, in, sizeof(in), out, sizeof(out)))
		return QPC_STATE_ERR;
	return (enum qpc_state)prm_get(out + QUERY_QP_CONTEXT, QPC_STATE);
}

enum flexio_qp_state flexio_qp_state_get(struct flexio_qp *qp)
{
	FLX_HOLD(hold);
	enum qpc_state state;

	if (!flx_check(&hold, qp, FLX_QP, __func__, "qp"))
		return FLEXIO_QP_STATE_ERR;
	state = qp_state_of(qp);
	/* The program knows fewer states. */
	if (state == QPC_STATE_SQERR)
		return FLEXIO_QP_STATE_ERR;
	if (state == QPC_STATE_SQD || state == QPC_STATE_SQ_DRAINING)
		return FLEXIO_QP_STATE_RTS;
	return (enum flexio_qp_state)state;
}

static void qp_set_access(const struct flexio_qp_attr *attr, uint8_t *qpc)
{
	prm_set(qpc, QPC_RRE, (attr->qp_access_mask & IBV_ACCESS_REMOTE_READ) != 0);
	prm_set(qpc, QPC_RWE, (attr->qp_access_mask & IBV_ACCESS_REMOTE_WRITE) != 0);
	prm_set(qpc, QPC_RAE, (attr->qp_access_mask & IBV_ACCESS_REMOTE_ATOMIC) != 0);
}

static void qp_set_path(const struct flexio_qp_attr *attr, uint8_t *ads)
{
	uint64_t mac = 0;

	for (unsigned i = 0; attr->dest_mac && i < 6; i++)
		mac = mac << 8 | attr->dest_mac[i];
	prm_set(ads, ADS_RMAC, mac);
	prm_set(ads, ADS_GRH, attr->grh != 0);
	prm_set(ads, ADS_LOOPBACK, attr->fl != 0);
	prm_set(ads, ADS_RLID, attr->rlid);
	prm_set(ads, ADS_SRC_INDEX, attr->gid_table_index);
	prm_set(ads, ADS_HOP_LIMIT, HOP_LIMIT);
	prm_set(ads, ADS_UDP_SPORT, attr->udp_sport);
	memcpy(ads + ADS_RGID, &attr->rgid_or_rip, sizeof(attr->rgid_or_rip));
}

/* Fills in the whole context; a transition reads what it needs. */
static void qp_fill_modify(const struct flexio_qp_attr *attr, uint8_t *qpc)
{
	uint8_t *ads = qpc + QPC_PRIMARY_PATH;

	qp_set_access(attr, qpc);
	qp_set_path(attr, ads);
	prm_set(qpc, QPC_ISOLATE, attr->isolate_vl_tc != 0);
	prm_set(ads, ADS_PORT, attr->vhca_port_num);
	prm_set(ads, ADS_ACK_TIMEOUT, ACK_TIMEOUT);
	prm_set(qpc, QPC_MTU, attr->path_mtu);
	prm_set(qpc, QPC_REMOTE_QPN, attr->remote_qp_num);
	prm_set(qpc, QPC_NEXT_RECV_PSN, attr->next_rcv_psn);
	prm_set(qpc, QPC_NEXT_SEND_PSN, attr->next_send_psn);
	prm_set(qpc, QPC_MIN_RNR_NAK, attr->min_rnr_nak_timer);
	prm_set(qpc, QPC_RETRY_COUNT, attr->retry_count);
	prm_set(qpc, QPC_RNR_RETRY, RNR_RETRIES);
	prm_set(qpc, QPC_LOG_RRA_MAX, attr->log_rra_max);
	prm_set(qpc, QPC_LOG_SRA_MAX, attr->log_sra_max);
}

static bool qp_check_modify(const struct flexio_qp_attr *attr)
{
	const struct qp_limit limits[] = {
		{"remote_qp_num", attr->remote_qp_num, FLX_NUMBER_MAX},
		{"min_rnr_nak_timer", attr->min_rnr_nak_timer, 31},
		{"path_mtu", attr->path_mtu, FLEXIO_QP_QPC_MTU_BYTES_4K},
		{"retry_count", attr->retry_count, 7},
		{"next_rcv_psn", attr->next_rcv_psn, FLX_NUMBER_MAX},
		{"next_send_psn", attr->next_send_psn, FLX_NUMBER_MAX},
		{"log_rra_max", attr->log_rra_max, 7},
		{"log_sra_max", attr->log_sra_max, 7},
	};

	return qp_check_limits("flexio_qp_modify", limits, array_size(limits));
}

/* Returns the command of a transition; 0: the state machine does not have it. */
static enum prm_opcode qp_transition(enum qpc_state from, enum flexio_qp_state to)
{
	static const struct {
		enum qpc_state from;
		enum flexio_qp_state to;
		enum prm_opcode opcode;
	} rows[] = {
		{QPC_STATE_RST, FLEXIO_QP_STATE_INIT, PRM_OP_RST2INIT_QP},
		{QPC_STATE_INIT, FLEXIO_QP_STATE_INIT, PRM_OP_INIT2INIT_QP},
		{QPC_STATE_INIT, FLEXIO_QP_STATE_RTR, PRM_OP_INIT2RTR_QP},
		{QPC_STATE_RTR, FLEXIO_QP_STATE_RTS, PRM_OP_RTR2RTS_QP},
		{QPC_STATE_RTS, FLEXIO_QP_STATE_RTS, PRM_OP_RTS2RTS_QP},
		{QPC_STATE_SQERR, FLEXIO_QP_STATE_RTS, PRM_OP_SQERR2RTS_QP},
	};

	if (to == FLEXIO_QP_STATE_ERR)
		return PRM_OP_2ERR_QP;
	if (to == FLEXIO_QP_STATE_RST)
		return PRM_OP_2RST_QP;
	for (size_t i = 0; i < array_size(rows); i++)
		if (rows[i].from == from && rows[i].to == to)
			return rows[i].opcode;
	return (enum prm_opcode)0;
}

static uint32_t qp_options(const struct flexio_qp_attr_opt_param_mask *mask)
{
	uint32_t opt = 0;

	if (mask && mask->qp_access_mask)
		opt |= QP_OPT_RRE | QP_OPT_RWE | QP_OPT_RAE;
	if (mask && mask->min_rnr_nak_timer)
		opt |= QP_OPT_RNR_TIMEOUT;
	return opt;
}

flexio_status flexio_qp_modify(struct flexio_qp *qp, struct flexio_qp_attr *fattr,
			       struct flexio_qp_attr_opt_param_mask *mask)
{
	FLX_HOLD(hold);
	struct qp_command cmd = {0};
	enum qpc_state state;
	enum prm_opcode opcode;
	int err;

	if (!flx_check(&hold, qp, FLX_QP, __func__, "qp") || !flx_given(fattr, __func__, "fattr"))
		return FLEXIO_STATUS_FAILED;
	state = qp_state_of(qp);
	opcode = qp_transition(state, fattr->next_state);
	if (!opcode)
		return flx_fail(__func__, "fattr->next_state: from state %u none leads to %u",
				state, fattr->next_state);
	prm_set(cmd.in, CMD_IN_OPCODE, opcode);
	prm_set(cmd.in, CMD_IN_NUMBER, qp->number);
	if (opcode != PRM_OP_2ERR_QP && opcode != PRM_OP_2RST_QP) {
		if (!qp_check_modify(fattr) || !qp_check_access(__func__, fattr))
			return FLEXIO_STATUS_FAILED;
		prm_set(cmd.in, MODIFY_QP_OPT, qp_options(mask));
		qp_fill_modify(fattr, cmd.in + MODIFY_QP_CONTEXT);
	}
	err = mlx5dv_devx_obj_modify(qp->devx, cmd.in, sizeof(cmd.in), cmd.out, sizeof(cmd.out));
	if (!err)
		return FLEXIO_STATUS_SUCCESS;
	flx_fail(__func__,
		 "fattr: the device refuses vhca_port_num (%u), gid_table_index (%u), "
		 "remote_qp_num (0x%x) or path_mtu (%u): %s",
		 fattr->vhca_port_num, fattr->gid_table_index, fattr->remote_qp_num,
		 fattr->path_mtu, strerror(err));
	return flx_refused(qp->object.process, __func__, err);
}
