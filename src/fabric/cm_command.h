/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of rdma_cm that rdma/rdma_user_cm.h lacks where the kernel's headers are older than Linux 6.17. */
#pragma once

#include <stdint.h>

/* A program queues an event for an id of its own.  librdmacm's rdma_resolve_addrinfo does so when it has resolved
 * a name. */
#define CM_COMMAND_WRITE_EVENT 24u
struct cm_write_event {
	uint32_t id;
	uint32_t reserved;
	uint32_t event; /* RDMA_CM_EVENT_USER or RDMA_CM_EVENT_INTERNAL */
	uint32_t status;
	uint64_t arg;
	uint8_t rest[296]; /* of the union of all events' parameters, of which arg is a member */
};
