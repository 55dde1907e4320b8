// SPDX-License-Identifier: BSD-2-Clause
/* What a piece of the address space is found to hold. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "driver/runtime/mapping.h"

#define PAGE  4096u
#define PAGES 8u
#define BYTES ((size_t)PAGES * PAGE)

static uint8_t *map_memory(int flags, int fd)
{
	/* A page on each side that is not there, so that the kernel joins it with nothing. */
	uint8_t *p = mmap(NULL, BYTES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	p = mmap(p + PAGE, BYTES, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

static uint8_t *map_private(void)
{
	return map_memory(MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void unmap_memory(uint8_t *p)
{
	CHECK(!munmap(p - PAGE, BYTES + 2 * PAGE));
}

static bool is_plain(const uint8_t *p, size_t bytes)
{
	return mappings_plain((uintptr_t)p, (uintptr_t)p + bytes);
}

static bool is_served(const uint8_t *p, size_t bytes)
{
	return mappings_served((uintptr_t)p, (uintptr_t)p + bytes);
}

static bool count_and_accept(const struct vma *v, const void *arg)
{
	(void)v;
	++**(unsigned *const *)arg;
	return true;
}

static bool is_writable(const struct vma *v, const void *arg)
{
	(void)arg;
	return v->perms[1] == 'w';
}

static bool all_pages(const uint8_t *p, size_t bytes, bool (*ok)(const struct vma *, const void *),
		      const void *arg)
{
	return mappings_all((uintptr_t)p, (uintptr_t)p + bytes, ok, arg);
}

static void test_all(void)
{
	uint8_t *p = map_private();
	unsigned n = 0, *count = &n;

	CHECK(all_pages(p, BYTES, count_and_accept, &count) && n == 1);
	CHECK(!mprotect(p + 2 * PAGE, PAGE, PROT_READ));
	n = 0;
	CHECK(all_pages(p, BYTES, count_and_accept, &count) && n == 3);
	CHECK(all_pages(p, 2 * PAGE, is_writable, NULL) &&
	      !all_pages(p, 2 * PAGE + 1, is_writable, NULL));
	/* a gap in the middle, and at the end */
	CHECK(!munmap(p + 4 * PAGE, PAGE));
	CHECK(!all_pages(p, BYTES, count_and_accept, &count));
	CHECK(!all_pages(p + 3 * PAGE, PAGE + 1, count_and_accept, &count));
	CHECK(all_pages(p + 3 * PAGE, PAGE, count_and_accept, &count));
	unmap_memory(p);
}

static void expect_not_plain(uint8_t *p)
{
	CHECK(!is_plain(p, BYTES) && !is_plain(p + 3 * PAGE, PAGE) && !is_plain(p, 3 * PAGE + 1));
	CHECK(is_plain(p, 3 * PAGE) && is_plain(p + 4 * PAGE, 4 * PAGE));
	unmap_memory(p);
}

/* Whatever the program has asked for one page counts for that page alone. */
static void test_plain(void)
{
	uint8_t *p = map_private();
	void *heap = malloc(100);
	int fd;

	CHECK(is_plain(p, BYTES) && is_plain(p + 100, 1) && is_plain(heap, 100));
	free(heap);
	CHECK(!mprotect(p + 3 * PAGE, PAGE, PROT_READ));
	expect_not_plain(p);

	p = map_private();
	CHECK(!madvise(p + 3 * PAGE, PAGE, MADV_DONTFORK));
	expect_not_plain(p);

	p = map_private();
	CHECK(!madvise(p + 3 * PAGE, PAGE, MADV_WIPEONFORK));
	expect_not_plain(p);

	p = map_private();
	/* not by mlock(), which sanitizers make do nothing */
	if (!syscall(SYS_mlock, p + 3 * PAGE, (size_t)PAGE))
		expect_not_plain(p);
	else
		printf("locked memory is not tried: %s\n", strerror(errno));

	p = map_private();
	CHECK(!munmap(p + 3 * PAGE, PAGE));
	expect_not_plain(p);

	p = map_private();
	fd = memfd_create("file", MFD_CLOEXEC);
	CHECK(fd >= 0 && !ftruncate(fd, BYTES));
	CHECK(mmap(p + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) !=
	      MAP_FAILED);
	expect_not_plain(p);
	close(fd);

	p = map_memory(MAP_SHARED | MAP_ANONYMOUS, -1);
	CHECK(!is_plain(p, BYTES));
	unmap_memory(p);
}

static void test_protection_key(void)
{
	uint8_t *p = map_private();
	int key = pkey_alloc(0, 0);

	if (key < 0) {
		printf("protection keys are not tried: %s\n", strerror(errno));
		return;
	}
	CHECK(!pkey_mprotect(p + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE, key));
	expect_not_plain(p);
	pkey_free(key);
}

static void test_served(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	uint8_t *p = map_private();
	struct uffdio_register r = {
		.range = {(uintptr_t)p + 3 * PAGE, PAGE},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	CHECK(!is_served(p, BYTES));
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api)) {
		printf("userfaultfd is not tried: %s\n", strerror(errno));
		return;
	}
	CHECK(!ioctl(fd, UFFDIO_REGISTER, &r));
	CHECK(is_served(p, BYTES) && is_served(p + 3 * PAGE, 1) && is_served(p, 3 * PAGE + 1));
	CHECK(!is_served(p, 3 * PAGE) && !is_served(p + 4 * PAGE, 4 * PAGE));
	/* a gap in front of it hides nothing, and is served by nobody */
	CHECK(!munmap(p + PAGE, PAGE));
	CHECK(is_served(p, BYTES) && !is_served(p, 3 * PAGE));
	CHECK(!is_plain(p + 3 * PAGE, PAGE) && is_plain(p + 2 * PAGE, PAGE));
	unmap_memory(p);
	close(fd);
}

int main(void)
{
	test_all();
	test_plain();
	test_protection_key();
	test_served();
	return 0;
}
