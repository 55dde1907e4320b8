// SPDX-License-Identifier: BSD-2-Clause
#include "process.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern struct flexio_app *device_code;

struct flexio_process *process;
struct ibv_context *context;

void process_open(void)
{
	int count;
	struct ibv_device **devices = ibv_get_device_list(&count);

	CHECK(devices && count > 0);
	context = ibv_open_device(devices[0]);
	CHECK(context);
	ibv_free_device_list(devices);
	CHECK(flexio_process_create(context, device_code, NULL, &process) == FLEXIO_STATUS_SUCCESS);
}

void process_close(void)
{
	CHECK(flexio_process_destroy(process) == FLEXIO_STATUS_SUCCESS);
	CHECK(!ibv_close_device(context));
}

/* ---- files ---- */

FILE *capture_open(void)
{
	FILE *file = tmpfile();

	CHECK(file);
	return file;
}

const char *capture_text(FILE *file)
{
	static char *text;
	size_t length = 0, room = 4096;
	ssize_t got;

	free(text);
	CHECK(text = malloc(room));
	/* by the descriptor: another thread uses the file */
	while ((got = pread(fileno(file), text + length, room - length - 1, (off_t)length)) > 0) {
		length += (size_t)got;
		if (room - length < 2048)
			CHECK(text = realloc(text, room *= 2));
	}
	CHECK(got == 0);
	text[length] = '\0';
	return text;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

void capture_expect(FILE *file, const char *text)
{
	time_t until = time(NULL) + CASE_SECONDS;
	const char *got;

	while (strlen(got = capture_text(file)) < strlen(text) && time(NULL) < until)
		nap();
	CHECK_SAY(!strcmp(got, text), "\"%s\", not \"%s\"", got, text);
}

const char *capture_lines(FILE *file, unsigned int lines)
{
	time_t until = time(NULL) + CASE_SECONDS;
	unsigned int count;
	const char *text;

	do {
		text = capture_text(file);
		count = 0;
		for (const char *p = text; (p = strchr(p, '\n')); p++)
			count++;
		if (count < lines)
			nap();
	} while (count < lines && time(NULL) < until);
	CHECK_SAY(count == lines, "%u lines, not %u", count, lines);
	return text;
}

/* ---- threads ---- */

struct caller {
	pthread_t thread;
	flexio_func_t *function;
	uint64_t a, number, b;
};

static void *caller_main(void *arg)
{
	struct caller *c = arg;

	CALL(c->function, c->a, c->number, c->b);
	return NULL;
}

void call_from_threads(flexio_func_t *function, unsigned int threads, uint64_t a, uint64_t b)
{
	struct caller callers[32];

	CHECK(threads <= 32);
	for (unsigned int i = 0; i < threads; i++) {
		callers[i] = (struct caller){.function = function, .a = a, .number = i, .b = b};
		CHECK(!pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]));
	}
	for (unsigned int i = 0; i < threads; i++)
		CHECK(!pthread_join(callers[i].thread, NULL));
}

void check_lines(const char *text)
{
	unsigned int next[WRITERS] = {0};

	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		unsigned int writer, number;
		char end;

		CHECK_SAY(sscanf(line, "%u:%u%c", &writer, &number, &end) == 3 && end == '\n',
			  "%.20s", line);
		CHECK_SAY(writer < WRITERS && number == next[writer], "%.20s", line);
		next[writer]++;
	}
}

/* ---- cases ---- */

static void list(const struct test_case *cases)
{
	for (; cases->name; cases++)
		puts(cases->name);
}

static int run(const struct test_case *cases, const char *name)
{
	for (; cases->name; cases++)
		if (!strcmp(cases->name, name)) {
			process_open();
			cases->run();
			process_close();
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 1) {
		list(stream_cases);
		list(tracer_cases);
		list(library_cases);
		return 0;
	}
	CHECK_SAY(run(stream_cases, argv[1]) || run(tracer_cases, argv[1]) ||
			  run(library_cases, argv[1]),
		  "%s", argv[1]);
	return 0;
}
