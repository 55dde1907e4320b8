// SPDX-License-Identifier: BSD-2-Clause
/* Message streams, from device code to the program's file. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

static struct flexio_msg_stream *make(flexio_msg_dev_sync_mode mode, flexio_msg_dev_level level,
				      size_t bytes, FILE *out)
{
	flexio_msg_stream_attr_t attr = {
		.data_bsize = bytes, .sync_mode = mode, .level = level, .stream_name = "test"};
	struct flexio_msg_stream *stream = NULL;

	CHECK(flexio_msg_stream_create(process, &attr, out, NULL, &stream) ==
	      FLEXIO_STATUS_SUCCESS);
	return stream;
}

static void destroy(struct flexio_msg_stream *stream)
{
	CHECK(flexio_msg_stream_destroy(stream) == FLEXIO_STATUS_SUCCESS);
}

static void numbers(void)
{
	FILE *out = capture_open();
	struct flexio_msg_stream *streams[FLEXIO_MSG_DEV_MAX_STREAMS_AMOUNT], *more = (void *)1;
	flexio_msg_stream_attr_t attr = {.data_bsize = 2048,
					 .sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_ASYNC};

	for (int i = 0; i < FLEXIO_MSG_DEV_MAX_STREAMS_AMOUNT; i++) {
		streams[i] = make(FLEXIO_LOG_DEV_SYNC_MODE_ASYNC, FLEXIO_MSG_DEV_INFO, 2048, out);
		CHECK(flexio_msg_stream_get_id(streams[i]) == i);
	}
	CHECK(flexio_msg_stream_create(process, &attr, out, NULL, &more) == FLEXIO_STATUS_FAILED &&
	      !more);
	CHECK(flexio_msg_stream_get_id(NULL) == -1);
	for (int i = 0; i < FLEXIO_MSG_DEV_MAX_STREAMS_AMOUNT; i++)
		destroy(streams[i]);
	/* the pointer is a stream no longer */
	CHECK(flexio_msg_stream_get_id(streams[0]) == -1);
	CHECK(flexio_msg_stream_destroy(streams[0]) == FLEXIO_STATUS_FAILED);
	CHECK(flexio_msg_stream_destroy(NULL) == FLEXIO_STATUS_FAILED);
	fclose(out);
}

static void synchronous(void)
{
	FILE *out = capture_open();
	pthread_t thread = pthread_self();
	flexio_msg_stream_attr_t attr = {.data_bsize = 2048};
	struct flexio_msg_stream *stream;

	CHECK(flexio_msg_stream_create(process, &attr, out, &thread, &stream) ==
	      FLEXIO_STATUS_SUCCESS);
	CHECK(thread && !pthread_equal(thread, pthread_self()));
	CHECK(CALL(say_print, 5ul) == 8);
	capture_expect(out, "print 5\n");
	CHECK(flexio_msg_stream_flush(stream) == FLEXIO_STATUS_SUCCESS);
	capture_expect(out, "print 5\n");
	/* many more than the buffer has room for: the device waits, nothing is lost */
	CALL(say, 0ul, (uint64_t)FLEXIO_MSG_DEV_INFO, 0ul, 0ul, 2000ul);
	capture_lines(out, 2001);
	destroy(stream);
	fclose(out);
}

static void asynchronous(void)
{
	FILE *out = capture_open();
	struct flexio_msg_stream *stream =
		make(FLEXIO_LOG_DEV_SYNC_MODE_ASYNC, FLEXIO_MSG_DEV_INFO, 8192, out);

	CALL(say_print, 1ul);
	CALL(say_print, 2ul);
	CHECK(!*capture_text(out));
	CHECK(flexio_msg_stream_flush(stream) == FLEXIO_STATUS_SUCCESS);
	CHECK(!strcmp(capture_text(out), "print 1\nprint 2\n"));
	CALL(say_print, 3ul);
	destroy(stream);
	CHECK(!strcmp(capture_text(out), "print 1\nprint 2\nprint 3\n"));
	fclose(out);
}

static void overrun(void)
{
	FILE *out = capture_open();
	struct flexio_msg_stream *stream =
		make(FLEXIO_LOG_DEV_SYNC_MODE_ASYNC, FLEXIO_MSG_DEV_INFO, 2048, out);
	const char *text, *last = "0:4999\n";
	size_t length;

	CALL(say, 0ul, (uint64_t)FLEXIO_MSG_DEV_INFO, 0ul, 0ul, 5000ul);
	CHECK(flexio_msg_stream_flush(stream) == FLEXIO_STATUS_SUCCESS);
	text = capture_text(out);
	length = strlen(text);
	CHECK(length > 1000 && length <= 2048 && !strncmp(text, "0:4", 3));
	CHECK(!strcmp(text + length - strlen(last), last));
	destroy(stream);
	fclose(out);
}

static void bad_attributes(void)
{
	static const size_t sizes[] = {0, 1, 1024, 2047, 2049, 3072, (size_t)1 << 40};
	FILE *out = capture_open();
	flexio_msg_stream_attr_t good = {.data_bsize = 2048, .level = FLEXIO_MSG_DEV_INFO}, bad;
	struct flexio_msg_stream *stream;

#define REFUSED(...)                                                                 \
	do {                                                                         \
		bad = good;                                                          \
		__VA_ARGS__;                                                         \
		stream = (void *)1;                                                  \
		CHECK(flexio_msg_stream_create(process, &bad, out, NULL, &stream) == \
		      FLEXIO_STATUS_FAILED);                                         \
		CHECK(!stream);                                                      \
	} while (0)
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		REFUSED(bad.data_bsize = sizes[i]);
	REFUSED(bad.sync_mode = 4);
	REFUSED(bad.level = FLEXIO_MSG_DEV_DEBUG + 1);
	REFUSED(bad.mgmt_affinity.type = 3);
	REFUSED(bad.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_TRACER);
	REFUSED(bad.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_TRACER; bad.tracer_mode = 2;
		bad.tracer_msg_formats = (char *[]){NULL});
	REFUSED(bad.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_BATCH);
	CHECK(flexio_msg_stream_create(process, NULL, out, NULL, &stream) == FLEXIO_STATUS_FAILED);
	CHECK(flexio_msg_stream_create(process, &good, NULL, NULL, &stream) ==
	      FLEXIO_STATUS_FAILED);
	CHECK(flexio_msg_stream_create(process, &good, out, NULL, NULL) == FLEXIO_STATUS_FAILED);
	CHECK(flexio_msg_stream_create(NULL, &good, out, NULL, &stream) == FLEXIO_STATUS_FAILED);
	CHECK(flexio_msg_stream_create((void *)&good, &good, out, NULL, &stream) ==
	      FLEXIO_STATUS_FAILED);
	CHECK(flexio_msg_stream_flush(NULL) == FLEXIO_STATUS_FAILED);
	CHECK(flexio_msg_stream_level_set(NULL, FLEXIO_MSG_DEV_INFO) == FLEXIO_STATUS_FAILED);
	fclose(out);
}

static void levels(void)
{
	FILE *first_out = capture_open(), *out = capture_open();
	struct flexio_msg_stream *first =
		make(FLEXIO_LOG_DEV_SYNC_MODE_ASYNC, FLEXIO_MSG_DEV_DEBUG, 2048, first_out);
	struct flexio_msg_stream *second =
		make(FLEXIO_LOG_DEV_SYNC_MODE_ASYNC, FLEXIO_MSG_DEV_WARN, 2048, out);

	for (uint64_t stream = 0; stream < 2; stream++)
		for (uint64_t level = FLEXIO_MSG_DEV_NO_PRINT; level <= FLEXIO_MSG_DEV_DEBUG;
		     level++)
			CALL(say, stream, level, 9ul, level, 1ul);
	CHECK(flexio_msg_stream_flush(first) == FLEXIO_STATUS_SUCCESS);
	CHECK(!strcmp(capture_text(first_out), "9:1\n9:2\n9:3\n9:4\n"));
	CHECK(flexio_msg_stream_flush(second) == FLEXIO_STATUS_SUCCESS);
	CHECK(!strcmp(capture_text(out), "9:1\n9:2\n9:3\n"));

	CHECK(flexio_msg_stream_level_set(first, FLEXIO_MSG_DEV_DEBUG) == FLEXIO_STATUS_FAILED);
	CHECK(flexio_msg_stream_level_set(second, FLEXIO_MSG_DEV_ALWAYS_PRINT) ==
	      FLEXIO_STATUS_FAILED);
	CHECK(flexio_msg_stream_level_set(second, FLEXIO_MSG_DEV_DEBUG + 1) ==
	      FLEXIO_STATUS_FAILED);
	CHECK(flexio_msg_stream_level_set(second, FLEXIO_MSG_DEV_NO_PRINT) ==
	      FLEXIO_STATUS_SUCCESS);
	CALL(say, 1ul, (uint64_t)FLEXIO_MSG_DEV_ERROR, 8ul, 0ul, 1ul);
	CHECK(flexio_msg_stream_level_set(second, FLEXIO_MSG_DEV_DEBUG) == FLEXIO_STATUS_SUCCESS);
	CALL(say, 1ul, (uint64_t)FLEXIO_MSG_DEV_DEBUG, 7ul, 0ul, 1ul);
	CHECK(flexio_msg_stream_flush(second) == FLEXIO_STATUS_SUCCESS);
	CHECK(!strcmp(capture_text(out), "9:1\n9:2\n9:3\n7:0\n"));
	destroy(second);
	destroy(first);
	fclose(out);
	fclose(first_out);
}

static void broadcast(void)
{
	FILE *outs[3];
	struct flexio_msg_stream *streams[3];

	for (int i = 0; i < 3; i++) {
		outs[i] = capture_open();
		streams[i] =
			make(FLEXIO_LOG_DEV_SYNC_MODE_SYNC, FLEXIO_MSG_DEV_INFO, 2048, outs[i]);
	}
	CHECK(CALL(say_broadcast, (uint64_t)FLEXIO_MSG_DEV_INFO, 6ul) == 12);
	for (int i = 0; i < 3; i++)
		capture_expect(outs[i], "broadcast 6\n");
	/* to a stream that is not there */
	CHECK(CALL(say, 77ul, (uint64_t)FLEXIO_MSG_DEV_INFO, 1ul, 2ul, 1ul) == 4);
	CHECK(CALL(say, 1ul, (uint64_t)FLEXIO_MSG_DEV_INFO, 1ul, 2ul, 1ul) == 4);
	for (int i = 0; i < 3; i++)
		destroy(streams[i]);
	for (int i = 0; i < 3; i++) {
		capture_expect(outs[i], i == 1 ? "broadcast 6\n1:2\n" : "broadcast 6\n");
		fclose(outs[i]);
	}
}

static void texts(void)
{
	FILE *out = capture_open();
	static const char formatted[] =
		"-1 2 -3 4 5ab 6cd 7 eight 0x9abc %|   10|11   |00012|thi|    14\n";
	struct flexio_msg_stream *stream;
	char longest[2049];

	/* without a stream nothing happens, and the lengths are the same */
	CHECK(CALL(say_puts, 0ul) == 27 && CALL(say_formats, 0ul) == strlen(formatted));
	stream = make(FLEXIO_LOG_DEV_SYNC_MODE_ASYNC, FLEXIO_MSG_DEV_INFO, 8192, out);
	CHECK(CALL(say_puts, 0ul) == 27);
	CHECK(CALL(say_formats, 0ul) == strlen(formatted));
	CHECK(CALL(say_libc, 3ul) == 9);
	destroy(stream);
	CHECK(!strncmp(capture_text(out), "puts: 100% as it stands %s\n", 27));
	CHECK_SAY(!strncmp(capture_text(out) + 27, formatted, strlen(formatted)), "%s",
		  capture_text(out));
	CHECK(!strcmp(capture_text(out) + 27 + strlen(formatted), "printf 3\n"));
	fclose(out);

	/* a message has at most 2048 bytes, in each buffer */
	out = capture_open();
	stream = make(FLEXIO_LOG_DEV_SYNC_MODE_SYNC, FLEXIO_MSG_DEV_INFO, 2048, out);
	CHECK(CALL(say_long, 1024ul) == 1024);
	memset(longest, 'l', 1024);
	longest[1024] = '\0';
	capture_expect(out, longest);
	CHECK(CALL(say_long, 3000ul) == 3000);
	destroy(stream);
	CHECK(strlen(capture_text(out)) == 1024 + 2048);
	fclose(out);
}

struct writer {
	pthread_t thread;
	unsigned int number;
};

static void *write_lines(void *arg)
{
	const struct writer *w = arg;

	CALL(say, 0ul, (uint64_t)FLEXIO_MSG_DEV_INFO, (uint64_t)w->number, 0ul, (uint64_t)LINES);
	return NULL;
}

static void writers(flexio_msg_dev_sync_mode mode)
{
	FILE *out = capture_open();
	struct flexio_msg_stream *stream = make(mode, FLEXIO_MSG_DEV_INFO, 4096, out);
	struct writer all[WRITERS];

	for (unsigned int i = 0; i < WRITERS; i++) {
		all[i].number = i;
		CHECK(!pthread_create(&all[i].thread, NULL, write_lines, &all[i]));
	}
	for (unsigned int i = 0; i < WRITERS; i++)
		CHECK(!pthread_join(all[i].thread, NULL));
	/* in batches, too, all come without a flush */
	check_lines(capture_lines(out, WRITERS * LINES));
	destroy(stream);
	fclose(out);
}

static void writers_synchronous(void)
{
	writers(FLEXIO_LOG_DEV_SYNC_MODE_SYNC);
}

static void writers_in_batches(void)
{
	writers(FLEXIO_LOG_DEV_SYNC_MODE_BATCH);
}

/* In turn with the stream's thread, which takes them, too. */
static void flushes_of_batches(void)
{
	FILE *out = capture_open();
	struct flexio_msg_stream *stream =
		make(FLEXIO_LOG_DEV_SYNC_MODE_BATCH, FLEXIO_MSG_DEV_INFO, 4096, out);

	for (unsigned int i = 0; i < 200; i++) {
		char expected[24];
		const char *text;

		CHECK(CALL(say_print, (uint64_t)i) > 0);
		CHECK(flexio_msg_stream_flush(stream) == FLEXIO_STATUS_SUCCESS);
		snprintf(expected, sizeof(expected), "print %u\n", i);
		text = capture_text(out);
		CHECK(strlen(text) >= strlen(expected) &&
		      !strcmp(text + strlen(text) - strlen(expected), expected));
	}
	destroy(stream);
	fclose(out);
}

static void older_names(void)
{
	FILE *out = capture_open();
	flexio_msg_stream_attr_t attr = {.data_bsize = 2048,
					 .sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_ASYNC};

	CHECK(flexio_log_dev_flush(process) == FLEXIO_STATUS_FAILED);
	CHECK(flexio_log_dev_destroy(process) == FLEXIO_STATUS_FAILED);
	CHECK(flexio_log_dev_init(process, &attr, out, NULL) == FLEXIO_STATUS_SUCCESS);
	CHECK(flexio_log_dev_init(process, &attr, out, NULL) == FLEXIO_STATUS_FAILED);
	CALL(say_print, 1ul);
	CHECK(!*capture_text(out));
	CHECK(flexio_log_dev_flush(process) == FLEXIO_STATUS_SUCCESS);
	CHECK(!strcmp(capture_text(out), "print 1\n"));
	CHECK(flexio_log_dev_destroy(process) == FLEXIO_STATUS_SUCCESS);
	/* this one is left to the process */
	CHECK(flexio_log_dev_init(process, &attr, out, NULL) == FLEXIO_STATUS_SUCCESS);
	CHECK(flexio_log_dev_init(NULL, &attr, out, NULL) == FLEXIO_STATUS_FAILED);
}

/* Threads of this process with that name. */
static int threads_named(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	int count = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		char path[320], text[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		/* one that has just gone has none */
		count += file && fgets(text, sizeof(text), file) &&
			 !strncmp(text, name, strlen(name));
		if (file)
			fclose(file);
	}
	closedir(dir);
	return count;
}

/* Its thread, which it told us of, is there as long as the stream is. */
static void thread_goes(void)
{
	FILE *out = capture_open();
	flexio_msg_stream_attr_t attr = {.data_bsize = 2048, .stream_name = "a stream"};

	for (int i = 0; i < 20; i++) {
		struct flexio_msg_stream *streams[2];
		pthread_t ids[2];

		for (int n = 0; n < 2; n++) {
			CHECK(flexio_msg_stream_create(process, &attr, out, &ids[n], &streams[n]) ==
			      FLEXIO_STATUS_SUCCESS);
			CHECK(threads_named("a stream") == n + 1 && !pthread_kill(ids[n], 0));
		}
		CHECK(!pthread_equal(ids[0], ids[1]));
		CALL(say_print, (uint64_t)i);
		destroy(streams[0]);
		destroy(streams[1]);
		/* the kernel may still show it for a moment */
		for (int wait = 0; threads_named("a stream") && wait < 30000; wait++)
			usleep(1000);
		CHECK(!threads_named("a stream"));
	}
	/* and what was said is there */
	capture_lines(out, 20);
	fclose(out);
}

/* To any FILE. */
static void memory_stream(void)
{
	char *text;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	struct flexio_msg_stream *stream =
		make(FLEXIO_LOG_DEV_SYNC_MODE_SYNC, FLEXIO_MSG_DEV_INFO, 2048, out);

	CALL(say_print, 4ul);
	destroy(stream);
	fclose(out);
	CHECK(!strcmp(text, "print 4\n"));
	free(text);
}

/* ---- programs that end in their own way ---- */

/* The streams' threads wait for the device, and their text is there or on its way. */
static void leave_open(void)
{
	FILE *out = capture_open();

	make(FLEXIO_LOG_DEV_SYNC_MODE_SYNC, FLEXIO_MSG_DEV_INFO, 2048, out);
	make(FLEXIO_LOG_DEV_SYNC_MODE_BATCH, FLEXIO_MSG_DEV_INFO, 4096, out);
	make(FLEXIO_LOG_DEV_SYNC_MODE_ASYNC, FLEXIO_MSG_DEV_INFO, 2048, out);
	CALL(say_broadcast, (uint64_t)FLEXIO_MSG_DEV_INFO, 1ul);
}

static void exits(void)
{
	leave_open();
	exit(0);
}

static void dies(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		/* what the parent has opened is not for the child */
		process_open();
		leave_open();
		raise(SIGKILL);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	/* that was the child's; the parent has its own */
	leave_open();
}

static void forks(void)
{
	FILE *out = capture_open();
	struct flexio_msg_stream *stream =
		make(FLEXIO_LOG_DEV_SYNC_MODE_SYNC, FLEXIO_MSG_DEV_INFO, 2048, out);
	int status;

	for (int i = 0; i < 5; i++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (!child)
			exit(0);
		CALL(say_print, (uint64_t)i);
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	capture_expect(out, "print 0\nprint 1\nprint 2\nprint 3\nprint 4\n");
	destroy(stream);
	fclose(out);
}

static pthread_t reader_thread;
static size_t read_bytes;

static void *read_all(void *arg)
{
	char text[4096];
	ssize_t got;

	while ((got = read(*(const int *)arg, text, sizeof(text))) > 0)
		read_bytes += (size_t)got;
	return NULL;
}

static int unread(int fd)
{
	int bytes = 0;

	CHECK(!ioctl(fd, FIONREAD, &bytes));
	return bytes;
}

static void *write_too_much(void *arg)
{
	(void)arg;
	CALL(say, 0ul, (uint64_t)FLEXIO_MSG_DEV_INFO, 0ul, 0ul, 20000ul);
	return NULL;
}

/* A program that does not read: the file is a pipe that is full, and device code waits. */
static void nobody_reads(void)
{
	int ends[2];
	FILE *out;
	struct flexio_msg_stream *stream;
	struct writer writer = {.number = 0};

	CHECK(!pipe(ends));
	CHECK(out = fdopen(ends[1], "w"));
	stream = make(FLEXIO_LOG_DEV_SYNC_MODE_SYNC, FLEXIO_MSG_DEV_INFO, 2048, out);
	CHECK(!pthread_create(&writer.thread, NULL, write_too_much, &writer));
	/* the pipe holds less than half of what comes, and the buffer of the stream next to nothing */
	while (unread(ends[0]) < 20000)
		usleep(1000);
	CHECK(!pthread_create(&reader_thread, NULL, read_all, &ends[0]));
	CHECK(!pthread_join(writer.thread, NULL));
	destroy(stream);
	fclose(out);
	CHECK(!pthread_join(reader_thread, NULL));
	/* 20000 lines: 10 of 4 bytes, 90 of 5, 900 of 6, 9000 of 7, 10000 of 8 */
	CHECK_SAY(read_bytes == 148890, "%zu", read_bytes);
}

const struct test_case stream_cases[] = {
	{"streams are numbered from 0, and 255 are the most N238 N258", numbers},
	{"synchronous text comes by itself, a full buffer waits N239 N241 N248 N255 N267",
	 synchronous},
	{"asynchronous text comes by flush or at the end N240 N257", asynchronous},
	{"an asynchronous buffer forgets the oldest N240", overrun},
	{"bad attributes of streams are refused N242", bad_attributes},
	{"levels of streams and messages N243-247", levels},
	{"broadcast, and a stream that is not there N249 N250", broadcast},
	{"texts are what printf makes of them N252-254 N266", texts},
	{"8 threads do not mix lines N251", writers_synchronous},
	{"batches lose nothing N259", writers_in_batches},
	{"a flush writes a batch that is not complete", flushes_of_batches},
	{"the older names make the default stream N265 A20", older_names},
	{"text goes to any file N256", memory_stream},
	{"a stream's thread goes with it N255 N257", thread_goes},
	{"a program ends and leaves its streams open N257", exits},
	{"a process is killed with its streams open N257", dies},
	{"children do not disturb streams N239", forks},
	{"a program that does not read for a while N267", nobody_reads},
	{0},
};
