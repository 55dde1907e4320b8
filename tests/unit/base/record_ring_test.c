// SPDX-License-Identifier: BSD-2-Clause
/* A ring of records: order, wrapping, what is full, pending or broken, and many writers at once. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/record_ring.h"
#include "check.h"

#define BYTES	4096u
#define THREADS 4u
#define EACH	20000u

static struct record_ring writer, reader;

static void ring_open(size_t bytes)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)record_ring_file_bytes(bytes, 2)));
	CHECK(!record_ring_map(&writer, fd, bytes, 2) && !record_ring_map(&reader, fd, bytes, 2));
	close(fd);
}

static void ring_close(void)
{
	record_ring_unmap(&writer);
	record_ring_unmap(&reader);
}

static void put(uint32_t value, uint32_t bytes)
{
	uint32_t *record = record_ring_reserve(&writer, bytes, 1);

	CHECK(record);
	memset(record, 0xee, bytes);
	*record = value;
	record_ring_commit(&writer, record, bytes);
}

static uint32_t get(uint32_t wanted)
{
	const void *record;
	uint32_t bytes, value;

	CHECK(record_ring_look(&reader, &record, &bytes) == RECORD_RING_RECORD);
	CHECK(bytes >= wanted && bytes < wanted + RECORD_RING_ALIGN);
	memcpy(&value, record, sizeof(value));
	record_ring_take(&reader, record, bytes);
	return value;
}

static enum record_ring_next look(void)
{
	const void *record;
	uint32_t bytes;

	return record_ring_look(&reader, &record, &bytes);
}

static void test_order(void)
{
	ring_open(BYTES);
	CHECK(look() == RECORD_RING_EMPTY);
	/* Sizes that do not divide the ring, so that records meet its end everywhere. */
	for (uint32_t i = 0; i < 1000; i++) {
		put(i, 4 + i % 700);
		put(~i, 4);
		CHECK(get(4 + i % 700) == i && get(4) == ~i);
	}
	CHECK(look() == RECORD_RING_EMPTY && !reader.head->dropped[1]);
	ring_close();
}

static void test_full(void)
{
	uint32_t n = 0;
	void *record;

	ring_open(BYTES);
	CHECK(!record_ring_reserve(&writer, BYTES, 0) && reader.head->dropped[0] == 1);
	while ((record = record_ring_reserve(&writer, 100, 1)))
		record_ring_commit(&writer, record, 100), n++;
	CHECK(n == BYTES / 112 && reader.head->dropped[1] == 1);
	(void)get(100);
	put(7, 8);
	while (--n)
		(void)get(100);
	CHECK(get(8) == 7 && look() == RECORD_RING_EMPTY);
	ring_close();
}

static void test_pending(void)
{
	void *first;

	ring_open(BYTES);
	first = record_ring_reserve(&writer, 8, 0);
	put(2, 8);
	CHECK(look() == RECORD_RING_PENDING);
	memset(first, 1, 8);
	record_ring_commit(&writer, first, 8);
	CHECK(get(8) == 0x01010101 && get(8) == 2 && look() == RECORD_RING_EMPTY);
	ring_close();
}

static void test_broken(void)
{
	static const uint64_t words[] = {7, BYTES + 8, UINT64_C(1) << 63, UINT64_MAX, 1};

	for (size_t i = 0; i < array_size(words); i++) {
		uint64_t *record;

		ring_open(BYTES);
		record = record_ring_reserve(&writer, 8, 0);
		record[-1] = words[i];
		CHECK(look() == RECORD_RING_BROKEN);
		ring_close();
	}
	/* A position that somebody has spoiled leads nobody out of the ring. */
	ring_open(BYTES);
	atomic_store(&writer.head->reserved, UINT64_MAX - 2);
	CHECK(!record_ring_reserve(&writer, 8, 0));
	atomic_store(&writer.head->taken, 123456789);
	(void)record_ring_reserve(&writer, 8, 0);
	ring_close();
}

static void *write_many(void *arg)
{
	uint32_t thread = (uint32_t)(uintptr_t)arg;

	for (uint32_t i = 0; i < EACH;) {
		uint32_t bytes = 8 + i % 60, *record = record_ring_reserve(&writer, bytes, 0);

		if (!record)
			continue;
		record[0] = thread;
		record[1] = i++;
		record_ring_commit(&writer, record, bytes);
	}
	return NULL;
}

static void test_threads(void)
{
	uint32_t next[THREADS] = {0}, n = 0;
	pthread_t thread[THREADS];

	ring_open(BYTES);
	/* One mapping: the thread sanitizer knows memory by its address alone. */
	record_ring_unmap(&reader);
	reader = writer;
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&thread[i], NULL, write_many, (void *)i));
	while (n < THREADS * EACH) {
		const void *record;
		uint32_t bytes, value[2];

		if (record_ring_look(&reader, &record, &bytes) != RECORD_RING_RECORD)
			continue;
		memcpy(value, record, sizeof(value));
		CHECK(value[0] < THREADS && value[1] == next[value[0]]++);
		record_ring_take(&reader, record, bytes);
		n++;
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK(look() == RECORD_RING_EMPTY);
	record_ring_unmap(&reader);
}

int main(void)
{
	test_order();
	test_full();
	test_pending();
	test_broken();
	test_threads();
	return 0;
}
