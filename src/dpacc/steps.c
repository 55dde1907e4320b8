// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dpacc/steps.h"
#include "dpacc/words.h"

static char *own_directory; /* for this run alone */
static volatile sig_atomic_t stopped_by;

static void steps_remove(void)
{
	DIR *directory = own_directory ? opendir(own_directory) : NULL;
	const struct dirent *entry;

	if (!directory)
		return;
	while ((entry = readdir(directory)))
		unlinkat(dirfd(directory), entry->d_name, 0);
	closedir(directory);
	rmdir(own_directory);
}

/* Waits for the running command, so that it does not write into a directory that has gone. */
static void steps_stop(int signal)
{
	stopped_by = signal;
}

static void steps_make_directory(const char *path)
{
	char *part = text_of("%s", path);

	for (char *at = part + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = 0;
		mkdir(part, 0777);
		*at = '/';
	}
	if (mkdir(part, 0777) && errno != EEXIST)
		give_up("%s: %s", path, strerror(errno));
}

void steps_begin(struct steps *steps, const char *keep, bool verbose, bool dry)
{
	const char *temporary = getenv("TMPDIR");
	struct sigaction stop = {.sa_handler = steps_stop};
	char *template = text_of("%s/dpacc-XXXXXX", temporary && *temporary ? temporary : "/tmp");

	*steps = (struct steps){keep ? keep : template, verbose || dry, dry};
	if (dry)
		return;
	if (keep) {
		steps_make_directory(keep);
		return;
	}
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	if (!mkdtemp(template))
		give_up("%s: %s", template, strerror(errno));
	own_directory = template;
	atexit(steps_remove);
}

char *steps_path(const struct steps *steps, const char *format, ...)
{
	va_list args;
	char *name;

	va_start(args, format);
	if (vasprintf(&name, format, args) < 0)
		give_up("out of memory");
	va_end(args);
	return text_of("%s/%s", steps->directory, name);
}

/* Prints one line that a shell would take. */
static void steps_show(const struct words *command)
{
	for (size_t i = 0; i < command->count; i++) {
		const char *word = command->words[i];
		bool plain = *word && !word[strcspn(word, " \t\n'\"\\$`*?()<>|&;#~[]{}!")];

		fputs(i ? " " : "", stdout);
		if (plain) {
			fputs(word, stdout);
			continue;
		}
		putchar('\'');
		for (; *word; word++)
			fputs(*word == '\'' ? "'\\''" : (char[]){*word, 0}, stdout);
		putchar('\'');
	}
	putchar('\n');
	fflush(stdout);
}

void steps_run(const struct steps *steps, const struct words *command)
{
	int status, error;
	pid_t child;

	if (steps->verbose)
		steps_show(command);
	if (steps->dry)
		return;
	error = posix_spawnp(&child, command->words[0], NULL, NULL, command->words, environ);
	if (error)
		give_up("%s: %s", command->words[0], strerror(error));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			give_up("waitpid: %s", strerror(errno));
	if (stopped_by)
		exit(128 + stopped_by);
	if (WIFSIGNALED(status))
		give_up("%s: killed by signal %d", command->words[0], WTERMSIG(status));
	if (WEXITSTATUS(status))
		exit(WEXITSTATUS(status));
}

void steps_say(const struct steps *steps, const char *format, ...)
{
	va_list args;

	if (!steps->verbose)
		return;
	va_start(args, format);
	fputs("# ", stdout);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
	va_end(args);
}

FILE *steps_open(const struct steps *steps, const char *path)
{
	FILE *file;

	steps_say(steps, "writes %s", path);
	if (steps->dry)
		return NULL;
	file = fopen(path, "we");
	if (!file)
		give_up("%s: %s", path, strerror(errno));
	return file;
}

void steps_close(FILE *file, const char *path)
{
	bool failed = ferror(file);

	if (fclose(file) || failed)
		give_up("%s: %s", path, strerror(errno));
}

/* Returns a name beside the file's that nobody else uses. */
static char *steps_beside(const char *path)
{
	unsigned long number = 0;

	if (getrandom(&number, sizeof(number), 0) < 0)
		give_up("getrandom: %s", strerror(errno));
	return text_of("%s.%lx", path, number);
}

/* Runs a command that makes a file; the file gets its name when it is whole. */
static void steps_make(const struct steps *steps, const struct words *before, const char *path,
		       const struct words *after)
{
	char *whole = steps->dry ? text_of("%s", path) : steps_beside(path);
	struct words command = {0};

	words_add_all(&command, before);
	words_add(&command, whole);
	words_add_all(&command, after);
	steps_run(steps, &command);
	if (!steps->dry && rename(whole, path)) {
		unlink(whole);
		give_up("%s: %s", path, strerror(errno));
	}
}

void steps_copy(const struct steps *steps, const char *from, const char *to)
{
	struct words command = {0};

	words_add(&command, "cp");
	words_add(&command, from);
	steps_make(steps, &command, to, &(struct words){0});
}

void steps_archive(const struct steps *steps, const char *archive, const struct words *objects)
{
	struct words command = {0};

	words_split(&command, "ar cr");
	steps_make(steps, &command, archive, objects);
}
