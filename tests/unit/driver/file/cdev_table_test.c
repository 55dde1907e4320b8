/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptor table: the last descriptor closes a file once, the last reference releases it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "driver/file/cdev_file.h"

static unsigned closed, released;

static void count_close(struct cdev_file *f)
{
	(void)f;
	closed++;
}

static void count_release(struct cdev_file *f)
{
	(void)f;
	released++;
}

static const struct cdev_ops ops = {.last_close = count_close, .release = count_release};

static void expect_calls(unsigned closes, unsigned releases)
{
	CHECK(closed == closes && released == releases);
}

static void test_numbers(void)
{
	const int wrong[] = {-1, INT_MIN};
	const int right[] = {8, (int)CDEV_LOW_FDS - 1, (int)CDEV_LOW_FDS, INT_MAX};
	struct cdev_file f;

	cdev_file_init(&f, &ops);
	for (size_t i = 0; i < array_size(wrong); i++) {
		CHECK(cdev_install(wrong[i], &f) == -EBADF);
		CHECK(!cdev_get(wrong[i]) && !cdev_table_load(wrong[i]) && !cdev_peek(wrong[i]));
		cdev_table_clear(wrong[i]);
		CHECK(!cdev_install(7, &f));
		cdev_table_dup(7, wrong[i]);
		cdev_table_dup(wrong[i], 7); /* 7 is nothing of ours any more */
		expect_calls((unsigned)i + 1, (unsigned)i + 1);
		cdev_file_init(&f, &ops);
	}
	closed = released = 0;
	for (size_t i = 0; i < array_size(right); i++) {
		cdev_file_init(&f, &ops);
		CHECK(!cdev_table_load(right[i]));
		CHECK(!cdev_install(right[i], &f) && cdev_peek(right[i]) == &f);
		cdev_table_dup(right[i], 7);
		cdev_table_clear(right[i]);
		CHECK(!cdev_table_load(right[i]) && cdev_peek(7) == &f);
		cdev_table_dup(7, right[i]);
		cdev_table_clear(7);
		expect_calls((unsigned)i, (unsigned)i);
		cdev_table_clear_range((unsigned)right[i], UINT_MAX);
		expect_calls((unsigned)i + 1, (unsigned)i + 1);
	}
	closed = released = 0;
}

static void test_life(void)
{
	struct cdev_file a, b;

	cdev_file_init(&a, &ops);
	cdev_file_init(&b, &ops);
	CHECK(!cdev_install(3, &a) && !cdev_install(4, &b));
	cdev_table_dup(3, 5);
	cdev_table_dup(3, 3);
	cdev_table_clear(3);
	cdev_table_clear(3);
	expect_calls(0, 0);
	CHECK(!cdev_get(3) && cdev_get(5) == &a);
	/* a user in flight keeps it, not open but there */
	cdev_table_clear(5);
	expect_calls(1, 0);
	cdev_put(&a);
	expect_calls(1, 1);
	/* a descriptor on top of one whose close we did not see */
	cdev_file_init(&a, &ops);
	CHECK(!cdev_install(4, &a));
	expect_calls(2, 2);
	/* a duplicate of what is not ours */
	cdev_table_dup(9, 4);
	expect_calls(3, 3);
	closed = released = 0;
}

static const struct cdev_ops shared_ops = {
	.last_close = count_close, .release = count_release, .shared = true};

/* A child of fork(2) touches nothing of its parent's files, except those that both share. */
static void test_forked(void)
{
	struct cdev_file a, own, both, late;

	CHECK(dup2(0, 3) == 3 && dup2(0, 4) == 4 && dup2(0, 8) == 8);
	/* Another thread opened it after the descriptors were copied, and before the memory was. */
	cdev_file_init(&late, &ops);
	CHECK(close(9) < 0 && !cdev_install(9, &late));
	cdev_file_init(&both, &shared_ops);
	CHECK(!cdev_install(8, &both));

	cdev_file_init(&a, &ops);
	cdev_file_init(&own, &ops);
	CHECK(!cdev_install(3, &a));
	cdev_table_fork_child();
	CHECK(!cdev_peek(3) && cdev_table_load(3) == &a);
	CHECK(!cdev_table_load(9));
	CHECK(!cdev_install(4, &own) && cdev_peek(4) == &own);
	cdev_table_clear(3);
	expect_calls(0, 0);
	cdev_table_clear(4);
	expect_calls(1, 1);
	CHECK(cdev_peek(8) == &both);
	cdev_table_clear(8);
	expect_calls(2, 2);
}

/* A number that names another file than the one that was installed is not a device's. */
static void test_lost(void)
{
	int ends[2], copy;
	struct cdev_file f;

	cdev_file_init(&f, &ops);
	CHECK(!pipe(ends) && !cdev_install(ends[0], &f));
	CHECK(cdev_table_is_true(ends[0]) && !cdev_table_is_true(ends[1]));
	copy = dup(ends[0]);
	cdev_table_dup(ends[0], copy);
	CHECK(cdev_table_is_true(copy));
	CHECK(!syscall(SYS_close, ends[0]) && !cdev_table_is_true(ends[0]));
	CHECK(open("/dev/null", O_RDONLY) == ends[0] && !cdev_table_is_true(ends[0]));
	cdev_table_dup(ends[0], copy); /* a plain file's copy */
	CHECK(!cdev_table_load(copy) && !closed);
	cdev_table_clear(ends[0]);
	expect_calls(1, 1);
	close(ends[0]);
	close(ends[1]);
	close(copy);
	closed = released = 0;
}

int main(void)
{
	/* The table's numbers are to name no files but those of the test. */
	CHECK(!close_range(3, UINT_MAX, 0));
	test_numbers();
	test_lost();
	test_life();
	test_forked();
	return 0;
}
