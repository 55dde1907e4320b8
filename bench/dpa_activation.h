/* SPDX-License-Identifier: BSD-2-Clause */
/* A handler, its queue, a queue pair that completes there, and one that sends to it. */
#pragma once

#include "host.h"

struct activation;

/* 'handler' is the event() of dpa_call_code.c.  What fails ends the program. */
struct activation *activation_up(struct ibv_context *ctx, struct flexio_process *process,
				 flexio_func_t *handler);
void activation_down(struct activation *a);

/* Nanoseconds from the completion of a message to the first instruction of the handler. */
uint64_t activation_once(struct activation *a);
