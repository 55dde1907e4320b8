/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends what peers in other processes may do by themselves at a queue pair, and with what it has
 * sent. */
#pragma once

#include "adapter/qp/qp.h"

/*
 * Called after one of these: the responder's word was revoked (resp_revoke, resp_set_view), so
 * peers begin nothing there any more, and what they have begun does not count; the word allows
 * less; or payloads were given up (completer_withdraw).  On return nobody is in the memory.  The
 * caller calls this before the program hears of the change: after a modification, and in front of
 * the end of a queue pair.  It holds no locks.
 */
void bypass_revoke_qp(struct qp *qp);

/* These do the same without waiting, in front of completions in error, with the requester's baton
 * and as a reader: the first asks once, and the second tells whether the revocation is over. */
void bypass_revoke_ask(struct qp *qp);
bool bypass_revoke_over(struct qp *qp);
