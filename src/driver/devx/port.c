// SPDX-License-Identifier: BSD-2-Clause
/* Commands about the device, its port and its switch that need no object. */
#include <errno.h>
#include <string.h>

#include "adapter/ste/icm.h"
#include "base/log.h"
#include "driver/devx/devx.h"
#include "prm/cmd_flow.h"
#include "prm/cmd.h"
#include "prm/hca_cap.h"
#include "prm/model.h"

/* ---- the device and its port ---- */

static int devx_query_hca_cap(struct devx_call *c)
{
	const struct subnet_port *port = ufile_port(c->file);
	const struct hca_cap_values values = {
		.ethernet = port->ethernet,
		.ports = c->file->hca->node->nports,
		.gids = subnet_port_gids(port),
		.pkeys = subnet_port_pkeys(port),
		.model = model_at(c->file->process->registry->model),
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
	prm_set(ctx, HCA_VPORT_PHYS_STATE, ufile_phys_state(c->file, nr));
	prm_set(ctx, HCA_VPORT_PORT_STATE, state);
	prm_set(ctx, HCA_VPORT_VPORT_STATE, state != IB_PORT_DOWN);
	prm_set(ctx, HCA_VPORT_SYSTEM_GUID, c->file->hca->node->system_guid);
	prm_set(ctx, HCA_VPORT_PORT_GUID, port->guid);
	prm_set(ctx, HCA_VPORT_NODE_GUID, c->file->hca->node->guid);
	prm_set(ctx, HCA_VPORT_LID, atomic_load_explicit(&port->lid, memory_order_acquire));
	prm_set(ctx, HCA_VPORT_LMC, atomic_load_explicit(&port->lmc, memory_order_acquire));
	prm_set(ctx, HCA_VPORT_SM_SL, atomic_load_explicit(&port->sm_sl, memory_order_acquire));
	prm_set(ctx, HCA_VPORT_CAP_MASK1,
		atomic_load_explicit(&port->cap_mask, memory_order_acquire));
	prm_set(ctx, HCA_VPORT_SUBNET_TIMEOUT,
		atomic_load_explicit(&port->subnet_timeout, memory_order_acquire));
	prm_set(ctx, HCA_VPORT_SM_LID, atomic_load_explicit(&port->sm_lid, memory_order_acquire));
	return 0;
}

static int devx_query_vport_state(struct devx_call *c)
{
	bool up = ufile_port_state(c->file, 1) != IB_PORT_DOWN;

	/* The uplink and the ports of a switch are those of Ethernet. */
	if (prm_get32(c->in, CMD_IN_OP_MOD) != VPORT_STATE_VNIC && !ufile_port(c->file)->ethernet)
		return -EINVAL;
	prm_set(c->out, VPORT_STATE_ADMIN, VPORT_UP);
	prm_set(c->out, VPORT_STATE, up ? VPORT_UP : VPORT_DOWN);
	return 0;
}

static int devx_query_adapter(struct devx_call *c)
{
	const char *psid = model_at(c->file->process->registry->model)->board;

	prm_set(c->out, ADAPTER_VENDOR, MODEL_VENDOR_IEEE);
	memcpy(c->out + ADAPTER_PSID, psid, min_u64(strlen(psid), ADAPTER_PSID_LEN));
	return 0;
}

static int devx_query_issi(struct devx_call *c)
{
	prm_set(c->out, ISSI_CURRENT, 1);
	prm_set(c->out, ISSI_SUPPORTED, 1u << 1);
	return 0;
}

/* Ports are never bonded, which an answer of zeros says. */
static int devx_query_lag(struct devx_call *c)
{
	(void)c;
	return 0;
}

static int devx_nop(struct devx_call *c)
{
	(void)c;
	return 0;
}

/* ---- the switch between the port and the wire ---- */

/*
 * What programs ask of it before they steer.  It has two ports: the host's (0), which manages it,
 * and the wire's (the uplink).
 */

static int devx_query_nic_vport(struct devx_call *c)
{
	if (!ufile_port(c->file)->ethernet)
		return -EOPNOTSUPP;
	if (prm_get32(c->in, VPORT_IN_OTHER) || prm_get32(c->in, VPORT_IN_NUMBER))
		return -EINVAL;
	prm_set(c->out, NIC_VPORT_ROCE, 1);
	return 0;
}

static int devx_query_esw_vport(struct devx_call *c)
{
	uint32_t number = prm_get32(c->in, VPORT_IN_NUMBER);

	if (!ufile_port(c->file)->ethernet)
		return -EOPNOTSUPP;
	if (number != 0 && number != STEER_UPLINK)
		return -EINVAL;
	prm_set(c->out, ESW_VPORT_ICM_RX, steer_address(STEER_VPORT, number));
	prm_set(c->out, ESW_VPORT_ICM_TX, steer_address(STEER_VPORT, number));
	return 0;
}

/* The device reads entries from memory for each frame, so there is nothing to tell it. */
static int devx_sync_steering(struct devx_call *c)
{
	return ufile_port(c->file)->ethernet ? 0 : -EOPNOTSUPP;
}

static const struct devx_op ops[] = {
	DEVX_OTHER(QUERY_HCA_CAP, CMD_IN_BYTES, CMD_OUT_BYTES, devx_query_hca_cap),
	DEVX_OTHER(QUERY_HCA_VPORT_CONTEXT, CMD_IN_BYTES, HCA_VPORT_OUT_BYTES,
		   devx_query_hca_vport),
	DEVX_OTHER(QUERY_VPORT_STATE, CMD_IN_BYTES, CMD_OUT_BYTES, devx_query_vport_state),
	DEVX_OTHER(QUERY_ADAPTER, CMD_IN_BYTES, ADAPTER_OUT_BYTES, devx_query_adapter),
	DEVX_OTHER(QUERY_ISSI, CMD_IN_BYTES, ISSI_OUT_BYTES, devx_query_issi),
	DEVX_OTHER(QUERY_LAG, CMD_IN_BYTES, CMD_OUT_BYTES, devx_query_lag),
	DEVX_OTHER(NOP, CMD_IN_BYTES, CMD_OUT_BYTES, devx_nop),
	DEVX_OTHER(QUERY_NIC_VPORT_CONTEXT, CMD_IN_BYTES, NIC_VPORT_BYTES, devx_query_nic_vport),
	DEVX_OTHER(QUERY_ESW_VPORT_CONTEXT, CMD_IN_BYTES, ESW_VPORT_BYTES, devx_query_esw_vport),
	DEVX_OTHER(SYNC_STEERING, SYNC_STEERING_BYTES, CMD_OUT_BYTES, devx_sync_steering),
};

const struct devx_family devx_port_family = DEVX_FAMILY(ops);
