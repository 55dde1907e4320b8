/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder's and the completer's way for brief packets (wire/brief.h). */
#pragma once

#include "adapter/qp/qp.h"
#include "wire/brief.h"

/*
 * Takes an acknowledgement, or performs requests that the state machine (responder.c) would
 * perform without a refusal, to the same effect.  Each follows on the one before.  Returns how many:
 * the next has to go there, and nothing has happened with it but that its receive may have been taken,
 * which the state machine uses then.  Under RCU.
 */
uint32_t responder_receive_briefs(struct qp *qp, const struct brief *b, uint32_t n) must_check;
