// SPDX-License-Identifier: BSD-2-Clause
/*
 * Explanations: nothing while they are off, lines that are like each other are counted, lines of
 * several threads are whole, a forked child begins anew, a reason goes to who asks for it in the same
 * thread.
 */
#include "base/explain.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "captured.h"
#include "check.h"

/* What is printed of these fits into what captured.h keeps. */
#define LINES  200u
#define KINDS  100u
#define SPOKEN 60u
#define FORKS  40u

#define CHILD_SECONDS 60

static void off_says_nothing(void)
{
	const char *out;

	capture_begin();
	explain_line(1, "nobody asked");
	explain_flush();
	out = capture_end();
	CHECK(!*out);
}

/* What is printed and what is counted make up all. */
static unsigned lines_of(const char *out, const char *text)
{
	unsigned lines = 0, more;

	for (const char *at = out; (at = strstr(at, "explain: ")); at++) {
		const char *end = strchr(at, '\n');
		const char *found = strstr(at, text);

		if (!found || found > end)
			continue;
		lines += sscanf(at, "explain: ... %u more like it", &more) == 1 ? more : 1;
	}
	return lines;
}

static void like_lines_are_counted(void)
{
	const char *out;

	capture_begin();
	for (unsigned i = 0; i < LINES; i++) {
		explain_line(7, "QP %u has it, time %u", 7u, i);
		explain_line(8, "QP %u has it, time %u", 8u, i);
	}
	explain_flush();
	explain_flush();
	out = capture_end();
	CHECK(lines_of(out, "QP 7 has it") == LINES);
	CHECK(lines_of(out, "QP 8 has it") == LINES);
	/* Three a second of each kind at most, and the two counts. */
	CHECK(strstr(out, "more like it, the last: QP 7 has it, time 199"));
}

/* More kinds than there are places: each line is printed or counted. */
static void many_kinds_lose_none(void)
{
	const char *out;

	capture_begin();
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < KINDS; i++)
			explain_line(100 + i, "kind %u.", i);
	explain_flush();
	out = capture_end();
	CHECK(lines_of(out, "kind 0.") == 3 && lines_of(out, "kind 99.") == 3);
	CHECK(lines_of(out, "kind ") == 3 * KINDS);
}

static void *talk(void *letter)
{
	char text[300];

	memset(text, *(const char *)letter, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (uint64_t i = 0; i < SPOKEN; i++)
		explain_line(i << 8 | (uint8_t)text[0], "%s.", text);
	return NULL;
}

static void threads_do_not_mix(void)
{
	pthread_t threads[2];
	char *out, *rest;

	capture_begin();
	CHECK(!pthread_create(&threads[0], NULL, talk, (void *)(uintptr_t) "a"));
	CHECK(!pthread_create(&threads[1], NULL, talk, (void *)(uintptr_t) "b"));
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	out = strdup(capture_end());
	for (char *line = strtok_r(out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *text = strstr(line, "explain: ");

		CHECK(text && strlen(text) == strlen("explain: ") + 300);
		CHECK(strspn(text + 9, "a") == 299 || strspn(text + 9, "b") == 299);
	}
	free(out);
}

/* What the parent has counted is the parent's to print. */
static void children_count_for_themselves(void)
{
	const char *out;
	int status;

	capture_begin();
	for (unsigned i = 0; i < LINES; i++)
		explain_line(9, "before the fork, time %u", i);
	if (!fork()) {
		explain_fork_child();
		explain_flush();
		explain_line(9, "a child's");
		_exit(0);
	}
	CHECK(wait(&status) > 0 && !status);
	explain_flush();
	out = capture_end();
	CHECK(lines_of(out, "before the fork") == LINES);
	CHECK(lines_of(out, "a child's") == 1);
}

static _Atomic(bool) enough;

static void *talk_on(void *unused)
{
	(void)unused;
	while (!atomic_load(&enough))
		explain_line(10, "%0300d", 0);
	return NULL;
}

/* Of a thread that was in the middle of a line nothing stays behind in a child. */
static void fork_while_another_talks(void)
{
	pthread_t thread;
	int status;

	capture_begin();
	CHECK(!pthread_create(&thread, NULL, talk_on, NULL));
	for (unsigned i = 0; i < FORKS; i++) {
		if (!fork()) {
			alarm(CHILD_SECONDS);
			explain_fork_child();
			explain_line(10, "a child's");
			explain_flush();
			_exit(0);
		}
		CHECK(wait(&status) > 0 && !status);
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	explain_flush();
	CHECK(captured_count(capture_end(), "a child's") == FORKS);
}

static void reason_is_taken_once(void)
{
	explain_because("key 0x%x is unknown", 0x123u);
	CHECK(!strcmp(explain_reason("no reason"), "key 0x123 is unknown"));
	CHECK(!strcmp(explain_reason("no reason"), "no reason"));
}

int main(void)
{
	CHECK(!setenv("SOFTHCA_EXPLAIN", "1", 1));
	off_says_nothing();
	log_init();
	explain_init();
	CHECK(explaining());
	like_lines_are_counted();
	many_kinds_lose_none();
	threads_do_not_mix();
	children_count_for_themselves();
	fork_while_another_talks();
	reason_is_taken_once();
	return 0;
}
