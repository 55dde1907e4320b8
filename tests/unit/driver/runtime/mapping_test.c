// SPDX-License-Identifier: BSD-2-Clause
/* What a piece of the address space is found to hold. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
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

static uint8_t *map_private(void)
{
	/* A page on each side that is not there, so that the kernel joins it with nothing. */
	uint8_t *p = mmap(NULL, BYTES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	p = mmap(p + PAGE, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

static void unmap_memory(uint8_t *p)
{
	CHECK(!munmap(p - PAGE, BYTES + 2 * PAGE));
}

static bool is_served(const uint8_t *p, size_t bytes)
{
	return mappings_served((uintptr_t)p, (uintptr_t)p + bytes);
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
	unmap_memory(p);
	close(fd);
}

int main(void)
{
	test_served();
	return 0;
}
