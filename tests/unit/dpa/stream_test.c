// SPDX-License-Identifier: BSD-2-Clause
/*
 * Streams of a DPA process: levels, modes, numbers, what happens when a buffer is full, and several threads.
 */
#include "dpa/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"

#define MESSAGES 20000u
#define WRITERS	 4u

static struct dpa_streams streams;
static struct dpa_image_info info;

static int stream_make(enum dpa_stream_mode mode, uint32_t level, uint64_t bytes,
		       struct dpa_stream **stream)
{
	const struct dpa_stream_attr attr = {.mode = mode, .level = level, .bytes = bytes};

	return dpa_stream_create(&streams, &attr, stream);
}

static struct dpa_stream *make(enum dpa_stream_mode mode, uint32_t level, uint64_t bytes)
{
	struct dpa_stream *stream;

	CHECK(!stream_make(mode, level, bytes, &stream));
	return stream;
}

static void end(struct dpa_stream *stream)
{
	dpa_stream_close(stream);
	dpa_stream_put(stream);
}

static void say(uint32_t number, uint32_t level, const char *text)
{
	dpa_streams_message(&streams, number, level, text, (uint32_t)strlen(text), NULL);
}

/* What a stream holds now. */
static const char *all_of(struct dpa_stream *stream)
{
	static char text[1 << 16];
	size_t length = 0;
	int64_t got;

	while ((got = dpa_stream_read(stream, text + length, sizeof(text) - 1 - length, false,
				      NULL)) > 0)
		length += (size_t)got;
	CHECK(got == 0 || got == -EPIPE);
	text[length] = '\0';
	return text;
}

static void expect(struct dpa_stream *stream, const char *text)
{
	const char *got = all_of(stream);

	CHECK_SAY(!strcmp(got, text), "\"%s\", not \"%s\"", got, text);
}

/* Flex IO statements: N242 N258 */
static void attributes_are_checked(void)
{
	static const uint64_t bad_sizes[] = {0, 1024, 2047, 2049, 3000, 1ull << 40, UINT64_MAX};
	struct dpa_stream *all[DPA_STREAMS], *other;

	for (size_t i = 0; i < sizeof(bad_sizes) / sizeof(bad_sizes[0]); i++)
		CHECK(stream_make(DPA_STREAM_SYNC, DPA_LEVEL_INFO, bad_sizes[i], &other) ==
		      -EINVAL);
	CHECK(stream_make(4, DPA_LEVEL_INFO, 2048, &other) == -EINVAL);
	CHECK(stream_make(DPA_STREAM_SYNC, DPA_LEVEL_DEBUG + 1, 2048, &other) == -EINVAL);
	for (uint32_t i = 0; i < DPA_STREAMS; i++) {
		all[i] = make(DPA_STREAM_SYNC, DPA_LEVEL_INFO, 2048);
		CHECK(dpa_stream_number(all[i]) == i);
	}
	CHECK(stream_make(DPA_STREAM_SYNC, DPA_LEVEL_INFO, 2048, &other) == -EMFILE);
	end(all[7]);
	all[7] = make(DPA_STREAM_ASYNC, DPA_LEVEL_INFO, 4096);
	CHECK(dpa_stream_number(all[7]) == 7);
	for (uint32_t i = 0; i < DPA_STREAMS; i++)
		end(all[i]);
}

/* Flex IO statements: N238 N243-247 */
static void levels_filter(void)
{
	struct dpa_stream *first = make(DPA_STREAM_SYNC, DPA_LEVEL_DEBUG, 2048);
	struct dpa_stream *second = make(DPA_STREAM_SYNC, DPA_LEVEL_WARN, 2048);
	static const char *const shown[] = {"", "A", "AE", "AEW", "AEWI", "AEWID"};

	for (uint32_t level = DPA_LEVEL_NO_PRINT; level <= DPA_LEVEL_DEBUG + 1; level++) {
		say(0, level, (const char *[]){"N", "A", "E", "W", "I", "D", "?"}[level]);
		say(1, level, (const char *[]){"N", "A", "E", "W", "I", "D", "?"}[level]);
	}
	/* the default stream is of level INFO, whatever was asked for */
	expect(first, "AEWI");
	expect(second, "AEW");
	CHECK(dpa_stream_level(first, DPA_LEVEL_DEBUG) == -EPERM);
	CHECK(dpa_stream_level(second, DPA_LEVEL_ALWAYS_PRINT) == -EINVAL);
	CHECK(dpa_stream_level(second, DPA_LEVEL_DEBUG + 1) == -EINVAL);
	for (uint32_t level = DPA_LEVEL_NO_PRINT; level <= DPA_LEVEL_DEBUG; level++) {
		if (level == DPA_LEVEL_ALWAYS_PRINT)
			continue;
		CHECK(!dpa_stream_level(second, level));
		for (uint32_t of = DPA_LEVEL_NO_PRINT; of <= DPA_LEVEL_DEBUG; of++)
			say(1, of, (const char *[]){"N", "A", "E", "W", "I", "D"}[of]);
		expect(second, level ? shown[level] : "A");
	}
	end(second);
	end(first);
}

static void only_the_default_stream(void)
{
	const struct dpa_stream_attr attr = {.bytes = 2048, .only_default = true};
	struct dpa_stream *stream, *other;

	CHECK(!dpa_stream_create(&streams, &attr, &stream) && dpa_stream_number(stream) == 0);
	CHECK(dpa_stream_create(&streams, &attr, &other) == -EEXIST);
	end(stream);
	CHECK(!dpa_stream_create(&streams, &attr, &stream));
	end(stream);
}

/* Flex IO statements: N249 N250 */
static void numbers_choose(void)
{
	struct dpa_stream *a = make(DPA_STREAM_SYNC, DPA_LEVEL_INFO, 2048);
	struct dpa_stream *b = make(DPA_STREAM_ASYNC, DPA_LEVEL_ERROR, 2048);
	struct dpa_stream *c = make(DPA_STREAM_TRACER, DPA_LEVEL_INFO, 2048);

	say(0, DPA_LEVEL_INFO, "to a");
	say(1, DPA_LEVEL_ERROR, "to b");
	say(2, DPA_LEVEL_ERROR, "a tracer takes no text");
	say(3, DPA_LEVEL_ERROR, "to nobody");
	say(256, DPA_LEVEL_ERROR, "to nobody");
	say(UINT32_MAX, DPA_LEVEL_ERROR, "to nobody");
	say(DPA_STREAM_BROADCAST, DPA_LEVEL_ERROR, ", all");
	say(DPA_STREAM_BROADCAST, DPA_LEVEL_INFO, ", some");
	expect(a, "to a, all, some");
	expect(b, "to b, all");
	expect(c, "");
	end(c);
	end(b);
	end(a);
}

/* Flex IO statements: N266 */
static void long_messages_fit(void)
{
	struct dpa_stream *stream = make(DPA_STREAM_SYNC, DPA_LEVEL_INFO, DPA_STREAM_BYTES_MIN);
	char text[DPA_MESSAGE_BYTES + 1];

	memset(text, 't', DPA_MESSAGE_BYTES);
	text[DPA_MESSAGE_BYTES] = '\0';
	for (int i = 0; i < 5; i++) {
		say(0, DPA_LEVEL_INFO, text);
		expect(stream, text);
	}
	end(stream);
}

/* Flex IO statements: N240. Of a buffer that is full the oldest messages go, and always whole ones. */
static void asynchronous_forgets_the_oldest(void)
{
	struct dpa_stream *stream = make(DPA_STREAM_ASYNC, DPA_LEVEL_INFO, 2048);
	const char *text;
	char one[32];
	unsigned int first, next;

	for (unsigned int i = 0; i < 1000; i++) {
		sprintf(one, "message %u\n", i);
		say(0, DPA_LEVEL_INFO, one);
	}
	text = all_of(stream);
	CHECK(sscanf(text, "message %u\n", &first) == 1 && first > 800);
	CHECK(dpa_stream_lost(stream) == first);
	for (next = first; *text; next++) {
		int length = sprintf(one, "message %u\n", next);

		CHECK(!strncmp(text, one, (size_t)length));
		text += length;
	}
	CHECK(next == 1000);
	end(stream);
}

/* ---- several threads ---- */

static void *write_messages(void *arg)
{
	unsigned int writer = (unsigned int)(uintptr_t)arg;
	char text[64];

	for (unsigned int i = 0; i < MESSAGES; i++) {
		int length = sprintf(text, "%u:%u:%.*s\n", writer, i, (int)(i % 40),
				     "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz");

		dpa_streams_message(&streams, 0, DPA_LEVEL_INFO, text, (uint32_t)length, NULL);
	}
	return NULL;
}

/* Lines are whole, and each writer's in order. */
static void check_lines(char *text, unsigned int next[WRITERS])
{
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		unsigned int writer, i;
		char rest[64] = "";

		CHECK_SAY(sscanf(line, "%u:%u:%63s", &writer, &i, rest) >= 2, "\"%s\"", line);
		CHECK_SAY(writer < WRITERS && i == next[writer], "\"%s\"", line);
		CHECK_SAY(strlen(rest) == i % 40, "\"%s\"", line);
		next[writer]++;
	}
}

/* Flex IO statements: N239 N251 N259 N267: a small buffer, so writers wait, and nothing is lost. */
static void writers_and_a_reader(enum dpa_stream_mode mode)
{
	struct dpa_stream *stream = make(mode, DPA_LEVEL_INFO, 2048);
	static char text[DPA_STREAM_READ_MIN + 1];
	unsigned int next[WRITERS] = {0}, total = 0;
	pthread_t writers[WRITERS];

	for (unsigned int i = 0; i < WRITERS; i++)
		CHECK(!pthread_create(&writers[i], NULL, write_messages, (void *)(uintptr_t)i));
	while (total < WRITERS * MESSAGES) {
		int64_t got = dpa_stream_read(stream, text, DPA_STREAM_READ_MIN, true, NULL);

		CHECK(got > 0);
		text[got] = '\0';
		check_lines(text, next);
		total = 0;
		for (unsigned int i = 0; i < WRITERS; i++)
			total += next[i];
	}
	for (unsigned int i = 0; i < WRITERS; i++)
		CHECK(!pthread_join(writers[i], NULL));
	CHECK(dpa_stream_lost(stream) == 0);
	end(stream);
}

static void *read_to_the_end(void *arg)
{
	char text[DPA_STREAM_READ_MIN];
	int64_t got;

	do
		got = dpa_stream_read(arg, text, sizeof(text), true, NULL);
	while (got > 0);
	CHECK(got == -EPIPE);
	return NULL;
}

/* Flex IO statements: N257. A reader that waits learns that the stream is closed, after it has read what is left. */
static void closing_wakes_the_reader(void)
{
	struct dpa_stream *stream = make(DPA_STREAM_SYNC, DPA_LEVEL_INFO, 2048);
	pthread_t reader;

	CHECK(!pthread_create(&reader, NULL, read_to_the_end, stream));
	say(0, DPA_LEVEL_INFO, "something");
	dpa_stream_close(stream);
	CHECK(!pthread_join(reader, NULL));
	say(0, DPA_LEVEL_INFO, "nobody hears that");
	dpa_stream_put(stream);

	stream = make(DPA_STREAM_ASYNC, DPA_LEVEL_INFO, 2048);
	say(0, DPA_LEVEL_INFO, "the last words");
	dpa_stream_close(stream);
	expect(stream, "the last words");
	CHECK(dpa_stream_read(stream, (char[DPA_STREAM_READ_MIN]){0}, DPA_STREAM_READ_MIN, true,
			      NULL) == -EPIPE);
	dpa_stream_put(stream);
}

static void *fill_up(void *give_up)
{
	char text[DPA_MESSAGE_BYTES] = {0};

	for (int i = 0; i < 3; i++)
		dpa_streams_message(&streams, 0, DPA_LEVEL_INFO, text, sizeof(text), give_up);
	return NULL;
}

/* A thread that waits for room is not in the way of its end, nor of that of the stream. */
static void waiting_writers_give_up(void)
{
	struct dpa_stream *stream = make(DPA_STREAM_SYNC, DPA_LEVEL_INFO, 2048);
	_Atomic(uint32_t) give_up = 0;
	pthread_t writer;

	CHECK(!pthread_create(&writer, NULL, fill_up, &give_up));
	atomic_store(&give_up, 1);
	CHECK(!pthread_join(writer, NULL));
	CHECK(dpa_stream_lost(stream) == 2);
	CHECK(!pthread_create(&writer, NULL, fill_up, NULL));
	dpa_streams_hurry(&streams, true);
	CHECK(!pthread_join(writer, NULL));
	CHECK(dpa_stream_lost(stream) == 5);
	dpa_streams_hurry(&streams, false);
	CHECK(!pthread_create(&writer, NULL, fill_up, NULL));
	dpa_stream_close(stream);
	CHECK(!pthread_join(writer, NULL));
	dpa_stream_put(stream);
}

/* ---- the tracer ---- */

#define BUFFER_RECORDS (2048 / sizeof(struct dpa_trace_record))

static void trace_one(uint32_t level, uint64_t value)
{
	struct dpa_trace_record record = {.format_id = 1, .args = {value}};

	dpa_streams_trace(&streams, 0, level, &record, NULL);
}

/* Reads what is there; the records have values one after the other. */
static void expect_records(struct dpa_stream *stream, uint64_t *next, uint64_t records)
{
	static struct dpa_trace_record got[4 * BUFFER_RECORDS];
	int64_t bytes = dpa_stream_read(stream, got, sizeof(got), false, NULL);

	CHECK_SAY(bytes == (int64_t)(records * sizeof(got[0])), "%ld bytes, not %lu records", bytes,
		  records);
	for (uint64_t i = 0; i < records; i++)
		CHECK(got[i].format_id == 1 && got[i].args[0] == (*next)++);
}

/* Flex IO statements: N261 N262 */
static void tracer_buffers(void)
{
	struct dpa_stream *stream = make(DPA_STREAM_TRACER, DPA_LEVEL_DEBUG, 2048);
	uint64_t value = 0, next = 0;

	CHECK(info.tracers[0] == (uintptr_t)&info.tracer[0] &&
	      info.tracer[0].valid_lvl == DPA_LEVEL_INFO);
	CHECK(info.tracer[0].max_entries_per_buf == BUFFER_RECORDS &&
	      info.tracer[0].log_num_buf_msgs == 5);
	for (uint64_t i = 0; i < BUFFER_RECORDS - 1; i++)
		trace_one(DPA_LEVEL_INFO, value++);
	trace_one(DPA_LEVEL_DEBUG, 999);
	trace_one(DPA_LEVEL_NO_PRINT, 999);
	expect_records(stream, &next, 0);
	trace_one(DPA_LEVEL_INFO, value++);
	expect_records(stream, &next, BUFFER_RECORDS);
	for (uint64_t i = 0; i < 5; i++)
		trace_one(DPA_LEVEL_INFO, value++);
	expect_records(stream, &next, 0);
	dpa_streams_trace_send(&streams, 0, 3);
	expect_records(stream, &next, 3);
	dpa_streams_trace_send(&streams, 0, 0);
	expect_records(stream, &next, 2);
	dpa_streams_trace_send(&streams, 0, 0);
	dpa_streams_trace_send(&streams, 1, 0);
	dpa_streams_trace_send(&streams, UINT32_MAX, 0);
	expect_records(stream, &next, 0);
	/* what is left at the end comes as well */
	trace_one(DPA_LEVEL_INFO, value++);
	dpa_stream_close(stream);
	CHECK(!info.tracers[0]);
	expect_records(stream, &next, 1);
	dpa_stream_put(stream);
}

static void *write_records(void *arg)
{
	uint64_t writer = (uintptr_t)arg;

	for (uint64_t i = 0; i < MESSAGES; i++) {
		struct dpa_trace_record record = {.format_id = (uint32_t)writer, .args = {i}};

		dpa_streams_trace(&streams, 0, DPA_LEVEL_INFO, &record, NULL);
	}
	return NULL;
}

/* Flex IO statements: N263 */
static void tracers_and_a_reader(void)
{
	struct dpa_stream *stream = make(DPA_STREAM_TRACER, DPA_LEVEL_INFO, 2048);
	static struct dpa_trace_record got[BUFFER_RECORDS];
	uint64_t next[WRITERS] = {0};
	pthread_t writers[WRITERS];
	int64_t bytes;

	for (uintptr_t i = 0; i < WRITERS; i++)
		CHECK(!pthread_create(&writers[i], NULL, write_records, (void *)i));
	/* the total is a multiple of a buffer, so the last record is in a full one */
	_Static_assert(WRITERS * MESSAGES % BUFFER_RECORDS == 0, "the buffers are full");
	for (uint64_t total = 0; total < WRITERS * MESSAGES;
	     total += (uint64_t)bytes / sizeof(got[0])) {
		bytes = dpa_stream_read(stream, got, sizeof(got), true, NULL);
		CHECK(bytes > 0 && bytes % sizeof(got[0]) == 0);
		for (int64_t i = 0; i < bytes / (int64_t)sizeof(got[0]); i++)
			CHECK(got[i].args[0] == next[got[i].format_id]++);
	}
	for (uint32_t i = 0; i < WRITERS; i++)
		CHECK(!pthread_join(writers[i], NULL) && next[i] == MESSAGES);
	end(stream);
}

int main(void)
{
	dpa_streams_init(&streams);
	dpa_streams_show(&streams, &info);
	attributes_are_checked();
	levels_filter();
	only_the_default_stream();
	numbers_choose();
	long_messages_fit();
	asynchronous_forgets_the_oldest();
	writers_and_a_reader(DPA_STREAM_SYNC);
	writers_and_a_reader(DPA_STREAM_BATCH);
	closing_wakes_the_reader();
	waiting_writers_give_up();
	tracer_buffers();
	tracers_and_a_reader();
	dpa_streams_end(&streams);
	dpa_streams_free(&streams);
	return 0;
}
