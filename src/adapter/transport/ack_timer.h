/* SPDX-License-Identifier: BSD-2-Clause */
/* The timer of a queue pair, for an answer that does not come and for a receiver that is not
 * ready. */
#pragma once

#include "adapter/qp/qp.h"

/* Takes the timeout from the QP's attributes. */
void ack_timer_set(struct qp *qp);
/* Makes sure that the timer runs while requests are outstanding. */
void ack_timer_arm(struct qp *qp);
/* Runs when the timer fires. */
void ack_timer_fired(struct timer *t);
