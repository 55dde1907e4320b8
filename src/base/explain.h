/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explanations: a line in words for each request that fails, is refused, sent again or dropped.
 *
 *   softhca[PID/TID]: SECONDS.NANOSECONDS explain: host2/mlx5_0 QP 0x800 ...
 *
 * They are on with SOFTHCA_EXPLAIN=1 or SOFTHCA_LOG=info, and go where the log goes, each in one
 * write.  The time is that of trace points.  Whoever has something to say stands on a path that is
 * not taken by requests that succeed, tests explaining() and only then builds the sentence.
 *
 * Of lines that are like each other (same place in the source, same subject, same kind of reason) a
 * few a second are printed, the others are counted, and a line says how many there were.
 *
 * Often one function knows why (a key refuses) and its caller what follows (the request fails).
 * The first calls explain_because, the second takes these words with explain_reason, in the same
 * thread.
 *
 * Safe in any thread and in handlers of the faults that the device itself raises; no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

extern bool explain_on;

#define explaining() unlikely(explain_on)

/* Obeys SOFTHCA_EXPLAIN when first called, after log_init; later calls change nothing. */
void explain_init(void);
/* Prints a sentence about a subject, a number of the caller's choice. */
void explain_line(uint64_t subject, const char *fmt, ...) printf_like(2, 3) __attribute__((cold));
/* Notes in this thread why something is about to be refused; replaces an older note. */
void explain_because(const char *fmt, ...) printf_like(1, 2) __attribute__((cold));
/* The same while explanations are on, with an error number for the caller's caller. */
#define explained(err, ...) (explaining() ? explain_because(__VA_ARGS__) : (void)0, (err))
/* Takes the note; or_else if there is none.  Valid until the thread's next note. */
const char *explain_reason(const char *or_else);
/* Prints how many lines have not been printed so far.  Also done when the process exits. */
void explain_flush(void);
/* In a forked child: the parent prints what it has counted, and another of its threads may have been
 * in the middle of that. */
void explain_fork_child(void);
