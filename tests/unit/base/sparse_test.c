// SPDX-License-Identifier: BSD-2-Clause
/* Large mappings of which little is touched, in a program that has its memory locked. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory_file.h"
#include "check.h"

#define PAGE  4096u
#define BYTES ((size_t)64 << 20)

static unsigned resident_pages(const uint8_t *p)
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
	uint8_t *p = sparse_map(BYTES, PROT_READ | PROT_WRITE, -1, 0);

	CHECK(p);
	CHECK(!resident_pages(p) && has_flag(p, " dd") && !has_flag(p, " lo"));
	CHECK(!p[5 * PAGE]);
	p[5 * PAGE] = 1;
	CHECK(resident_pages(p) == 1);
	munmap(p, BYTES);
}

static void test_file(void)
{
	int fd = memfd_create("sparse", MFD_CLOEXEC);
	uint8_t *p;

	CHECK(fd >= 0 && !ftruncate(fd, BYTES + PAGE) && pwrite(fd, "x", 1, PAGE) == 1);
	p = sparse_map(BYTES, PROT_READ | PROT_WRITE, fd, PAGE);
	CHECK(p);
	CHECK(p[0] == 'x' && resident_pages(p) == 1 && !has_flag(p, " lo"));
	/* shared, not a copy */
	p[1] = 'y';
	CHECK(pread(fd, p + 2, 1, PAGE + 1) == 1 && p[2] == 'y');
	munmap(p, BYTES);
	close(fd);
}

static void test_refused(void)
{
	errno = 0;
	CHECK(!sparse_map((size_t)1 << 60, PROT_NONE, -1, 0) && errno == ENOMEM);
	errno = 0;
	CHECK(!sparse_map(BYTES, PROT_WRITE, open("/dev/zero", O_RDONLY | O_CLOEXEC), 0) &&
	      errno == EACCES);
	errno = 0;
	CHECK(!sparse_map(PAGE, PROT_NONE, 1000, 0) && errno == EBADF);
}

/* What the program has locked may not be much, if it is nobody special. */
static void limited_child(void)
{
	const struct rlimit little = {BYTES / 16, BYTES / 16};

	CHECK(!setrlimit(RLIMIT_MEMLOCK, &little));
	if (!geteuid() && (setgid(65534) || setuid(65534)))
		_exit(77);
	if (mlockall(MCL_FUTURE))
		_exit(77);
	CHECK(mmap(NULL, BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	test_private();
	test_file();
	_exit(0);
}

static void test_limited(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child)
		limited_child();
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		printf("a limit of locked memory is not tried\n");
	else
		CHECK(!WEXITSTATUS(status));
}

/* With the memory of the program locked; mlockall under a sanitizer does nothing and says so to
 * nobody, and would have to lock its tables. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LOCKING_WORKS false
#else
#define LOCKING_WORKS true
#endif

int main(void)
{
	test_private();
	test_file();
	test_refused();
	if (!LOCKING_WORKS) {
		printf("locked memory is not tried under a sanitizer\n");
		return 0;
	}
	test_limited();
	if (mlockall(MCL_CURRENT | MCL_FUTURE)) {
		printf("locked memory is not tried: %s\n", strerror(errno));
		return 0;
	}
	test_private();
	test_file();
	return 0;
}
