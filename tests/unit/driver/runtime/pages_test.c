// SPDX-License-Identifier: BSD-2-Clause
/* Other pages in the place of the program's: same content, same address, and signals wait. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/vma.h"
#include "check.h"
#include "driver/runtime/pages.h"
#include "test_fault.h"

#define PAGE  4096u
#define BYTES ((size_t)16 * PAGE)

static uint8_t *map_filled(void)
{
	uint8_t *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	for (size_t i = 0; i < BYTES; i++)
		p[i] = (uint8_t)(i * 7 + i / PAGE);
	return p;
}

static bool is_filled(const uint8_t *p)
{
	for (size_t i = 0; i < BYTES; i++)
		if (p[i] != (uint8_t)(i * 7 + i / PAGE))
			return false;
	return true;
}

static bool replace_pages(const uint8_t *p, int fd, uint64_t offset)
{
	return pages_replace((uintptr_t)p, BYTES, fd, offset);
}

static void test_there_and_back(void)
{
	int fd = memfd_create("arena", MFD_CLOEXEC);
	uint8_t *p = map_filled(), other = 0;
	struct vma v;

	CHECK(fd >= 0 && !ftruncate(fd, 4 * BYTES));
	CHECK(replace_pages(p, fd, 2 * BYTES) && is_filled(p));
	CHECK(vma_at((uintptr_t)p, &v) && v.inode && v.perms[3] == 's' && v.offset == 2 * BYTES);
	/* it is the file, both ways */
	p[5] = 0xaa;
	CHECK(pread(fd, &other, 1, 2 * BYTES + 5) == 1 && other == 0xaa);
	CHECK(pwrite(fd, "b", 1, 2 * BYTES + 6) == 1 && p[6] == 'b');
	CHECK(pread(fd, &other, 1, BYTES + 5) == 1 && !other);

	CHECK(replace_pages(p, -1, 0));
	CHECK(vma_at((uintptr_t)p, &v) && !v.inode && !strcmp(v.perms, "rw-p"));
	CHECK(p[5] == 0xaa && p[6] == 'b');
	p[5] = 1;
	CHECK(pread(fd, &other, 1, 2 * BYTES + 5) == 1 && other == 0xaa);
	munmap(p, BYTES);
	close(fd);
}

static unsigned count_mappings(void)
{
	char *list = vma_list();
	const char *at = list;
	struct vma v;
	unsigned n = 0;

	CHECK(list);
	while (vma_next(&at, &v))
		n++;
	free(list);
	return n;
}

/* What cannot be copied, or has nowhere to go, stays, and nothing is left over. */
static void test_refused(void)
{
	uint8_t *p = map_filled();
	unsigned before;

	CHECK(!mprotect(p + 3 * PAGE, PAGE, PROT_NONE));
	before = count_mappings();
	CHECK(!replace_pages(p, -1, 0) && count_mappings() == before);
	CHECK(!mprotect(p + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE));
	CHECK(!replace_pages(p, 1000, 0) && is_filled(p));
	munmap(p, BYTES);
	CHECK(!replace_pages(p, -1, 0));
}

static uint8_t *counted;
static volatile sig_atomic_t runs;

/* A program's handler that stores into the pages. */
static void count_signal(int sig)
{
	(void)sig;
	runs++;
	++*(uint64_t *)(void *)counted;
}

/* However the signals fall, no store of the handler's is lost. */
static void test_signals(void)
{
	struct sigaction sa = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
	const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	sigset_t before, after;

	counted = map_filled();
	*(uint64_t *)(void *)counted = 0;
	CHECK(!sigaction(SIGALRM, &sa, NULL) && !sigprocmask(SIG_BLOCK, NULL, &before));
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
	for (unsigned i = 0; i < 4000 || !runs; i++)
		CHECK(replace_pages(counted, -1, 0));
	CHECK(!setitimer(ITIMER_REAL, &never, NULL) && !sigprocmask(SIG_BLOCK, NULL, &after));
	CHECK(*(uint64_t *)(void *)counted == (uint64_t)runs);
	for (int sig = 1; sig < NSIG; sig++)
		CHECK(sigismember(&before, sig) == sigismember(&after, sig));
	munmap(counted, BYTES);
}

#define LARGE ((size_t)2 << 20)

/* Four times LARGE from a multiple of it on, of which the pages [first, end) are touched. */
static uint8_t *map_touched(size_t first, size_t end)
{
	uint8_t *map =
		mmap(NULL, 5 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *p = map + (LARGE - (uintptr_t)map % LARGE) % LARGE;

	CHECK(map != MAP_FAILED);
	if (p != map)
		munmap(map, (size_t)(p - map));
	if (p + 4 * LARGE != map + 5 * LARGE)
		munmap(p + 4 * LARGE, (size_t)(map + LARGE - p));
	for (size_t at = first; at < end; at += PAGE)
		p[at] = (uint8_t)(at / PAGE * 3);
	return p;
}

static bool is_touched(const uint8_t *p, size_t first, size_t end)
{
	for (size_t at = 0; at < 4 * LARGE; at += PAGE)
		if (p[at] != (at < first || at >= end ? 0 : (uint8_t)(at / PAGE * 3)) || p[at + 1])
			return false;
	return true;
}

static size_t resident(uint8_t *p)
{
	static uint8_t there[4 * LARGE / PAGE];
	size_t n = 0;

	CHECK(!mincore(p, 4 * LARGE, there));
	for (size_t i = 0; i < sizeof(there); i++)
		n += there[i] & 1;
	return n * PAGE;
}

/* How much of [p, p + 4 LARGE) lies in large pages. */
static size_t large_bytes(const uint8_t *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long start, end, kib, sum = 0;
	bool inside = false;
	char line[512];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = start <= (uintptr_t)p && (uintptr_t)p < end;
		else if (inside && sscanf(line, "AnonHugePages: %lu", &kib) == 1)
			sum += kib;
	fclose(f);
	return sum << 10;
}

/* The kernel may have no large page at the moment. */
static bool kernel_joins(uint8_t *at, size_t bytes)
{
	return !madvise(at, bytes, 25 /* MADV_COLLAPSE */);
}

static void joined(size_t touched, size_t touched_end, size_t first, size_t end, size_t want,
		   size_t at)
{
	uint8_t *p = map_touched(touched, touched_end);
	size_t before = resident(p), large = large_bytes(p), found;

	pages_join((uintptr_t)p + first, end - first);
	CHECK(resident(p) == before);
	found = large_bytes(p);
	/* Where the kernel joins by itself there is nothing to be seen. */
	if (!large && found != want)
		CHECK_SAY(found < want && !kernel_joins(p + at, want), "%zu, not %zu", found, want);
	CHECK(is_touched(p, touched, touched_end));
	munmap(p, 4 * LARGE);
}

/* Whole large pages, and those at the ends if the rest of them is there. */
static void test_join(void)
{
	joined(0, 4 * LARGE, LARGE, 3 * LARGE, 2 * LARGE, LARGE);
	joined(0, 4 * LARGE, LARGE + 100, 3 * LARGE - 100, 2 * LARGE, LARGE);
	joined(LARGE + PAGE, 3 * LARGE, LARGE + PAGE, 3 * LARGE, LARGE, 2 * LARGE);
	joined(LARGE, 3 * LARGE - PAGE, LARGE, 3 * LARGE - PAGE, LARGE, LARGE);
	joined(LARGE + PAGE, 2 * LARGE - PAGE, LARGE + PAGE, 2 * LARGE - PAGE, 0, 0);
	joined(0, 4 * LARGE, LARGE, LARGE + PAGE, 0, 0);
	pages_join(PAGE, LARGE);
}

int main(void)
{
	test_fault_catch();
	test_there_and_back();
	test_signals();
	test_refused();
	test_join();
	return 0;
}
