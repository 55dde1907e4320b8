// SPDX-License-Identifier: BSD-2-Clause
/* See uverbs/core/file.h. */
#include "driver/uverbs/core/file.h"

#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <unistd.h>

#include "base/explain.h"
#include "base/log.h"
#include "prm/smp.h"

#define COMP_VECTORS_MAX 8u

const struct subnet_port *ufile_port(const struct ufile *f)
{
	return f->hca->port;
}

bool ufile_has_port(const struct ufile *f, uint64_t number)
{
	return number >= 1 && number <= f->hca->node->nports;
}

uint32_t ufile_port_row(const struct ufile *f, uint32_t number)
{
	return f->hca->port_row + number - 1;
}

uint32_t ufile_port_state(const struct ufile *f, uint32_t number)
{
	/* Without the daemon nobody routes, whatever the registry said last. */
	if (atomic_load_explicit(&f->process->lost, memory_order_relaxed))
		return IB_PORT_DOWN;
	return atomic_load_explicit(&f->process->subnet->ports[ufile_port_row(f, number)].state,
				    memory_order_acquire);
}

uint8_t ufile_phys_state(const struct ufile *f, uint32_t number)
{
	const struct subnet_port *port = &f->process->subnet->ports[ufile_port_row(f, number)];
	uint32_t state = ufile_port_state(f, number);

	if (!port->ethernet && !atomic_load_explicit(&f->process->lost, memory_order_relaxed))
		return (uint8_t)atomic_load_explicit(&port->phys_state, memory_order_acquire);
	return state >= IB_PORT_INIT ? SMP_PHYS_LINK_UP : SMP_PHYS_POLLING;
}

/* A device may have more ports than those that queue pairs can be at (ADAPTER_QP_PORTS). */
static bool qp_port_ok(const struct ufile *f, uint64_t number)
{
	if (!ufile_has_port(f, number))
		return false;
	if (number > ADAPTER_QP_PORTS)
		log_warn("%s: queue pairs work at port 1 alone, not at port %u", f->hca->name,
			 (unsigned)number);
	return number <= ADAPTER_QP_PORTS;
}

int ufile_check_qp_attr(const struct ufile *f, const struct qp_attr *attr, uint32_t mask)
{
	uint32_t pkeys = subnet_port_pkeys(ufile_port(f));

	if ((mask & IB_QP_CUR_STATE && attr->cur_state > IB_QPS_ERR) ||
	    (mask & IB_QP_STATE && attr->state > IB_QPS_ERR))
		return explained(-EINVAL, "qp_state or cur_qp_state is no state");
	if (mask & IB_QP_PORT && !qp_port_ok(f, attr->port_num))
		return explained(-EINVAL, "port_num is %u, and the device has ports from 1 to %u",
				 attr->port_num, f->hca->node->nports);
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index >= pkeys)
		return explained(-EINVAL, "pkey_index is %u, and the P_Key table has %u entries",
				 attr->pkey_index, pkeys);
	if (mask & IB_QP_ALT_PATH &&
	    (!qp_port_ok(f, attr->alt_port_num) || attr->alt_pkey_index >= pkeys))
		return explained(-EINVAL,
				 "alt_port_num is %u, and the device has ports from 1 to %u; or "
				 "alt_pkey_index is %u, and the P_Key table has %u entries",
				 attr->alt_port_num, f->hca->node->nports, attr->alt_pkey_index,
				 pkeys);
	if (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096))
		return explained(-EINVAL,
				 "path_mtu is %u, none of IBV_MTU_256 to IBV_MTU_4096 (a number of "
				 "the enumeration, not of bytes)",
				 attr->path_mtu);
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > ADAPTER_MAX_RD_ATOMIC)
		return explained(-EINVAL,
				 "max_rd_atomic is %u, and the device's max_qp_init_rd_atom %u",
				 attr->max_rd_atomic, ADAPTER_MAX_RD_ATOMIC);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > ADAPTER_MAX_RD_ATOMIC)
		return explained(-EINVAL,
				 "max_dest_rd_atomic is %u, and the device's max_qp_rd_atom %u",
				 attr->max_dest_rd_atomic, ADAPTER_MAX_RD_ATOMIC);
	return 0;
}

uint32_t uverbs_comp_vectors(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus < 1 ? 1 : min_u32((uint32_t)cpus, COMP_VECTORS_MAX);
}
