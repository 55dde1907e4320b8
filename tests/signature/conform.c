// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs the conformance tests, each in a process of its own, and prints a row for each statement
 * that a test is about: outcome, name, reason.
 */
#include "conform.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_LIMIT 60 /* seconds */
#define SKIPPED	   77

struct options options = {.gid_index = -1, .seed = 1};

static const struct test *const tables[] = {
	refusal_tests, create_tests, config_tests,  layout_tests,      vector_tests, matrix_tests,
	mask_tests,    tag_tests,    example_tests, length_tests,      error_tests,  pipeline_tests,
	cancel_tests,  task_tests,   raw_tests,	    transaction_tests, abuse_tests,
};

static const char *pattern;

static bool is_chosen(const char *name)
{
	return !pattern || strstr(name, pattern);
}

/* The last line of what a test said. */
static const char *last_line(char *text)
{
	char *line;

	for (size_t n = strlen(text); n && text[n - 1] == '\n'; n--)
		text[n - 1] = 0;
	for (char *c = text; *c; c++)
		if (*c == '\t')
			*c = ' ';
	line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

static int in_child(const struct test *t, char *said, size_t room)
{
	size_t at = 0;
	int status;
	int ends[2];
	ssize_t n;
	pid_t pid;

	fflush(stdout);
	if (pipe(ends) || (pid = fork()) < 0)
		device_die("pipe or fork: %m");
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		alarm(TEST_LIMIT);
		t->run(t);
		fflush(stdout);
		_exit(0);
	}
	close(ends[1]);
	while (at < room - 1 && (n = read(ends[0], said + at, room - 1 - at)) > 0)
		at += (size_t)n;
	said[at] = 0;
	close(ends[0]);
	if (waitpid(pid, &status, 0) != pid)
		device_die("waitpid: %m");
	return status;
}

/* False if it failed. */
static bool run_test(const struct test *t)
{
	static char said[16384];
	char number[8] = "T000";
	char reason[512];
	char name[256];
	bool any = false;
	const char *outcome;
	int status;

	for (int i = 0; i < CONFORM_IDS && (t->ids[i] || !i); i++) {
		snprintf(name, sizeof(name), "T%03u-%s", t->ids[i], t->name);
		any |= is_chosen(name);
	}
	if (!any)
		return true;
	status = in_child(t, said, sizeof(said));
	if (WIFSIGNALED(status))
		snprintf(reason, sizeof(reason), "%s; %.400s", strsignal(WTERMSIG(status)),
			 last_line(said));
	else
		snprintf(reason, sizeof(reason), "%.500s", last_line(said));
	if (!WIFEXITED(status))
		outcome = "FAIL";
	else
		outcome = WEXITSTATUS(status) == 0	   ? "PASS"
			  : WEXITSTATUS(status) == SKIPPED ? "SKIP"
							   : "FAIL";
	for (int i = 0; i < CONFORM_IDS && (t->ids[i] || !i); i++) {
		snprintf(number, sizeof(number), "T%03u", t->ids[i]);
		printf("%s\t%s-%s\t%s\n", outcome, number, t->name, reason);
	}
	return strcmp(outcome, "FAIL") != 0;
}

/* Statements that no program can see, and a failure for those that were forgotten. */
static bool the_rest(void)
{
	bool covered[STATEMENTS + 1] = {false};
	bool complete = true;

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (const struct test *t = tables[i]; t->name; t++)
			for (int k = 0; k < CONFORM_IDS; k++)
				covered[t->ids[k]] = true;
	for (int id = 1; id <= STATEMENTS; id++) {
		char name[256];

		snprintf(name, sizeof(name), "T%03d-%s", id, statements[id].says);
		if (covered[id] || !is_chosen(name))
			continue;
		if (statements[id].unobservable)
			printf("SKIP\t%s\t%s\n", name, statements[id].unobservable);
		else
			printf("FAIL\t%s\tno test is about it\n", name);
		complete &= !!statements[id].unobservable;
	}
	return complete;
}

static void list_statements(void)
{
	for (int id = 1; id <= STATEMENTS; id++)
		printf("T%03d %s: %s\n", id, statements[id].page, statements[id].says);
}

_Noreturn static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"Usage: conform [OPTION...] [PATTERN]\n"
		"Tests what the manual pages of mlx5dv promise about block signatures; PATTERN "
		"chooses\n"
		"by name (T043, escape, ...).\n"
		"  -d DEVICE   of libibverbs; the first\n"
		"  -g INDEX    GID index; on InfiniBand none\n"
		"  -2          the two sides in two processes\n"
		"  -r STYLE    how errors are reported: manual (as mlx5dv_mkey_check(3) says) or\n"
		"              hardware (as devices are seen to do); manual\n"
		"  -s SEED     of random data; 1\n"
		"  -l          list the statements\n");
	exit(status);
}

int main(int argc, char **argv)
{
	bool good = true;
	int c;

	while ((c = getopt(argc, argv, OPTION_LETTERS "lh")) != -1) {
		switch (c) {
		case 'l':
			list_statements();
			return 0;
		case 'h':
			usage(0);
		default:
			if (!option_take(c, optarg))
				usage(2);
		}
	}
	pattern = argv[optind];
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (const struct test *t = tables[i]; t->name; t++)
			good &= run_test(t);
	good &= the_rest();
	return good ? 0 : 1;
}
