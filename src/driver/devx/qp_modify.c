// SPDX-License-Identifier: BSD-2-Clause
/*
 * The transitions of queue pairs and their query.  A transition takes the attributes that the
 * service needs for it, and those that the command's mask adds; the device checks both.
 */
#include <errno.h>
#include <string.h>

#include "base/explain.h"
#include "base/log.h"
#include "driver/devx/path.h"
#include "driver/devx/qp.h"
#include "driver/uverbs/core/port.h"
#include "driver/uverbs/objects/qp.h"
#include "prm/cmd_qp.h"

enum service { SERVICE_RC, SERVICE_UC, SERVICE_UD, SERVICE_DCI, SERVICES };

#define INIT_NEEDS (IB_QP_PKEY_INDEX | IB_QP_PORT)
#define SEND_NEEDS \
	(IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC)
#define PATH_NEEDS (IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN)

static const struct transition {
	uint16_t opcode;
	bool by_mask; /* the command has a context and a mask */
	uint8_t from; /* ANY: any state */
	uint8_t to;
	uint32_t needs[SERVICES];
} transitions[] = {
#define ANY IB_QPS_COUNT
	{PRM_OP_RST2INIT_QP,
	 true,
	 IB_QPS_RESET,
	 IB_QPS_INIT,
	 {INIT_NEEDS | IB_QP_ACCESS_FLAGS, INIT_NEEDS | IB_QP_ACCESS_FLAGS, INIT_NEEDS | IB_QP_QKEY,
	  INIT_NEEDS}},
	{PRM_OP_INIT2INIT_QP, true, IB_QPS_INIT, IB_QPS_INIT, {0}},
	{PRM_OP_INIT2RTR_QP,
	 true,
	 IB_QPS_INIT,
	 IB_QPS_RTR,
	 {PATH_NEEDS | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER, PATH_NEEDS, 0,
	  IB_QP_PATH_MTU}},
	{PRM_OP_RTR2RTS_QP,
	 true,
	 IB_QPS_RTR,
	 IB_QPS_RTS,
	 {SEND_NEEDS, IB_QP_SQ_PSN, IB_QP_SQ_PSN, SEND_NEEDS}},
	{PRM_OP_RTS2RTS_QP, true, IB_QPS_RTS, IB_QPS_RTS, {0}},
	{PRM_OP_SQERR2RTS_QP, true, IB_QPS_SQE, IB_QPS_RTS, {0}},
	{PRM_OP_2ERR_QP, false, ANY, IB_QPS_ERR, {0}},
	{PRM_OP_2RST_QP, false, ANY, IB_QPS_RESET, {0}},
};

static const struct {
	uint32_t opt;  /* enum qp_opt */
	uint32_t mask; /* enum ib_qp_attr_mask */
} options[] = {
	{QP_OPT_ALT_PATH, IB_QP_ALT_PATH},
	{QP_OPT_RRE | QP_OPT_RAE | QP_OPT_RWE, IB_QP_ACCESS_FLAGS},
	{QP_OPT_PKEY_INDEX, IB_QP_PKEY_INDEX},
	{QP_OPT_QKEY, IB_QP_QKEY},
	{QP_OPT_RNR_TIMEOUT, IB_QP_MIN_RNR_TIMER},
	{QP_OPT_PRIMARY_PATH, IB_QP_AV},
	{QP_OPT_SRA_MAX, IB_QP_MAX_QP_RD_ATOMIC},
	{QP_OPT_RRA_MAX, IB_QP_MAX_DEST_RD_ATOMIC},
	{QP_OPT_PM_STATE, IB_QP_PATH_MIG_STATE},
	{QP_OPT_RETRY_COUNT, IB_QP_RETRY_CNT},
	{QP_OPT_RNR_RETRY, IB_QP_RNR_RETRY},
	{QP_OPT_ACK_TIMEOUT, IB_QP_TIMEOUT},
	{QP_OPT_PRIMARY_PORT, IB_QP_PORT},
};

static const struct {
	struct prm_field field;
	uint32_t opt;
	uint32_t access;
} rights[] = {
	{QPC_RRE, QP_OPT_RRE, IB_ACCESS_REMOTE_READ},
	{QPC_RWE, QP_OPT_RWE, IB_ACCESS_REMOTE_WRITE},
	{QPC_RAE, QP_OPT_RAE, IB_ACCESS_REMOTE_ATOMIC},
};

static enum service service_of(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_UC:
		return SERVICE_UC;
	case IB_QPT_UD:
		return SERVICE_UD;
	case IB_QPT_DCI:
		return SERVICE_DCI;
	default:
		return SERVICE_RC;
	}
}

static uint32_t mask_of(uint32_t opt)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < array_size(options); i++)
		if (opt & options[i].opt)
			mask |= options[i].mask;
	return mask;
}

/* Keeps the rights that neither the transition nor the mask names. */
static uint32_t decode_access(const uint8_t *qpc, uint32_t opt, bool all, uint32_t old)
{
	for (size_t i = 0; i < array_size(rights); i++)
		if (all || opt & rights[i].opt)
			old = prm_get(qpc, rights[i].field) ? old | rights[i].access
							    : old & ~rights[i].access;
	return old;
}

static int decode_paths(const struct ufile *f, const uint8_t *qpc, uint32_t mask,
			struct qp_attr *attr)
{
	const uint8_t *ads = qpc + QPC_PRIMARY_PATH, *alt = qpc + QPC_ALT_PATH;
	int ret = devx_path_port(ads, &attr->port_num);

	attr->pkey_index = (uint16_t)prm_get(ads, ADS_PKEY_INDEX);
	attr->timeout = (uint8_t)prm_get(ads, ADS_ACK_TIMEOUT);
	if (ret == 0 && mask & IB_QP_AV)
		ret = devx_path_decode(f, ads, &attr->ah);
	if (ret < 0 || !(mask & IB_QP_ALT_PATH))
		return ret;
	attr->alt_port_num = ADAPTER_QP_PORTS;
	attr->alt_pkey_index = (uint16_t)prm_get(alt, ADS_PKEY_INDEX);
	attr->alt_timeout = (uint8_t)prm_get(alt, ADS_ACK_TIMEOUT);
	ret = devx_path_decode(f, alt, &attr->alt_ah);
	if (ufile_port(f)->ethernet)
		attr->alt_ah.udp_sport = (uint16_t)prm_get(alt, ADS_UDP_SPORT);
	return ret;
}

/* enum ib_mig_state to enum qpc_pm_state. */
static const uint8_t pm_states[] = {
	[IB_MIG_MIGRATED] = QPC_PM_MIGRATED,
	[IB_MIG_REARM] = QPC_PM_REARM,
	[IB_MIG_ARMED] = QPC_PM_ARMED,
};

/* A number that is no state comes out as one that nobody may set. */
static uint32_t decode_pm_state(const uint8_t *qpc)
{
	uint32_t state = 0;

	while (state < array_size(pm_states) && pm_states[state] != prm_get(qpc, QPC_PM_STATE))
		state++;
	return state;
}

static int qp_attr_decode(const struct ufile *f, const uint8_t *qpc, uint32_t opt, uint32_t needs,
			  uint32_t old_access, struct qp_attr *attr)
{
	uint32_t mask = needs | mask_of(opt);
	int ret;

	attr->path_mtu = (enum ib_mtu)prm_get(qpc, QPC_MTU);
	attr->path_mig_state = decode_pm_state(qpc);
	attr->qkey = prm_get32(qpc, QPC_QKEY);
	attr->rq_psn = prm_get32(qpc, QPC_NEXT_RECV_PSN);
	attr->sq_psn = prm_get32(qpc, QPC_NEXT_SEND_PSN);
	attr->dest_qpn = prm_get32(qpc, QPC_REMOTE_QPN);
	attr->access = decode_access(qpc, opt, needs & IB_QP_ACCESS_FLAGS, old_access);
	attr->max_rd_atomic = (uint8_t)(1u << prm_get32(qpc, QPC_LOG_SRA_MAX));
	attr->max_dest_rd_atomic = (uint8_t)(1u << prm_get32(qpc, QPC_LOG_RRA_MAX));
	attr->min_rnr_timer = (uint8_t)prm_get(qpc, QPC_MIN_RNR_NAK);
	attr->retry_cnt = (uint8_t)prm_get(qpc, QPC_RETRY_COUNT);
	attr->rnr_retry = (uint8_t)prm_get(qpc, QPC_RNR_RETRY);
	ret = decode_paths(f, qpc, mask, attr);
	return ret < 0 ? ret : ufile_check_qp_attr(f, attr, mask);
}

static int check_options(const struct devx_call *c, uint16_t opcode, enum ib_qp_type type,
			 uint32_t opt)
{
	uint32_t known = 0;

	for (size_t i = 0; i < array_size(options); i++)
		known |= options[i].opt;
	if (opcode == PRM_OP_INIT2INIT_QP)
		known |= QP_OPT_DRAIN_SIGERR;
	if (opt & ~known) {
		log_info("devx: QP options 0x%x are not supported", opt & ~known);
		return -EOPNOTSUPP;
	}
	return devx_qp_ext_check(c, opcode, type);
}

static const struct transition *find_transition(uint16_t opcode)
{
	for (size_t i = 0; i < array_size(transitions); i++)
		if (transitions[i].opcode == opcode)
			return &transitions[i];
	return NULL;
}

/* Sets attributes that only programs of DEVX set, at the transition that has the path. */
static void set_path_extras(const struct devx_call *c, const struct devx_qp_target *target)
{
	const uint8_t *qpc = c->in + MODIFY_QP_CONTEXT;

	if (ufile_port(c->file)->ethernet)
		qp_set_udp_sport(target->qp,
				 (uint16_t)prm_get(qpc + QPC_PRIMARY_PATH, ADS_UDP_SPORT));
	/* The device has one lane; the query only repeats what the program asked for. */
	if (target->created)
		prm_set(target->created, QPC_ISOLATE, prm_get(qpc, QPC_ISOLATE));
}

static int devx_modify_qp(struct devx_call *c)
{
	const struct transition *t = find_transition((uint16_t)prm_get(c->in, CMD_IN_OPCODE));
	struct devx_qp_target target = devx_qp_target(c->target);
	struct qp_attr attr = {.state = (enum ib_qp_state)t->to};
	uint32_t mask = IB_QP_STATE, needs, opt = 0;
	struct qp_attr old;
	int ret;

	qp_query(target.qp, &old);
	if (t->from != ANY && old.state != (enum ib_qp_state)t->from)
		return explained(-EINVAL, "the QP is not in the state that the command leads from");
	if (t->by_mask) {
		needs = t->needs[service_of(target.type)];
		opt = prm_get32(c->in, MODIFY_QP_OPT);
		ret = check_options(c, t->opcode, target.type, opt);
		if (ret == 0)
			ret = qp_attr_decode(c->file, c->in + MODIFY_QP_CONTEXT, opt, needs,
					     old.access, &attr);
		if (ret < 0)
			return ret;
		mask |= needs | mask_of(opt);
		/* Programs name rights for a DCI, too, although no peer asks it for anything. */
		if (target.type == IB_QPT_DCI)
			mask &= ~(uint32_t)IB_QP_ACCESS_FLAGS;
	}
	ret = qp_modify(target.qp, &attr, mask);
	if (ret == 0 && opt & QP_OPT_DRAIN_SIGERR)
		qp_set_drain_sigerr(target.qp,
				    prm_get(c->in + MODIFY_QP_CONTEXT, QPC_DRAIN_SIGERR));
	if (ret == 0 && mask & IB_QP_AV && target.type == IB_QPT_RC && attr.ah.own_port &&
	    attr.dest_qpn == qp_number(target.qp))
		qp_writes_icm(target.qp);
	if (ret == 0 && t->by_mask)
		ret = devx_qp_ext_apply(c, target.qp);
	if (ret == 0 && t->opcode == PRM_OP_INIT2RTR_QP)
		set_path_extras(c, &target);
	/* Before RTR a store to the doorbell means nothing, as for verbs. */
	if (ret == 0)
		doorbell_live(target.bell, attr.state >= IB_QPS_RTR);
	return ret;
}

static enum qpc_state qpc_state_of(const struct qp_attr *attr)
{
	static const uint8_t names[] = {
		[IB_QPS_RESET] = QPC_STATE_RST, [IB_QPS_INIT] = QPC_STATE_INIT,
		[IB_QPS_RTR] = QPC_STATE_RTR,	[IB_QPS_RTS] = QPC_STATE_RTS,
		[IB_QPS_SQD] = QPC_STATE_SQD,	[IB_QPS_SQE] = QPC_STATE_SQERR,
		[IB_QPS_ERR] = QPC_STATE_ERR,
	};

	return attr->sq_draining ? QPC_STATE_SQ_DRAINING : (enum qpc_state)names[attr->state];
}

static enum qpc_service service_number(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_UC:
		return QPC_SERVICE_UC;
	case IB_QPT_UD:
		return QPC_SERVICE_UD;
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
		return QPC_SERVICE_XRC;
	case IB_QPT_DCI:
		return QPC_SERVICE_DCI;
	default:
		return QPC_SERVICE_RC;
	}
}

static void encode_path(const struct ufile *f, uint8_t *ads, const struct ib_ah *ah,
			uint16_t pkey_index, uint8_t timeout, uint16_t udp_sport)
{
	devx_path_encode(f, ah, ads);
	prm_set(ads, ADS_PKEY_INDEX, pkey_index);
	prm_set(ads, ADS_ACK_TIMEOUT, timeout);
	prm_set(ads, ADS_UDP_SPORT, udp_sport);
}

static int devx_query_qp(struct devx_call *c)
{
	struct devx_qp_target target = devx_qp_target(c->target);
	uint8_t *qpc = c->out + QUERY_QP_CONTEXT;
	struct qp_attr attr;
	uint16_t hw, sw;

	if (target.created)
		memcpy(qpc, target.created, QPC_BYTES);
	qp_query(target.qp, &attr);
	qp_sq_counters(target.qp, &hw, &sw);
	prm_set(qpc, QPC_HW_SQ_COUNTER, hw);
	prm_set(qpc, QPC_SW_SQ_COUNTER, sw);
	prm_set(qpc, QPC_STATE, qpc_state_of(&attr));
	prm_set(qpc, QPC_SERVICE, service_number(target.type));
	prm_set(qpc, QPC_PM_STATE, pm_states[attr.path_mig_state]);
	prm_set(qpc, QPC_MTU, attr.path_mtu);
	prm_set(qpc, QPC_REMOTE_QPN, attr.dest_qpn);
	prm_set(qpc, QPC_LOG_SRA_MAX, log2_of(attr.max_rd_atomic));
	prm_set(qpc, QPC_LOG_RRA_MAX, log2_of(attr.max_dest_rd_atomic));
	prm_set(qpc, QPC_RETRY_COUNT, attr.retry_cnt);
	prm_set(qpc, QPC_RNR_RETRY, attr.rnr_retry);
	prm_set(qpc, QPC_NEXT_SEND_PSN, attr.sq_psn);
	prm_set(qpc, QPC_NEXT_RECV_PSN, attr.rq_psn);
	prm_set(qpc, QPC_MIN_RNR_NAK, attr.min_rnr_timer);
	prm_set(qpc, QPC_QKEY, attr.qkey);
	for (size_t i = 0; i < array_size(rights); i++)
		prm_set(qpc, rights[i].field, (attr.access & rights[i].access) != 0);
	encode_path(c->file, qpc + QPC_PRIMARY_PATH, &attr.ah, attr.pkey_index, attr.timeout,
		    attr.udp_sport);
	encode_path(c->file, qpc + QPC_ALT_PATH, &attr.alt_ah, attr.alt_pkey_index,
		    attr.alt_timeout, attr.alt_ah.udp_sport);
	return 0;
}

#define MODIFY_QP_ROW(op, in) DEVX_MODIFY(op, &devx_qp_class, in, CMD_OUT_BYTES, devx_modify_qp)

static const struct devx_op ops[] = {
	MODIFY_QP_ROW(RST2INIT_QP, MODIFY_QP_IN_BYTES),
	MODIFY_QP_ROW(INIT2INIT_QP, MODIFY_QP_IN_BYTES),
	MODIFY_QP_ROW(INIT2RTR_QP, MODIFY_QP_IN_BYTES),
	MODIFY_QP_ROW(RTR2RTS_QP, MODIFY_QP_IN_BYTES),
	MODIFY_QP_ROW(RTS2RTS_QP, MODIFY_QP_IN_BYTES),
	MODIFY_QP_ROW(SQERR2RTS_QP, MODIFY_QP_IN_BYTES),
	MODIFY_QP_ROW(2ERR_QP, SHORT_QP_IN_BYTES),
	MODIFY_QP_ROW(2RST_QP, SHORT_QP_IN_BYTES),
	DEVX_QUERY(QUERY_QP, &devx_qp_class, SHORT_QP_IN_BYTES, QUERY_QP_OUT_BYTES, devx_query_qp),
};

const struct devx_family devx_qp_modify_family = DEVX_FAMILY(ops);
