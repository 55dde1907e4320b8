/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of what peers in other processes may do by themselves at a queue pair, and with what it
 * has sent. */
#pragma once

#include "adapter/qp/qp.h"

/*
 * The word of the responder was revoked (resp_revoke, resp_set_view): peers begin nothing there any
 * more, and what they have begun does not count; or it allows less.  Or payloads were given up
 * (completer_withdraw).  On return nobody is in the memory.  Called before the program hears of it:
 * after a modification and in front of the end of a queue pair, without locks.
 */
void bypass_revoke_qp(struct qp *qp);

/*
 * The same without waiting, in front of completions in error, with the requester's baton and under
 * RCU: asks once, and tells whether it is over.
 */
void bypass_revoke_ask(struct qp *qp);
bool bypass_revoke_over(struct qp *qp);
