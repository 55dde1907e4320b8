// SPDX-License-Identifier: BSD-2-Clause
/* Large mappings of which little is touched, in a program that has its memory locked. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sparse.h"
#include "check.h"

#define PAGE  4096u
#define BYTES ((size_t)64 << 20)

static unsigned resident(const uint8_t *p)
{
	static unsigned char present[BYTES / PAGE];
	unsigned n = 0;

	CHECK(!mincore((void *)(uintptr_t)p, BYTES, present));
	for (size_t i = 0; i < BYTES / PAGE; i++)
		n += present[i] & 1;
	return n;
}

/* Has the mapping that begins there that flag in smaps? */
static bool has_flag(const void *p, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	bool here = false, found = false;
	unsigned long start, end;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start == (uintptr_t)p;
		else if (here && !strncmp(line, "VmFlags:", 8))
			found = strstr(line, flag) != NULL;
	}
	fclose(f);
	return found;
}

static void test_private(void)
{
	uint8_t *p = sparse_map(BYTES, -1, 0);

	CHECK(p && !mprotect(p, BYTES, PROT_READ | PROT_WRITE));
	CHECK(!resident(p) && has_flag(p, " dd") && !has_flag(p, " lo"));
	CHECK(!p[5 * PAGE]);
	p[5 * PAGE] = 1;
	CHECK(resident(p) == 1);
	munmap(p, BYTES);
}

static void test_file(void)
{
	int fd = memfd_create("sparse", MFD_CLOEXEC);
	uint8_t *p;

	CHECK(fd >= 0 && !ftruncate(fd, BYTES + PAGE) && pwrite(fd, "x", 1, PAGE) == 1);
	p = sparse_map(BYTES, fd, PAGE);
	CHECK(p && !mprotect(p, BYTES, PROT_READ | PROT_WRITE));
	CHECK(p[0] == 'x' && resident(p) == 1 && !has_flag(p, " lo"));
	/* shared, not a copy */
	p[1] = 'y';
	CHECK(pread(fd, p + 2, 1, PAGE + 1) == 1 && p[2] == 'y');
	munmap(p, BYTES);
	close(fd);
}

static void test_refused(void)
{
	errno = 0;
	CHECK(!sparse_map((size_t)1 << 60, -1, 0) && errno == ENOMEM);
	errno = 0;
	CHECK(!sparse_map(PAGE, 1000, 0) && errno == EBADF);
}

int main(void)
{
	test_private();
	test_file();
	test_refused();
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		printf("locked memory is not tried: %s\n", strerror(errno));
		return 0;
	}
	test_private();
	test_file();
	return 0;
}
