/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trace points: the decisions that a reader of a failure asks about.  base/trace_points.h declares
 * them once, and code uses them as
 *
 *   trace(qp, state, qp->qpn, qp_state_name(from), qp_state_name(to), "modify");
 *
 * A point that is off costs a test of a global word and a branch; its arguments are not evaluated.
 * SOFTHCA_TRACE switches points on: it holds patterns of names (fnmatch) with commas between, or
 * "help".  A point that is on writes a line where the log goes:
 *
 *   softhca[PID/TID]: SECONDS.NANOSECONDS group.name argument=value ...
 *
 * The time is CLOCK_MONOTONIC, the same in all processes.  A point is safe in any thread and in
 * signal handlers: it takes no lock, does not allocate and is no cancellation point.  Listeners
 * (trace_listen) get the same text without the time.
 *
 * If the compiler found <sys/sdt.h>, each point is a USDT probe too: provider softhca, name
 * group__name, the same arguments.  The word that a point tests is the probe's semaphore, so a
 * tracer that attaches switches the point on as well.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* TRACE_EACH(m, (a, b), (c, d)) is m(a, b), m(c, d). */
#define TRACE_EACH_1(m, t)			      m t
#define TRACE_EACH_2(m, t, ...)			      m t, TRACE_EACH_1(m, __VA_ARGS__)
#define TRACE_EACH_3(m, t, ...)			      m t, TRACE_EACH_2(m, __VA_ARGS__)
#define TRACE_EACH_4(m, t, ...)			      m t, TRACE_EACH_3(m, __VA_ARGS__)
#define TRACE_EACH_5(m, t, ...)			      m t, TRACE_EACH_4(m, __VA_ARGS__)
#define TRACE_EACH_6(m, t, ...)			      m t, TRACE_EACH_5(m, __VA_ARGS__)
#define TRACE_EACH_7(m, t, ...)			      m t, TRACE_EACH_6(m, __VA_ARGS__)
#define TRACE_EACH_8(m, t, ...)			      m t, TRACE_EACH_7(m, __VA_ARGS__)
#define TRACE_PICK(a, b, c, d, e, f, g, h, pick, ...) pick
#define TRACE_EACH(m, ...)                                                              \
	TRACE_PICK(__VA_ARGS__, TRACE_EACH_8, TRACE_EACH_7, TRACE_EACH_6, TRACE_EACH_5, \
		   TRACE_EACH_4, TRACE_EACH_3, TRACE_EACH_2, TRACE_EACH_1, )            \
	(m, __VA_ARGS__)

/* The C types of a point's arguments. */
#define TRACE_TYPE_HEX		    uint64_t
#define TRACE_TYPE_NUM		    uint64_t
#define TRACE_TYPE_NAME		    const char *
#define TRACE_PARAMETER(kind, name) TRACE_TYPE_##kind name

/* Each point has a word that is not 0 while somebody listens, and a function that tells the
 * listeners. */
#define TRACE_POINT(group, name, text, ...)                         \
	extern unsigned short softhca_##group##__##name##_semaphore \
		__attribute__((visibility("hidden")));              \
	void trace_##group##_##name(TRACE_EACH(TRACE_PARAMETER, __VA_ARGS__)) __attribute__((cold));
#include "base/trace_points.h"

#define trace_is_on(group, name) unlikely(softhca_##group##__##name##_semaphore)
#define trace(group, name, ...)                              \
	do {                                                 \
		if (trace_is_on(group, name))                \
			trace_##group##_##name(__VA_ARGS__); \
	} while (0)

/* Obeys SOFTHCA_TRACE on the first call; later calls change nothing. */
void trace_init(void);
/*
 * From now on prints the points that one of the patterns matches, and no others.  Warns of a
 * pattern that matches none.
 */
void trace_select(const char *patterns);
/*
 * Gets the text of the points that it listens to, "group.name argument=value ...", which is not
 * terminated, in the thread that tells: with no lock, and perhaps in a signal handler.
 */
#define TRACE_LISTENER_WORDS 2u
struct trace_listener {
	void (*event)(struct trace_listener *l, const char *text, size_t n);
	/* trace.c's: */
	struct trace_listener *_Atomic next;
	uint64_t points[TRACE_LISTENER_WORDS]; /* a bit each */
	int32_t pid; /* a child of fork tells a listener of its parent nothing */
};

/* From now on the listener hears of the points that a pattern of 'wanted' matches and none of
 * 'unwanted'; both are lists as SOFTHCA_TRACE's. */
void trace_listen(struct trace_listener *l, const char *wanted, const char *unwanted);
/* No point that is reached from now on tells the listener, but threads may still be telling it. */
void trace_unlisten(struct trace_listener *l);
/* Waits until no thread tells a listener that trace_unlisten has taken out.  Not from a listener. */
void trace_unlisten_wait(void);
/* The child of a fork has no listeners. */
void trace_fork_child(void);

/* Lists the points with their arguments, where the log goes. */
void trace_help(void);

/* The symbol of an error number, whatever its sign: "EINVAL". */
const char *trace_errno(int error);
