// SPDX-License-Identifier: BSD-2-Clause
/* Runs the statements whose numbers are its arguments, or says with --list which it knows. */
#include "checklist.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct statement *const groups[] = {
	statements_of_files,   statements_of_agents,  statements_of_receiving,
	statements_of_sending, statements_of_layouts, statements_of_issm,
};
static unsigned current;

void failed(const char *file, int line, const char *format, ...)
{
	va_list arguments;
	const char *base = strrchr(file, '/');

	printf("%u: ", current);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf(" (%s:%d)\n", base ? base + 1 : file, line);
	fflush(stdout);
	_exit(1);
}

const char *text_of(const char *format, ...)
{
	static char text[256];
	char path[256];
	va_list arguments;
	ssize_t n;
	int fd;

	va_start(arguments, format);
	vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	text[0] = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return text;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	text[strcspn(text, "\n")] = 0;
	return text;
}

#define PORT_FILE "/sys/class/infiniband/mlx5_0/ports/%u/"

uint16_t lid_of(unsigned port)
{
	return (uint16_t)strtoul(text_of(PORT_FILE "lid", port), NULL, 0);
}

void gid_of(unsigned port, uint8_t gid[16])
{
	const char *text = text_of(PORT_FILE "gids/0", port);

	for (unsigned i = 0; i < 8; i++) {
		unsigned long v = strtoul(text + (size_t)5 * i, NULL, 16);

		gid[2 * i] = (uint8_t)(v >> 8);
		gid[2 * i + 1] = (uint8_t)v;
	}
}

bool issm_bit_of(unsigned port)
{
	return strtoul(text_of(PORT_FILE "cap_mask", port), NULL, 0) & ISSM_BIT;
}

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
static bool statement_holds(unsigned number)
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
		current = number;
		alarm(120);
		test();
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		printf("%u: no process\n", number);
		return false;
	}
	if (WIFSIGNALED(status))
		printf("%u: ended by signal %d\n", number, WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
	unsigned failures = 0;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		statements_list();
		return 0;
	}
	for (int i = 1; i < argc; i++)
		failures += !statement_holds((unsigned)strtoul(argv[i], NULL, 10));
	return failures != 0;
}
