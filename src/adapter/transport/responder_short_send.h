/* SPDX-License-Identifier: BSD-2-Clause */
/* How the responder takes short SENDs (wire/short_send.h). */
#pragma once

#include "adapter/qp/qp.h"
#include "wire/short_send.h"

/*
 * Executes the requests of a record if the state machine (responder.c) would execute them without a
 * refusal, with the same effect.  Returns how many it has executed.  The state machine has to take the
 * next one: nothing has happened with it, except that it may have taken its receive, which the state
 * machine then uses.  The caller is a reader.
 */
uint32_t responder_receive_short_sends(struct qp *qp, const struct short_send *b) must_check;
