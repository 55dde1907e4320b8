/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of failed receives, of queue pairs and of receive work queues. */
#pragma once

#include "adapter/core/device.h"

/* number: the queue's; index: the receive's in its ring; syndrome: enum cqe_syndrome. */
bool recv_error_push(struct adapter *a, struct cq *cq, uint32_t uidx, uint32_t number,
		     uint16_t index, uint8_t syndrome);
