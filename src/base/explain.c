// SPDX-License-Identifier: BSD-2-Clause
#include "base/explain.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/spin.h"
#include "base/text.h"

#define LINE_BYTES   1024
#define TEXT_BYTES   (LINE_BYTES - 96) /* leaves room for what stands in front */
#define REASON_BYTES 512
#define NSEC	     1000000000ull

/* In a period we print this many lines that are alike, and count the others. */
#define BURST	  3u
#define PERIOD_NS NSEC

bool explain_on;

/* Why this thread is about to refuse something. */
static _Thread_local struct {
	const char *noted; /* the format; NULL: nothing is noted */
	uintptr_t taken;   /* the reason taken last, for the line that it goes into */
	char text[REASON_BYTES];
} reason;

/* ---- lines ---- */

struct text {
	char bytes[TEXT_BYTES];
};

static void explain_write(const char *text)
{
	char line[LINE_BYTES];
	uint64_t now = clock_ns();
	int n = snprintf(line, sizeof(line) - 1, "softhca[%ld/%ld]: %llu.%09llu explain: %s",
			 syscall(SYS_getpid), syscall(SYS_gettid), (unsigned long long)(now / NSEC),
			 (unsigned long long)(now % NSEC), text);

	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	log_write(line, (size_t)n);
}

/* ---- lines that are alike ---- */

/* A kind of line.  What the lines have in common decides its place in the table. */
struct kind {
	uint64_t like;
	uint64_t since; /* ns */
	uint32_t printed;
	uint32_t counted;
	struct text last; /* the last line counted */
};

#define KINDS 64u

static struct kind kinds[KINDS];
/* Held for the time of a few copies, never across a system call. */
static struct spin kinds_lock;

/* What we still have to say about a kind before its next period begins. */
struct more {
	uint32_t lines;
	struct text last;
};

static void kind_end(struct kind *k, struct more *more)
{
	more->lines = k->counted;
	if (k->counted)
		more->last = k->last;
	k->counted = 0;
	k->printed = 0;
}

static void more_write(const struct more *more)
{
	struct text text;

	if (!more->lines)
		return;
	(void)snprintf(text.bytes, sizeof(text.bytes), "... %u more like it, the last: %.*s",
		       more->lines, TEXT_BYTES - 64, more->last.bytes);
	explain_write(text.bytes);
}

/* True if this line may be printed.  'more' gets what was counted before it. */
static bool kind_admit(uint64_t like, const struct text *text, struct more *more)
{
	struct kind *k = &kinds[(like ^ like >> 32 ^ like >> 16) % KINDS];
	uint64_t now = clock_ns();
	bool print;

	more->lines = 0;
	spin_lock(&kinds_lock);
	if (k->like != like || now - k->since >= PERIOD_NS) {
		kind_end(k, more);
		k->like = like;
		k->since = now;
	}
	print = k->printed < BURST;
	if (print) {
		k->printed++;
	} else {
		k->counted++;
		k->last = *text;
	}
	spin_unlock(&kinds_lock);
	return print;
}

void explain_flush(void)
{
	for (unsigned i = 0; explain_on && i < KINDS; i++) {
		struct more more = {0};

		spin_lock(&kinds_lock);
		if (kinds[i].counted)
			kind_end(&kinds[i], &more);
		spin_unlock(&kinds_lock);
		more_write(&more);
	}
}

static void __attribute__((destructor)) explain_exit(void)
{
	explain_flush();
}

void explain_fork_child(void)
{
	spin_unlock(&kinds_lock);
	for (unsigned i = 0; explain_on && i < KINDS; i++)
		kinds[i].counted = 0;
	reason.noted = NULL;
}

void explain_line(uint64_t subject, const char *fmt, ...)
{
	/* Formats lie in the program's text, so their addresses tell places in the source apart. */
	uint64_t like = ((uintptr_t)fmt ^ reason.taken) * 0x9e3779b97f4a7c15u ^
			subject * 0xc2b2ae3d27d4eb4fu;
	int saved_errno = errno;
	struct text text;
	struct more more;
	va_list ap;
	bool print;

	reason.taken = 0;
	if (!explain_on)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text.bytes, sizeof(text.bytes), fmt, ap);
	va_end(ap);
	print = kind_admit(like, &text, &more);
	more_write(&more);
	if (print)
		explain_write(text.bytes);
	errno = saved_errno;
}

/* ---- reasons ---- */

void explain_because(const char *fmt, ...)
{
	int saved_errno = errno;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(reason.text, sizeof(reason.text), fmt, ap);
	va_end(ap);
	reason.noted = fmt;
	errno = saved_errno;
}

const char *explain_reason(const char *or_else)
{
	const char *text = reason.noted ? reason.text : or_else;

	reason.taken = (uintptr_t)(reason.noted ? reason.noted : or_else);
	reason.noted = NULL;
	return text;
}

/* ---- whether explanations are on ---- */

void explain_init(void)
{
	const char *want = getenv("SOFTHCA_EXPLAIN");
	static bool done;

	if (done)
		return;
	done = true;
	explain_on = (want && *want && strcmp(want, "0") != 0) || log_level >= LOG_LEVEL_INFO;
}
