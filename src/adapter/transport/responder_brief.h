/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder's and the completer's way for brief packets (wire/brief.h). */
#pragma once

#include "adapter/qp/qp.h"
#include "wire/brief.h"

/*
 * Takes an acknowledgement, or performs a request that the state machine (responder.c) would
 * perform without a refusal, to the same effect.  False: it has to go there, and nothing has
 * happened but that its receive may have been taken, which the state machine uses then.  Under RCU.
 */
bool responder_receive_brief(struct qp *qp, const struct brief *b) must_check;
