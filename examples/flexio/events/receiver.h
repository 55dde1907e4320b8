/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair that receives into memory of the DPA.  Verbs cannot make one, because its completion queue is
 * none of verbs; so it is made by commands to the device (DEVX). */
#pragma once

#include <libflexio/flexio.h>

struct receiver {
	struct mlx5dv_devx_obj *object;
	uint32_t number;
};

/* Ring and doorbell record are addresses of DPA memory; the ring has 2^log_entries receives of 16 bytes.
 * Each of these functions ends the program if the device refuses. */
void receiver_make(struct receiver *receiver, struct ibv_context *context,
		   struct flexio_process *process, uint32_t cqn, flexio_uintptr_t ring,
		   unsigned int log_entries, flexio_uintptr_t record);
/* To the queue pair of that number at that place of an InfiniBand network. */
void receiver_connect(struct receiver *receiver, uint32_t qpn, uint16_t lid);
void receiver_free(struct receiver *receiver);
