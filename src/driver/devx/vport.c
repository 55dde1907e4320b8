// SPDX-License-Identifier: BSD-2-Clause
/*
 * The switch between the port and the wire, and what programs ask of it before they steer.  It has
 * two ports: the host's (0), which manages it, and the wire's (the uplink).
 */
#include <errno.h>

#include "adapter/ste/icm.h"
#include "driver/devx/devx.h"
#include "prm/cmd_flow.h"

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
	DEVX_OTHER(QUERY_NIC_VPORT_CONTEXT, CMD_IN_BYTES, NIC_VPORT_BYTES, devx_query_nic_vport),
	DEVX_OTHER(QUERY_ESW_VPORT_CONTEXT, CMD_IN_BYTES, ESW_VPORT_BYTES, devx_query_esw_vport),
	DEVX_OTHER(SYNC_STEERING, SYNC_STEERING_BYTES, CMD_OUT_BYTES, devx_sync_steering),
};

const struct devx_family devx_vport_family = DEVX_FAMILY(ops);
