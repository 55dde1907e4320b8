/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explanations: a line in words for each request that fails, is refused, sent again or dropped.
 *
 *   softhca[PID/TID]: SECONDS.NANOSECONDS explain: host2/mlx5_0 QP 0x800 ...
 *
 * They are on with SOFTHCA_EXPLAIN=1 or SOFTHCA_LOG=info, and go where the log goes, each in one
 * write.  The time is that of trace points.  Requests that succeed never take a path that explains.
 * Code on such a path tests explaining() and only then builds the sentence.
 *
 * Of lines that are alike (same place in the source, same subject, same kind of reason) it prints a
 * few a second and counts the others, and a line says how many there were.
 *
 * Often one function knows why (a key refuses), and its caller knows what follows (the request
 * fails).  The function calls explain_because, and the caller takes these words with
 * explain_reason, in the same thread.
 *
 * It is safe in any thread and in handlers of the faults that the device itself raises; it does not
 * allocate.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

extern bool explain_on;

#define explaining() unlikely(explain_on)

/* Obeys SOFTHCA_EXPLAIN on the first call, after log_init; later calls change nothing. */
void explain_init(void);
/* Prints a sentence about a subject, which is a number of the caller's choice. */
void explain_line(uint64_t subject, const char *fmt, ...) printf_like(2, 3) __attribute__((cold));
/* Notes in this thread why the caller is about to refuse something; replaces an older note. */
void explain_because(const char *fmt, ...) printf_like(1, 2) __attribute__((cold));
/* Notes the reason while explanations are on, and evaluates to an error number for the caller to
 * return. */
#define explained(err, ...) (explaining() ? explain_because(__VA_ARGS__) : (void)0, (err))
/* Takes the note; or_else if there is none.  Valid until the thread's next note. */
const char *explain_reason(const char *or_else);
/* Prints how many lines were not printed so far.  The process also does so when it exits. */
void explain_flush(void);
/* Called in a forked child: the parent prints what it has counted, and another thread of the parent
 * may have been in the middle of that. */
void explain_fork_child(void);
