// SPDX-License-Identifier: BSD-2-Clause
/* Rows of objects: what a reader of the file sees of one that lives, fails, ends, is followed by
 * another in its row; and of more than there are rows. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "exposure/expose.h"
#include "test_slots.h"

static struct slot *slots;
static struct expose own;

static struct object_row *object_new(uint32_t number)
{
	return expose_object(&own, &(struct object_about){.kind = OBJECT_CQ, .number = number});
}

static uint32_t row_of(const struct object_row *row)
{
	return (uint32_t)(row - own.mem->objects);
}

static void test_life(void)
{
	int fd = expose_snapshot_open(&slots[0]);
	struct expose_mem *copy = calloc(1, sizeof(*copy));
	struct object_row *row = object_new(7), *seen;
	uint64_t serial = row->serial;

	expose_object_failed(row, "a reason that is longer than there is room for, "
				  "as some reasons are, and has to be cut");
	CHECK(fd >= 0 && copy && expose_snapshot(fd, copy));
	seen = &copy->objects[row_of(row)];
	CHECK(seen->serial == serial && seen->about.number == 7 && seen->failures == 1);
	CHECK(!strncmp(seen->why, "a reason", 8) && !seen->why[OBJECT_WHY_BYTES - 1]);
	CHECK(expose_object_stands(fd, row_of(row), serial));
	expose_object_end(&own, row);
	CHECK(!expose_object_stands(fd, row_of(row), serial));
	free(copy);
	close(fd);
}

/* All rows are used, none twice; a row that is free again has another serial number. */
static void test_full(void)
{
	struct object_row *some = NULL;
	uint64_t serial;

	for (uint32_t i = 0; i < OBJECT_ROWS; i++) {
		struct object_row *row = object_new(i);

		CHECK(row && row->failures == 0 && !row->why[0]);
		if (i == OBJECT_ROWS / 3)
			some = row;
	}
	CHECK(!object_new(1));
	CHECK(some && some->about.number == OBJECT_ROWS / 3);
	serial = some->serial;
	expose_object_end(&own, some);
	CHECK(object_new(2) == some && some->serial != serial && some->about.number == 2);
}

static uint64_t cost(unsigned times)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	for (unsigned i = 0; i < times; i++) {
		struct object_row *row = object_new(i);

		if (row)
			expose_object_end(&own, row);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec -
	       (uint64_t)begin.tv_nsec;
}

/* An object costs as much when all rows are taken, or all but one, as when all are free. */
static void test_cost(uint64_t first)
{
	uint64_t full = cost(1000), last;

	expose_object_end(&own, &own.mem->objects[5]);
	last = cost(1000);
	CHECK(full < 20 * first && last < 20 * first);
}

/* A process that lays nothing open lists nothing, and nobody minds. */
static void test_nothing(void)
{
	struct expose none = {0};

	expose_object_form(&none, OBJECT_QP, &(struct object_form){0});
	CHECK(!expose_object(&none, &(struct object_about){0}));
	expose_object_failed(NULL, "why");
	expose_object_end(&none, NULL);
}

int main(void)
{
	uint64_t first;

	slots = test_slots_map();
	slots[0].pid = getpid();
	CHECK(!expose_open(&own, slots, 0, false));
	test_life();
	first = cost(1000);
	test_full();
	test_cost(first);
	test_nothing();
	expose_close(&own);
	return 0;
}
