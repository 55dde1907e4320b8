// SPDX-License-Identifier: BSD-2-Clause
/* Commands about the device and its port that need no object. */
#include <errno.h>
#include <string.h>

#include "adapter/ste/icm.h"
#include "base/log.h"
#include "driver/devx/devx.h"
#include "prm/cmd_port.h"
#include "prm/hca_cap.h"
#include "prm/model.h"

static int devx_query_hca_cap(struct devx_call *c)
{
	const struct subnet_port *port = ufile_port(c->file);
	const struct hca_cap_values values = {
		.ethernet = port->ethernet,
		.ports = c->file->hca->node->nports,
		.gids = subnet_port_gids(port),
		.pkeys = subnet_port_pkeys(port),
		.dpa = model_at(c->file->process->registry->model)->dpa,
		.icm =
			{
				.steering = icm_base(ICM_STEERING),
				.modify = icm_base(ICM_MODIFY),
				.pattern = icm_base(ICM_PATTERN),
				.log_steering = ICM_LOG_STEERING,
				.log_modify = ICM_LOG_MODIFY,
				.log_pattern = ICM_LOG_PATTERN,
				.drop = steer_address(STEER_DROP, 0),
				.allow = steer_address(STEER_ALLOW, 0),
				.uplink = steer_address(STEER_VPORT, STEER_UPLINK),
				.format = model_at(c->file->process->registry->model)->steering,
			},
	};
	uint32_t type = prm_get32(c->in, CMD_IN_OP_MOD) >> 1;
	uint8_t page[HCA_CAP_PAGE_BYTES];

	if (!hca_cap_page((enum hca_cap_type)type, &values, page)) {
		log_info("devx: no capabilities of type 0x%x", type);
		return -EINVAL;
	}
	memcpy(c->out + HCA_CAP_HEADER, page, min_u64(sizeof(page), c->out_len - HCA_CAP_HEADER));
	return 0;
}

/* Answers for InfiniBand ports, which have this context; an Ethernet port has a NIC's. */
static int devx_query_hca_vport(struct devx_call *c)
{
	const struct subnet_port *port = ufile_port(c->file);
	/* 0 stands for port 1. */
	uint32_t nr = prm_get32(c->in, HCA_VPORT_PORT) ? prm_get32(c->in, HCA_VPORT_PORT) : 1;
	uint8_t *ctx = c->out + HCA_VPORT_CONTEXT;
	uint32_t state;

	if (port->ethernet)
		return -EOPNOTSUPP;
	if (!ufile_has_port(c->file, nr) || prm_get(c->in, HCA_VPORT_OTHER) ||
	    prm_get(c->in, HCA_VPORT_NUMBER))
		return -EINVAL;
	port = &c->file->process->subnet->ports[ufile_port_row(c->file, nr)];
	state = ufile_port_state(c->file, nr);
	prm_set(ctx, HCA_VPORT_PHYS_STATE, uport_phys_state(state));
	prm_set(ctx, HCA_VPORT_PORT_STATE, state);
	prm_set(ctx, HCA_VPORT_VPORT_STATE, state != IB_PORT_DOWN);
	prm_set(ctx, HCA_VPORT_SYSTEM_GUID, c->file->hca->node->guid);
	prm_set(ctx, HCA_VPORT_PORT_GUID, port->guid);
	prm_set(ctx, HCA_VPORT_NODE_GUID, c->file->hca->node->guid);
	prm_set(ctx, HCA_VPORT_LID, atomic_load_explicit(&port->lid, memory_order_acquire));
	prm_set(ctx, HCA_VPORT_LMC, atomic_load_explicit(&port->lmc, memory_order_acquire));
	prm_set(ctx, HCA_VPORT_SM_LID, atomic_load_explicit(&port->sm_lid, memory_order_acquire));
	return 0;
}

static const struct devx_op ops[] = {
	DEVX_OTHER(QUERY_HCA_CAP, CMD_IN_BYTES, CMD_OUT_BYTES, devx_query_hca_cap),
	DEVX_OTHER(QUERY_HCA_VPORT_CONTEXT, CMD_IN_BYTES, HCA_VPORT_OUT_BYTES,
		   devx_query_hca_vport),
};

const struct devx_family devx_port_family = DEVX_FAMILY(ops);
