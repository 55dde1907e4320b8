// SPDX-License-Identifier: BSD-2-Clause
/* See uverbs/core/port.h. */
#include "driver/uverbs/core/port.h"

#include <rdma/ib_user_verbs.h>
#include <unistd.h>

#define COMP_VECTORS_MAX 8u

enum { PHYS_POLLING = 2, PHYS_LINK_UP = 5 };

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
	/* Without the daemon nothing is routed, whatever the registry said last. */
	if (atomic_load_explicit(&f->process->lost, memory_order_relaxed))
		return IB_PORT_DOWN;
	return atomic_load_explicit(&f->process->subnet->ports[ufile_port_row(f, number)].state,
				    memory_order_acquire);
}

uint8_t uport_phys_state(uint32_t state)
{
	return state >= IB_PORT_INIT ? PHYS_LINK_UP : PHYS_POLLING;
}

uint32_t uverbs_comp_vectors(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus < 1 ? 1 : min_u32((uint32_t)cpus, COMP_VECTORS_MAX);
}
