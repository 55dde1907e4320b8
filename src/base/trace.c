// SPDX-License-Identifier: BSD-2-Clause
#include "base/trace.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

#define LINE_BYTES    512
#define PATTERN_BYTES 64
#define NSEC	      1000000000u

/* sys/sdt.h wants us to declare the semaphores before it, in a section of their own. */
#define TRACE_POINT(group, name, text, ...) \
	unsigned short softhca_##group##__##name##_semaphore __attribute__((section(".probes")));
#include "base/trace_points.h"

#ifdef HAVE_SDT
#define _SDT_HAS_SEMAPHORES 1
#define SDT_USE_VARIADIC    1
#include <sys/sdt.h>
#define PROBE(name, ...) STAP_PROBEV(softhca, name, __VA_ARGS__)
#else
#define PROBE(name, ...) ((void)0)
#endif

enum trace_kind { TRACE_HEX, TRACE_NUM, TRACE_NAME };

struct trace_argument {
	enum trace_kind kind;
	const char *name;
};

struct trace_point {
	const char *name;
	const char *text;
	unsigned short *semaphore;
	const struct trace_argument *arguments; /* an argument without a name ends the list */
	bool printed;
};

#define TRACE_POINT(group, name, ...) POINT_##group##_##name,
enum trace_index {
#include "base/trace_points.h"
	POINTS
};

#define TRACE_ARGUMENT(kind, name)  \
	{                           \
		TRACE_##kind, #name \
	}
#define TRACE_POINT(group, name, text, ...)                                 \
	static const struct trace_argument arguments_##group##_##name[] = { \
		TRACE_EACH(TRACE_ARGUMENT, __VA_ARGS__), {0}};
#include "base/trace_points.h"

#define TRACE_POINT(group, name, text, ...)                              \
	{#group "." #name, text, &softhca_##group##__##name##_semaphore, \
	 arguments_##group##_##name, false},
static struct trace_point points[POINTS] = {
#include "base/trace_points.h"
};

/* ---- lines, without snprintf, which signal handlers may not call ---- */

struct line {
	size_t n;
	char text[LINE_BYTES];
};

/* Keeps the last byte free for the newline. */
static void line_char(struct line *l, char c)
{
	if (l->n < sizeof(l->text) - 1)
		l->text[l->n++] = c;
}

static void line_text(struct line *l, const char *text)
{
	while (*text)
		line_char(l, *text++);
}

static void line_number(struct line *l, uint64_t value, unsigned base, unsigned digits)
{
	char reversed[20];
	unsigned n = 0;

	do {
		reversed[n++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value || n < digits);
	while (n)
		line_char(l, reversed[--n]);
}

/* Puts a value of several words in quotes, so that tools can cut a line at its blanks. */
static void line_name(struct line *l, const char *name)
{
	bool words;

	if (!name)
		name = "?";
	words = !*name || strchr(name, ' ');
	if (words)
		line_char(l, '"');
	line_text(l, name);
	if (words)
		line_char(l, '"');
}

static void line_value(struct line *l, enum trace_kind kind, uint64_t value)
{
	switch (kind) {
	case TRACE_HEX:
		line_text(l, "0x");
		line_number(l, value, 16, 1);
		break;
	case TRACE_NUM:
		line_number(l, value, 10, 1);
		break;
	case TRACE_NAME:
		line_name(l, (const char *)(uintptr_t)value);
		break;
	}
}

static void line_head(struct line *l)
{
	uint64_t now = clock_ns();

	line_text(l, "softhca[");
	line_number(l, (uint64_t)syscall(SYS_getpid), 10, 1);
	line_char(l, '/');
	line_number(l, (uint64_t)syscall(SYS_gettid), 10, 1);
	line_text(l, "]: ");
	line_number(l, now / NSEC, 10, 1);
	line_char(l, '.');
	line_number(l, now % NSEC, 10, 9);
	line_char(l, ' ');
}

static void line_write(struct line *l)
{
	l->text[l->n++] = '\n';
	log_write(l->text, l->n);
}

static void line_event(struct line *l, const struct trace_point *p, const uint64_t *values)
{
	line_text(l, p->name);
	for (const struct trace_argument *a = p->arguments; a->name; a++) {
		line_char(l, ' ');
		line_text(l, a->name);
		line_char(l, '=');
		line_value(l, a->kind, *values++);
	}
}

static void trace_print(const struct trace_point *p, const uint64_t *values)
{
	int saved_errno = errno;
	struct line l = {0};

	line_head(&l);
	line_event(&l, p, values);
	line_write(&l);
	errno = saved_errno;
}

/* ---- listeners ---- */

static_assert((uint32_t)POINTS <= TRACE_LISTENER_WORDS * 64, "a bit for each point");

static pthread_mutex_t listeners_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct trace_listener *) listeners; /* changed under the lock */
/* Threads that go through the list.  Whoever takes a listener out and then finds 0 knows that
 * nobody has it any more. */
static _Atomic(uint32_t) telling;

static void listeners_tell(unsigned index, const uint64_t *values)
{
	int saved_errno = errno;
	struct line line = {0};
	int32_t pid = 0;

	atomic_fetch_add(&telling, 1);
	for (struct trace_listener *l = atomic_load(&listeners); l; l = atomic_load(&l->next)) {
		if (!(l->points[index / 64] >> index % 64 & 1))
			continue;
		if (!pid) {
			pid = (int32_t)syscall(SYS_getpid);
			line_event(&line, &points[index], values);
		}
		if (l->pid == pid)
			l->event(l, line.text, line.n);
	}
	atomic_fetch_sub(&telling, 1);
	errno = saved_errno;
}

/* ---- the points ---- */

#define VALUE_HEX(v)		(v)
#define VALUE_NUM(v)		(v)
#define VALUE_NAME(v)		(uint64_t)(uintptr_t)(v)
#define TRACE_VALUE(kind, name) VALUE_##kind(name)
#define TRACE_BARE(kind, name)	name
#define TRACE_POINT(group, name, text, ...)                                       \
	void trace_##group##_##name(TRACE_EACH(TRACE_PARAMETER, __VA_ARGS__))     \
	{                                                                         \
		const uint64_t values[] = {TRACE_EACH(TRACE_VALUE, __VA_ARGS__)}; \
                                                                                  \
		PROBE(group##__##name, TRACE_EACH(TRACE_BARE, __VA_ARGS__));      \
		if (points[POINT_##group##_##name].printed)                       \
			trace_print(&points[POINT_##group##_##name], values);     \
		if (atomic_load_explicit(&listeners, memory_order_relaxed))       \
			listeners_tell(POINT_##group##_##name, values);           \
	}
#include "base/trace_points.h"

/* ---- which points are on ---- */

/* A tracer counts in the same word: the kernel adds 1 for each tracer that attaches. */
static void point_set(struct trace_point *p, bool on)
{
	if (p->printed == on)
		return;
	p->printed = on;
	__atomic_fetch_add(p->semaphore, on ? 1 : -1, __ATOMIC_RELAXED);
}

/* The next pattern of a list; false: there is none. */
static bool pattern_next(const char **list, char pattern[PATTERN_BYTES])
{
	while (**list) {
		const char *at = *list;
		size_t n = strcspn(at, ",");

		*list += n + (at[n] == ',');
		if (n >= PATTERN_BYTES) {
			log_warn("SOFTHCA_TRACE: no trace point has so long a name: '%.*s'", (int)n,
				 at);
		} else if (n) {
			memcpy(pattern, at, n);
			pattern[n] = '\0';
			return true;
		}
	}
	return false;
}

static void select_pattern(const char *pattern, bool chosen[POINTS])
{
	bool any = false;

	for (unsigned i = 0; i < POINTS; i++) {
		if (fnmatch(pattern, points[i].name, 0))
			continue;
		chosen[i] = true;
		any = true;
	}
	if (!any)
		log_warn(
			"SOFTHCA_TRACE: no trace point matches '%s'; SOFTHCA_TRACE=help lists them",
			pattern);
}

void trace_select(const char *patterns)
{
	bool chosen[POINTS] = {false};
	char pattern[PATTERN_BYTES];

	while (pattern_next(&patterns, pattern))
		select_pattern(pattern, chosen);
	for (unsigned i = 0; i < POINTS; i++)
		point_set(&points[i], chosen[i]);
}

/* ---- who listens ---- */

static bool list_matches(const char *list, const char *name)
{
	char pattern[PATTERN_BYTES];

	while (pattern_next(&list, pattern))
		if (!fnmatch(pattern, name, 0))
			return true;
	return false;
}

void trace_listen(struct trace_listener *l, const char *wanted, const char *unwanted)
{
	memset(l->points, 0, sizeof(l->points));
	l->pid = (int32_t)syscall(SYS_getpid);
	pthread_mutex_lock(&listeners_lock);
	atomic_store(&l->next, atomic_load(&listeners));
	for (unsigned i = 0; i < POINTS; i++)
		if (list_matches(wanted, points[i].name) &&
		    !list_matches(unwanted, points[i].name)) {
			l->points[i / 64] |= UINT64_C(1) << i % 64;
			__atomic_fetch_add(points[i].semaphore, 1, __ATOMIC_RELAXED);
		}
	atomic_store(&listeners, l);
	pthread_mutex_unlock(&listeners_lock);
}

void trace_unlisten(struct trace_listener *l)
{
	struct trace_listener *_Atomic *at = &listeners;
	struct trace_listener *i;

	pthread_mutex_lock(&listeners_lock);
	while ((i = atomic_load(at)) && i != l)
		at = &i->next;
	if (i) {
		atomic_store(at, atomic_load(&l->next));
		for (unsigned p = 0; p < POINTS; p++)
			if (l->points[p / 64] >> p % 64 & 1)
				__atomic_fetch_sub(points[p].semaphore, 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&listeners_lock);
}

void trace_unlisten_wait(void)
{
	while (atomic_load(&telling))
		sched_yield();
}

void trace_fork_child(void)
{
	pthread_mutex_init(&listeners_lock, NULL);
	while (atomic_load(&listeners))
		trace_unlisten(atomic_load(&listeners));
	atomic_store(&telling, 0);
}

void trace_help(void)
{
	for (unsigned i = 0; i < POINTS; i++) {
		struct line l = {0};

		line_text(&l, "softhca: trace point ");
		line_text(&l, points[i].name);
		for (const struct trace_argument *a = points[i].arguments; a->name; a++) {
			line_char(&l, ' ');
			line_text(&l, a->name);
		}
		line_text(&l, ": ");
		line_text(&l, points[i].text);
		line_write(&l);
	}
}

void trace_init(void)
{
	const char *want = getenv("SOFTHCA_TRACE");
	static bool done;

	if (done || !want)
		return;
	done = true;
	if (!strcmp(want, "help"))
		trace_help();
	else
		trace_select(want);
}

const char *trace_errno(int error)
{
	return strerrorname_np(error < 0 ? -error : error);
}
