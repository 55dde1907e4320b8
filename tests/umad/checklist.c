// SPDX-License-Identifier: BSD-2-Clause
/* Runs the statements whose numbers are its arguments, or says with --list which it knows.  With --hurry
 * none gets much time: something has failed already. */
#include "checklist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of one statement; and once one has failed, when the rest need only say which else do. */
#define SECONDS		40u
#define HURRIED_SECONDS 1u

static const struct statement *const groups[] = {
	statements_of_files,   statements_of_agents,  statements_of_receiving,
	statements_of_sending, statements_of_layouts, statements_of_issm,
};

static void (*statement_find(unsigned number))(void)
{
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		for (const struct statement *s = groups[g]; s->number != 0; s++)
			if (s->number == number)
				return s->test;
	return NULL;
}

static void statements_list(void)
{
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++)
		for (const struct statement *s = groups[g]; s->number != 0; s++)
			printf("%u\n", s->number);
}

/* In a process of its own, which no other statement's files are left in. */
static bool statement_holds(unsigned number, unsigned seconds)
{
	void (*test)(void) = statement_find(number);
	int status;
	pid_t child;

	if (!test) {
		printf("%u: no such statement\n", number);
		return false;
	}
	fflush(stdout);
	child = fork();
	if (child == 0) {
		failed_statement = number;
		alarm(seconds);
		test();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		printf("%u: no process\n", number);
		return false;
	}
	if (WIFSIGNALED(status))
		printf("%u: ended by signal %d, %u s were given\n", number, WTERMSIG(status),
		       seconds);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
	unsigned failures = 0;
	int first = 1;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		statements_list();
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "--hurry") == 0)
		first = 2;
	for (int i = first; i < argc; i++)
		failures += !statement_holds((unsigned)strtoul(argv[i], NULL, 10),
					     failures || first == 2 ? HURRIED_SECONDS : SECONDS);
	return failures != 0;
}
