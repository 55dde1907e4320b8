// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queue pairs as the DEVX commands see them, made by DEVX or by verbs: creation, transitions,
 * query.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain.h"
#include "base/hazard.h"
#include "base/log.h"
#include "driver/devx/devx.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/objects/objects.h"
#include "prm/cmd_qp.h"
#include "prm/wqe.h"

struct devx_qp {
	struct devx_obj obj;
	struct qp *qp;
	struct doorbell_user bell;
	enum ib_qp_type type;
	/* what a query repeats */
	uint8_t created[0xe8]; /* the QP context of CREATE_QP */
};

/* The object that a handle names, which devx_is has found to be a queue pair. */
struct devx_qp_target {
	struct qp *qp;
	struct doorbell_user *bell;
	enum ib_qp_type type;
	uint8_t *created; /* NULL for a queue pair of verbs */
};

/* ---- creation ---- */

static_assert(sizeof(((struct devx_qp *)0)->created) == QPC_BYTES, "a QP context");

static void devx_qp_on_async(void *user, enum ib_event event)
{
	devx_queue_event(user, event);
}

static void devx_qp_rung(struct doorbell_user *u)
{
	hazard_enter();
	qp_doorbell(container_of(u, struct devx_qp, bell)->qp);
	hazard_leave();
}

static struct devx_qp_target devx_qp_target(struct uobj *obj)
{
	if (obj->type == UOBJ_QP) {
		struct uqp *qp = container_of(obj, struct uqp, uobj);

		return (struct devx_qp_target){qp->qp, &qp->bell, qp->type, NULL};
	}
	struct devx_qp *qp = container_of(obj, struct devx_qp, obj.uobj);

	return (struct devx_qp_target){qp->qp, &qp->bell, qp->type, qp->created};
}

static int devx_qp_service(const uint8_t *qpc, enum ib_qp_type *type)
{
	switch (prm_get32(qpc, QPC_SERVICE)) {
	case QPC_SERVICE_RC:
		*type = IB_QPT_RC;
		return 0;
	case QPC_SERVICE_UC:
		*type = IB_QPT_UC;
		return 0;
	case QPC_SERVICE_UD:
		*type = IB_QPT_UD;
		return 0;
	case QPC_SERVICE_DCI:
		*type = IB_QPT_DCI;
		return 0;
	default:
		return devx_refuse(-EOPNOTSUPP, "st", prm_get32(qpc, QPC_SERVICE),
				   "the device has RC (0), UC (1), UD (3) and DCI (5)");
	}
}

static int devx_qp_check_features(const uint8_t *qpc)
{
	static const struct devx_lack lacks[] = {
		{QPC_WQ_SIGNATURE, "wq_signature"},
		{QPC_OFFLOAD, "offload_type"},
		{QPC_PAGE_OFFSET, "page_offset"},
		{QPC_DRAIN_SIGERR, "drain_sigerr"}, /* INIT2INIT_QP switches it on */
	};
	int ret = devx_lacks(qpc, lacks);

	if (ret < 0)
		return ret;
	if (prm_get(qpc, QPC_SLAVE_RECEIVE) && prm_get32(qpc, QPC_RQ_TYPE) != QPC_RQ_REGULAR)
		return devx_refuse(-EINVAL, "cd_slave_receive", 1,
				   "a master enables receives of a queue pair's own queue, and "
				   "none of a shared one");
	return 0;
}

static int devx_qp_check_streams(const uint8_t *qpc)
{
	if (prm_get32(qpc, QPC_SERVICE) != QPC_SERVICE_DCI)
		return 0;
	return devx_at_most("log_num_dci_errored_streams", prm_get32(qpc, QPC_LOG_DCI_ERRORED),
			    ADAPTER_LOG_MAX_DC_ERRORED);
}

/* Finds the CQ and makes sure that it stays. */
static int devx_qp_use_cq(struct devx_call *c, struct devx_qp *qp, const char *field, uint32_t cqn,
			  struct cq **out)
{
	struct uobj *obj;

	if (devx_named(c->file, &devx_cq_class, cqn, field, &obj) < 0)
		return -EINVAL;
	devx_obj_uses(&qp->obj, obj);
	*out = devx_cq_of(obj);
	return 0;
}

static int devx_qp_use_queues(struct devx_call *c, struct devx_qp *qp, struct qp_create_attr *attr)
{
	const uint8_t *qpc = qp->created;
	uint32_t rq_type = prm_get32(qpc, QPC_RQ_TYPE);
	bool sends = !prm_get(qpc, QPC_NO_SQ), receives = rq_type != QPC_RQ_NONE;
	struct uobj *obj;
	int ret = 0;

	/* whatever its context says about receives */
	if (qp->type == IB_QPT_DCI)
		receives = false;
	if (!sends && !receives)
		return devx_refuse(-EINVAL, "no_sq", 1,
				   "a queue pair that receives nothing has to send");
	if (sends)
		ret = devx_qp_use_cq(c, qp, "cqn_snd", prm_get32(qpc, QPC_CQN_SEND),
				     &attr->send_cq);
	if (ret == 0 && receives)
		ret = devx_qp_use_cq(c, qp, "cqn_rcv", prm_get32(qpc, QPC_CQN_RECV),
				     &attr->recv_cq);
	if (qp->type == IB_QPT_DCI)
		return ret;
	if (ret < 0)
		return ret;
	/* The missing side never completes anything. */
	if (!sends)
		attr->send_cq = attr->recv_cq;
	if (!receives)
		attr->recv_cq = attr->send_cq;
	if (rq_type != QPC_RQ_SRQ)
		return 0;
	if (devx_named(c->file, &devx_rmp_class, prm_get32(qpc, QPC_SRQN), "srqn_rmpn_xrqn", &obj) <
	    0)
		return -EINVAL;
	devx_obj_uses(&qp->obj, obj);
	attr->srq = devx_srq_of(obj);
	return 0;
}

/* Finds the rings: the receive ring first, the send ring right behind it. */
static int devx_qp_use_memory(struct devx_call *c, struct devx_qp *qp, struct qp_create_attr *attr)
{
	const uint8_t *qpc = qp->created;
	struct devx_part ring = {
		.field = "wq_umem_offset",
		.umem_id = prm_get32(c->in, CREATE_QP_UMEM),
		.offset = prm_get(c->in, CREATE_QP_OFFSET),
	};
	const struct devx_part record = {
		.field = "dbr_addr",
		.umem_id = prm_get32(qpc, QPC_DBR_UMEM),
		.offset = prm_get(qpc, QPC_DBR_ADDR),
		.length = 2 * sizeof(be32),
	};
	uint64_t rq_bytes = 0, sq_bytes = 0;
	struct uobj *umem;
	uint8_t *rings;

	if (prm_get32(qpc, QPC_RQ_TYPE) == QPC_RQ_REGULAR && qp->type != IB_QPT_DCI) {
		attr->rq_wqes = 1u << prm_get32(qpc, QPC_LOG_RQ_SIZE);
		attr->rq_wqe_bytes = 16u << prm_get32(qpc, QPC_LOG_RQ_STRIDE);
		attr->max_recv_sge = attr->rq_wqe_bytes / (uint32_t)sizeof(struct wqe_data);
		rq_bytes = (uint64_t)attr->rq_wqes * attr->rq_wqe_bytes;
	}
	if (!prm_get(qpc, QPC_NO_SQ)) {
		attr->sq_blocks = 1u << prm_get32(qpc, QPC_LOG_SQ_SIZE);
		sq_bytes = (uint64_t)attr->sq_blocks * WQE_BLOCK;
	}
	if (rq_bytes + sq_bytes) {
		ring.length = rq_bytes + sq_bytes;
		rings = devx_umem_part(c->file, &ring, false, &umem);
		if (!rings)
			return -EINVAL;
		devx_obj_uses(&qp->obj, umem);
		attr->rq_buf = rings;
		attr->sq_buf = rings + rq_bytes;
	}
	attr->dbrec = devx_umem_part(c->file, &record, false, &umem);
	if (!attr->dbrec)
		return -EINVAL;
	devx_obj_uses(&qp->obj, umem);
	return 0;
}

static int devx_qp_make(struct devx_call *c, struct devx_qp *qp)
{
	const uint8_t *qpc = qp->created;
	struct qp_create_attr attr = {
		.pdn = prm_get32(qpc, QPC_PD),
		.uidx = prm_get32(qpc, QPC_USER_INDEX),
		.block_self_mcast = prm_get(qpc, QPC_BLOCK_LB_MC),
		.master = prm_get(qpc, QPC_MASTER),
		.slave_send = prm_get(qpc, QPC_SLAVE_SEND),
		.slave_receive = prm_get(qpc, QPC_SLAVE_RECEIVE),
		.domain = c->file,
		.async = devx_qp_on_async,
		.user = &qp->obj,
	};
	struct uobj *pd = NULL, *duar = NULL;
	int ret = devx_qp_service(qpc, &qp->type);

	if (ret == 0)
		ret = devx_qp_check_features(qpc);
	if (ret == 0)
		ret = devx_qp_check_streams(qpc);
	if (ret == 0)
		ret = devx_pd(c->file, attr.pdn, &pd);
	if (ret < 0)
		return ret;
	devx_obj_uses(&qp->obj, pd);
	if (!prm_get(qpc, QPC_NO_SQ) && devx_uar(c->file, prm_get32(qpc, QPC_UAR_PAGE), &duar) < 0)
		return -EINVAL;
	/* The bells of this queue pair carry the send index. */
	if (duar) {
		devx_obj_uses(&qp->obj, duar);
		attr.region = prm_get32(qpc, QPC_UAR_PAGE);
	}
	attr.type = qp->type;
	if (qp->type == IB_QPT_DCI) {
		attr.log_dc_errored = (uint8_t)prm_get(qpc, QPC_LOG_DCI_ERRORED);
		attr.dc_streams = attr.log_dc_errored || prm_get(qpc, QPC_LOG_DCI_STREAMS);
	}
	ret = devx_qp_use_queues(c, qp, &attr);
	if (ret == 0)
		ret = devx_qp_use_memory(c, qp, &attr);
	return ret < 0 ? ret : qp_create(c->file->hca->adapter, &attr, &qp->qp);
}

static void devx_qp_free(struct devx_obj *obj)
{
	struct devx_qp *qp = container_of(obj, struct devx_qp, obj);

	doorbell_user_release(&qp->bell);
	qp_destroy(qp->qp);
}

/* A raw packet QP is made of queues, which have numbers of their own kinds (uraw_numbers). */
static bool devx_qp_is(struct uobj *obj, uint32_t number)
{
	const struct uqp *qp;

	if (obj->type != UOBJ_QP)
		return false;
	qp = container_of(obj, struct uqp, uobj);
	return !qp->ind_table && qp->type != IB_QPT_DCT && qp->type != IB_QPT_RAW_PACKET &&
	       qp_number(qp->qp) == number;
}

static const struct devx_class devx_qp_class = {.is = devx_qp_is, .free = devx_qp_free};

static int devx_create_qp(struct devx_call *c, struct devx_obj **out)
{
	struct devx_qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (!qp)
		return -ENOMEM;
	memcpy(qp->created, c->in + CREATE_QP_CONTEXT, sizeof(qp->created));
	ret = devx_qp_make(c, qp);
	if (ret < 0) {
		devx_obj_release(&qp->obj);
		free(qp);
		return ret;
	}
	devx_obj_init(&qp->obj, &devx_qp_class, qp_number(qp->qp));
	doorbell_user_init(&qp->bell, DOORBELL_SQ,
			   uuar_regs(c->file, prm_get32(qp->created, QPC_UAR_PAGE)), devx_qp_rung);
	/* No hook announces what a program of DEVX stores. */
	doorbell_taken_over(&qp->bell);
	prm_set(c->out, CMD_OUT_NUMBER, qp->obj.number);
	*out = &qp->obj;
	return 0;
}

/* ---- the address path of a QP context as the device's address vector, and back ---- */

/* Gives the path's port; 0 stands for the only one. */
static must_check int devx_path_port(const uint8_t *ads, uint8_t *port)
{
	uint32_t nr = prm_get32(ads, ADS_PORT);

	if (nr > ADAPTER_QP_PORTS)
		return -EINVAL;
	*port = ADAPTER_QP_PORTS;
	return 0;
}

/*
 * The path itself says which MAC the packets go to, unlike an address handle of verbs.  -EINVAL for
 * a port or a source GID that is not there.
 */
static must_check int devx_path_decode(const struct ufile *f, const uint8_t *ads, struct ib_ah *out)
{
	const struct subnet_port *port = ufile_port(f);
	struct subnet_gid_entry sgid;

	*out = (struct ib_ah){
		.flow_label = prm_get32(ads, ADS_FLOW_LABEL),
		.dlid = (uint16_t)prm_get(ads, ADS_RLID),
		.sgid_index = (uint8_t)prm_get(ads, ADS_SRC_INDEX),
		.hop_limit = (uint8_t)prm_get(ads, ADS_HOP_LIMIT),
		.traffic_class = (uint8_t)prm_get(ads, ADS_TCLASS),
		.src_path_bits = (uint8_t)prm_get(ads, ADS_MLID),
		.static_rate = (uint8_t)prm_get(ads, ADS_STAT_RATE),
		.is_global = port->ethernet || prm_get(ads, ADS_GRH),
		.own_port = (uint8_t)prm_get(ads, ADS_LOOPBACK),
	};
	memcpy(out->dgid.raw, ads + ADS_RGID, sizeof(out->dgid.raw));
	if (port->ethernet) {
		uint64_t mac = prm_get(ads, ADS_RMAC);

		for (unsigned i = 0; i < sizeof(out->dmac); i++)
			out->dmac[i] = (uint8_t)(mac >> (40 - 8 * i));
		out->dlid = 0;
		out->sl = (uint8_t)prm_get(ads, ADS_ETH_PRIO);
	} else {
		out->sl = (uint8_t)prm_get(ads, ADS_SL);
	}
	if (out->is_global &&
	    !subnet_gid(f->process->subnet, f->hca->port_row, out->sgid_index, &sgid))
		return -EINVAL;
	return devx_path_port(ads, &out->port_num);
}

static void devx_path_encode(const struct ufile *f, const struct ib_ah *ah, uint8_t *ads)
{
	prm_set(ads, ADS_FLOW_LABEL, ah->flow_label);
	prm_set(ads, ADS_SRC_INDEX, ah->sgid_index);
	prm_set(ads, ADS_HOP_LIMIT, ah->hop_limit);
	prm_set(ads, ADS_TCLASS, ah->traffic_class);
	prm_set(ads, ADS_STAT_RATE, ah->static_rate);
	prm_set(ads, ADS_GRH, ah->is_global);
	prm_set(ads, ADS_LOOPBACK, ah->own_port);
	prm_set(ads, ADS_PORT, ah->port_num);
	memcpy(ads + ADS_RGID, ah->dgid.raw, sizeof(ah->dgid.raw));
	if (ufile_port(f)->ethernet) {
		uint64_t mac = 0;

		for (unsigned i = 0; i < sizeof(ah->dmac); i++)
			mac = mac << 8 | ah->dmac[i];
		prm_set(ads, ADS_RMAC, mac);
		prm_set(ads, ADS_ETH_PRIO, ah->sl);
	} else {
		prm_set(ads, ADS_RLID, ah->dlid);
		prm_set(ads, ADS_MLID, ah->src_path_bits);
		prm_set(ads, ADS_SL, ah->sl);
	}
}

/* ---- options of transitions ---- */

/*
 * Options of the transitions beyond the first 32.  Each belongs to one transition of some types and
 * is no attribute of verbs.  Some bring data in an extension of the context.
 */

#define TYPE(t) (1ull << (t))

static int reset_stream(const struct devx_call *c, struct qp *qp)
{
	return qp_reset_stream(qp, (uint16_t)prm_get(c->in + QPC_EXT, QPC_EXT_DCI_STREAM));
}

static int set_udp_sport(const struct devx_call *c, struct qp *qp)
{
	const uint8_t *path = c->in + MODIFY_QP_CONTEXT + QPC_PRIMARY_PATH;

	qp_set_udp_sport(qp, (uint16_t)prm_get(path, ADS_UDP_SPORT));
	return 0;
}

static const struct ext_option {
	uint64_t opt; /* enum qp_opt_ext */
	uint16_t opcode;
	bool data; /* whether the extension has data for it */
	bool ethernet;
	uint64_t types;
	int (*apply)(const struct devx_call *c, struct qp *qp);
} ext_options[] = {
	{QP_OPT_EXT_DCI_STREAM, PRM_OP_RTS2RTS_QP, true, false, TYPE(IB_QPT_DCI), reset_stream},
	{QP_OPT_EXT_UDP_SPORT, PRM_OP_RTS2RTS_QP, false, true, TYPE(IB_QPT_RC) | TYPE(IB_QPT_UC),
	 set_udp_sport},
	/* All these types can copy by work requests anyway; the bit asks for no more. */
	{QP_OPT_EXT_MMO, PRM_OP_INIT2INIT_QP, true, false, TYPE(IB_QPT_RC) | TYPE(IB_QPT_DCI),
	 NULL},
};

static bool is_for(const struct devx_call *c, const struct ext_option *o, uint16_t opcode,
		   enum ib_qp_type type)
{
	return o->opcode == opcode && o->types & TYPE(type) &&
	       (!o->ethernet || ufile_port(c->file)->ethernet);
}

/* Checks the options beyond the first 32 of a transition that has a context: the device must know
 * them (-EOPNOTSUPP), and their data must be there (-EINVAL). */
static must_check int devx_qp_ext_check(const struct devx_call *c, uint16_t opcode,
					enum ib_qp_type type)
{
	uint64_t opt = prm_get(c->in, MODIFY_QP_OPT_95_32), known = 0;
	bool data = false;

	if (prm_get(c->in, MODIFY_QP_EXT)) {
		if (c->in_len < MODIFY_QP_EXT_BYTES)
			return -EINVAL;
		data = true;
	}
	for (size_t i = 0; i < array_size(ext_options); i++) {
		const struct ext_option *o = &ext_options[i];

		if (!is_for(c, o, opcode, type))
			continue;
		known |= o->opt;
		if (opt & o->opt && o->data && !data)
			return -EINVAL;
	}
	if (opt & ~known) {
		log_info("devx: extended QP options 0x%llx are not supported",
			 (unsigned long long)(opt & ~known));
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Carries them out, after the transition. */
static must_check int devx_qp_ext_apply(const struct devx_call *c, struct qp *qp)
{
	uint64_t opt = prm_get(c->in, MODIFY_QP_OPT_95_32);
	int ret = 0;

	for (size_t i = 0; i < array_size(ext_options) && ret == 0; i++)
		if (opt & ext_options[i].opt && ext_options[i].apply)
			ret = ext_options[i].apply(c, qp);
	return ret;
}

/* ---- transitions and query ---- */

/*
 * The transitions of queue pairs and their query.  A transition takes the attributes that the
 * service needs for it, and those that the command's mask adds; the device checks both.
 */

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
	DEVX_CREATE(CREATE_QP, CREATE_QP_IN_BYTES, CMD_OUT_BYTES, devx_create_qp),
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

const struct devx_family devx_qp_family = DEVX_FAMILY(ops);
