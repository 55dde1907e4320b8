/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device memory: random allocations against a map of page owners; children of a fork that allocate
 * at once, write what they got, and die in the middle of it.
 */
#include "driver/uverbs/core/dm_pool.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define OFFSET	 (16u * DM_PAGE_BYTES)
#define CHILDREN 5

static void pool_up(struct dm_pool *p)
{
	int fd = memfd_create("dm_pool_test", MFD_CLOEXEC);

	CHECK(fd >= 0 && !ftruncate(fd, OFFSET + DM_BYTES));
	CHECK(!dm_pool_open(p, fd, OFFSET));
	close(fd);
}

static void test_refusals(void)
{
	struct dm_info dm, other;
	struct dm_pool p;

	pool_up(&p);
	CHECK(dm_alloc(&p, 0, 0, &dm) == -EINVAL);
	CHECK(dm_alloc(&p, 1, DM_LOG_ALIGN + 1, &dm) == -EINVAL);
	CHECK(dm_alloc(&p, DM_BYTES + 1, 0, &dm) == -ENOMEM);
	CHECK(dm_alloc(&p, UINT64_MAX, 0, &dm) == -ENOMEM);
	CHECK(dm_find(&p, 0, &dm) == -ENOENT && dm_free(&p, UINT64_MAX) == -ENOENT);
	CHECK(dm_free(&p, DM_HANDLE_FIRST) == -ENOENT);
	CHECK(dm_free(&p, (uint64_t)DM_HANDLE_FIRST + DM_PAGES) == -ENOENT);

	CHECK(!dm_alloc(&p, DM_BYTES, DM_LOG_ALIGN, &dm) && !dm.first_page);
	CHECK(dm_alloc(&p, 1, 0, &other) == -ENOMEM);
	CHECK(!dm_find(&p, dm.handle, &other) && other.length == DM_BYTES);
	/* as many users as there were holds */
	CHECK(!dm_hold(&p, dm.handle, &other) && !dm_hold(&p, dm.handle, &other));
	CHECK(dm_free(&p, dm.handle) == -EBUSY);
	dm_release(&p, dm.handle);
	CHECK(dm_free(&p, dm.handle) == -EBUSY);
	dm_release(&p, dm.handle);
	CHECK(!dm_free(&p, dm.handle) && dm_free(&p, dm.handle) == -ENOENT);
	CHECK(dm_hold(&p, dm.handle, &other) == -ENOENT);
	dm_pool_close(&p);
}

/* Is there a stretch of that many free pages? */
static bool pages_fit(const uint32_t owner[DM_PAGES], uint32_t pages)
{
	for (uint32_t first = 0; first + pages <= DM_PAGES; first++) {
		uint32_t n = 0;

		while (n < pages && !owner[first + n])
			n++;
		if (n == pages)
			return true;
	}
	return false;
}

static void random_model(void)
{
	uint32_t owner[DM_PAGES] = {0}, live[DM_PAGES];
	struct rng rng = {7};
	uint32_t nlive = 0;
	struct dm_pool p;

	pool_up(&p);
	for (int i = 0; i < 20000; i++) {
		uint64_t length = 1 + rng_below(&rng, rng_below(&rng, 4) ? 20000 : 400000);
		uint32_t pages = div_round_up(length, DM_PAGE_BYTES);
		struct dm_info dm;

		if (nlive && rng_below(&rng, 2)) {
			uint32_t at = (uint32_t)rng_below(&rng, nlive);

			CHECK(!dm_free(&p, live[at]));
			for (uint32_t n = 0; n < DM_PAGES; n++)
				if (owner[n] == live[at])
					owner[n] = 0;
			live[at] = live[--nlive];
			continue;
		}
		if (dm_alloc(&p, length, 0, &dm) < 0) {
			CHECK(!pages_fit(owner, pages));
			continue;
		}
		CHECK(dm.length == length && range_inside(dm.first_page, pages, DM_PAGES));
		for (uint32_t n = 0; n < pages; n++) {
			uint8_t *page = p.memory + (dm.first_page + n) * (size_t)DM_PAGE_BYTES;

			CHECK(!owner[dm.first_page + n]);
			CHECK(!page[0] && !page[DM_PAGE_BYTES - 1]);
			page[0] = page[DM_PAGE_BYTES - 1] = 0xff;
			owner[dm.first_page + n] = dm.handle;
		}
		live[nlive++] = dm.handle;
	}
	dm_pool_close(&p);
}

static void child_allocates(struct dm_pool *p, int result, uint8_t mark)
{
	struct dm_info dm;
	uint64_t length = DM_BYTES / 10;

	if (dm_alloc(p, length, 0, &dm))
		_exit(1);
	memset(p->memory + (size_t)dm.first_page * DM_PAGE_BYTES, mark, length);
	_exit(write(result, &dm, sizeof(dm)) != sizeof(dm));
}

/* Their memory and their handles are the parent's too. */
static void children_at_once(void)
{
	struct dm_pool p;
	int fd[2];

	pool_up(&p);
	CHECK(!pipe(fd));
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid)
			child_allocates(&p, fd[1], (uint8_t)(i + 1));
	}
	for (int i = 0; i < CHILDREN; i++) {
		struct dm_info dm, again;
		const uint8_t *memory;

		CHECK(read(fd[0], &dm, sizeof(dm)) == sizeof(dm));
		CHECK(!dm_find(&p, dm.handle, &again) && again.first_page == dm.first_page);
		memory = p.memory + (size_t)dm.first_page * DM_PAGE_BYTES;
		CHECK(memory[0]);
		for (uint64_t at = 0; at < dm.length; at++)
			CHECK(memory[at] == memory[0]);
		CHECK(!dm_free(&p, dm.handle));
	}
	for (int i = 0; i < CHILDREN; i++) {
		int status;

		CHECK(wait(&status) > 0 && !status);
	}
	close(fd[0]);
	close(fd[1]);
	dm_pool_close(&p);
}

/* Wherever it dies, perhaps with the lock, the book stays readable and its pages can be freed. */
static void child_dies(void)
{
	struct dm_info dm;
	struct dm_pool p;

	pool_up(&p);
	for (int round = 0; round < 50; round++) {
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		while (!pid)
			if (dm_alloc(&p, DM_BYTES / 4, 0, &dm) || dm_free(&p, dm.handle))
				_exit(1);
		usleep((useconds_t)(200 + 37 * round));
		CHECK(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
		CHECK(WIFSIGNALED(status));
		for (uint32_t i = 0; i < DM_PAGES; i++)
			if (!dm_find(&p, DM_HANDLE_FIRST + i, &dm))
				CHECK(!dm_free(&p, dm.handle));
		CHECK(!dm_alloc(&p, DM_BYTES, 0, &dm) && !dm_free(&p, dm.handle));
	}
	dm_pool_close(&p);
}

int main(void)
{
	test_refusals();
	random_model();
	children_at_once();
	child_dies();
	return 0;
}
