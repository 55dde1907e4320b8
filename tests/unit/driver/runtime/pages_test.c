// SPDX-License-Identifier: BSD-2-Clause
/* Other pages in the place of the program's: same content, same address, and signals wait. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/asan.h"
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

/* The address sanitizer keeps what is freed, here the list, in mappings of its own. */
static unsigned count_mappings(void)
{
#ifdef ASAN_WATCHES
	return 0;
#else
	char *list = vma_list();
	const char *at = list;
	struct vma v;
	unsigned n = 0;

	CHECK(list);
	while (vma_next(&at, &v))
		n++;
	free(list);
	return n;
#endif
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

int main(void)
{
	test_fault_catch();
	test_there_and_back();
	test_signals();
	test_refused();
	return 0;
}
