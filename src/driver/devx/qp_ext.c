// SPDX-License-Identifier: BSD-2-Clause
/*
 * Options of the transitions beyond the first 32.  Each belongs to one transition of some types and
 * is no attribute of verbs.  Some bring data in an extension of the context.
 */
#include <errno.h>

#include "base/log.h"
#include "driver/devx/qp.h"
#include "driver/uverbs/objects/qp.h"
#include "prm/cmd_qp.h"

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

int devx_qp_ext_check(const struct devx_call *c, uint16_t opcode, enum ib_qp_type type)
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

int devx_qp_ext_apply(const struct devx_call *c, struct qp *qp)
{
	uint64_t opt = prm_get(c->in, MODIFY_QP_OPT_95_32);
	int ret = 0;

	for (size_t i = 0; i < array_size(ext_options) && ret == 0; i++)
		if (opt & ext_options[i].opt && ext_options[i].apply)
			ret = ext_options[i].apply(c, qp);
	return ret;
}
