/* SPDX-License-Identifier: BSD-2-Clause */
/* What both sides of the example know of the queues: this structure lies in DPA memory. */
#pragma once

#include <stdint.h>

#define LOG_ENTRIES   6u /* of the completion queue and of the receive queue */
#define ENTRIES	      (1u << LOG_ENTRIES)
#define MESSAGE_BYTES 256u

struct inbox {
	uint64_t ring;	 /* of the completion queue */
	uint64_t record; /* its doorbell record */
	uint64_t cqn;
	uint64_t ci;		 /* completions that were taken */
	uint64_t receive_record; /* doorbell record of the queue pair */
	uint64_t data;		 /* where messages arrive: MESSAGE_BYTES for each entry */
	uint64_t messages, bytes, sum, activations, errors; /* results */
};
