/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer of a queue pair: for an answer that does not come, and for a receiver that is not
 * ready. */
#pragma once

#include "adapter/qp/qp.h"

/* Requests are outstanding: makes sure that the timer runs. */
void ack_timer_arm(struct qp *qp);
/* It fired. */
void ack_timer_fired(struct timer *t);
