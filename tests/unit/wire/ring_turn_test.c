// SPDX-License-Identifier: BSD-2-Clause
/* Where the producer of a ring goes back to the beginning, and what there is room for afterwards. */
#include "check.h"
#include "ring_ends.h"

static _Alignas(RING_ALIGN) unsigned char memory[SIZE];

static bool settle(void)
{
	return ring_settle(&rx);
}

/* Sends a record and says where it lay. */
static const char *send_one(uint32_t bytes)
{
	void *out;

	CHECK(!ring_reserve(&tx, bytes, &out));
	ring_commit(&tx, bytes);
	return out;
}

static void take_one(void)
{
	const void *in;
	uint32_t len;

	CHECK(ring_peek(&rx, &in, &len) == 1);
	ring_next(&rx, len);
	(void)settle();
}

/* As long as the consumer keeps up, only the beginning of the ring is touched. */
static void test_keeps_to_the_beginning(void)
{
	struct rng rng = {8};
	const char *furthest = (const char *)data;

	fresh_ring();
	for (unsigned n = 0; n < 20000; n++) {
		uint32_t bytes = 64 * (uint32_t)(1 + rng_below(&rng, 20));
		const char *at = send_one(bytes);

		furthest = at + bytes > furthest ? at + bytes : furthest;
		take_one();
	}
	CHECK(furthest <= (const char *)data + SIZE / 4);
	/* Large ones would find too little room there if the consumer stopped. */
	for (unsigned n = 0; n < 20; n++) {
		const char *at = send_one(SIZE / RING_LARGEST_SHARE);

		furthest = at > furthest ? at : furthest;
		take_one();
	}
	CHECK(furthest >= (const char *)data + SIZE - 2 * SIZE / RING_LARGEST_SHARE);
}

/* One that has fallen behind finds the whole ring's worth of records, wherever it stopped. */
static void test_takes_all_for_who_is_behind(void)
{
	for (unsigned first = 0; first < SIZE / 64; first++) {
		unsigned more = 0;
		void *out;

		fresh_ring();
		for (unsigned n = 0; n < first; n++) {
			(void)send_one(64);
			if (n >= 2)
				take_one();
		}
		while (!ring_reserve(&tx, 64, &out)) {
			ring_commit(&tx, 64);
			more++;
		}
		/* What stands in front of an early turn is a part of the near one. */
		CHECK(more >= SIZE / 16 / 64);
		for (unsigned n = first < 2 ? first + more : more + 2; n--;)
			take_one();
		CHECK(!ring_has_news(&rx));
		(void)give_back();
		CHECK(!ring_reserve(&tx, SIZE / RING_LARGEST_SHARE, &out));
	}
}

/* What may be dropped turns later, and finds more room then. */
static void test_patient(void)
{
	for (unsigned first = 0; first < 2 * SIZE / 64; first++) {
		unsigned more = 0;
		void *out;

		fresh_ring();
		tx.patient = true;
		for (unsigned n = 0; n < first; n++) {
			(void)send_one(64);
			take_one();
		}
		while (!ring_reserve(&tx, 64, &out)) {
			ring_commit(&tx, 64);
			more++;
		}
		CHECK(more >= SIZE / 8 / 64);
	}
}

int main(void)
{
	data = memory;
	test_keeps_to_the_beginning();
	test_takes_all_for_who_is_behind();
	test_patient();
	return 0;
}
