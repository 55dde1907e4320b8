/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Touching application memory: every small size and alignment against memcpy, faults at each place
 * of a copy, in several threads at once, and reads from another process.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/rseq.h"
#include "usermem/usermem.h"
#include "check.h"
#include "test_runs.h"
#include "test_fault.h"

static long page;

/* Pages with an unmapped one before and after. */
static unsigned char *map_island(size_t pages)
{
	unsigned char *p =
		mmap(NULL, (pages + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	CHECK(!mprotect(p + page, pages * page, PROT_READ | PROT_WRITE));
	return p + page;
}

static void copies_equal_memcpy(void)
{
	static unsigned char src[4096], dst[4096], want[4096];
	struct rng rng = {1};

	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (unsigned char)rng_next(&rng);
	for (size_t n = 0; n <= 300; n++) {
		for (size_t a = 0; a < 16; a++) {
			for (size_t b = 0; b < 16; b++) {
				memset(dst, 0xee, 400);
				memset(want, 0xee, 400);
				memcpy(want + 16 + a, src + b, n);
				CHECK(usermem_copy(dst + 16 + a, src + b, n));
				CHECK(!memcmp(dst, want, 400));
			}
		}
	}
	for (int i = 0; i < 20000; i++) {
		size_t n = rng_below(&rng, 3800), a = rng_below(&rng, 128),
		       b = rng_below(&rng, 128);

		memset(dst, 0xee, sizeof(dst));
		memset(want, 0xee, sizeof(want));
		memcpy(want + a, src + b, n);
		CHECK(usermem_copy(dst + a, src + b, n));
		CHECK(!memcmp(dst, want, sizeof(dst)));
	}
}

static void test_words(void)
{
	uint64_t word = 40, orig = 0;
	uint32_t value = 0;
	be32 stored;
	unsigned char cqe[64], out[64];

	CHECK(usermem_store_be32(&stored, 0x12345678));
	CHECK(be32_get(stored) == 0x12345678);
	CHECK(usermem_load_be32(&stored, &value) && value == 0x12345678);
	CHECK(usermem_fetch_add(&word, 2, &orig) && orig == 40 && word == 42);
	CHECK(usermem_compare_swap(&word, 42, 7, &orig) && orig == 42 && word == 7);
	CHECK(usermem_compare_swap(&word, 42, 9, &orig) && orig == 7 && word == 7);
	CHECK(!usermem_fetch_add((char *)&word + 1, 2, &orig));
	CHECK(!usermem_compare_swap((char *)&word + 4, 2, 2, &orig));
	for (int i = 0; i < 64; i++)
		cqe[i] = (unsigned char)(i * 3);
	CHECK(usermem_publish(out, cqe, sizeof(cqe)) && !memcmp(out, cqe, sizeof(cqe)));
}

/* A copy that runs over either end of the island fails; one that ends at its border does not. */
static void faults_are_caught(void)
{
	unsigned char *p = map_island(2), local[3 * 4096] = {0};
	size_t size = 2 * page;
	uint64_t orig, before;
	uint32_t v;

	for (size_t n = 1; n <= 1200; n++) {
		CHECK(usermem_copy(p, local, n) && usermem_copy(local, p, n));
		CHECK(usermem_copy(p + size - n, local, n) && usermem_copy(local, p + size - n, n));
		for (size_t over = 1; over <= n; over += n / 7 + 1) {
			CHECK(!usermem_copy(p - over, local, n));
			CHECK(!usermem_copy(local, p - over, n));
			CHECK(!usermem_copy(p + size - n + over, local, n));
			CHECK(!usermem_copy(local, p + size - n + over, n));
		}
	}
	CHECK(usermem_copy(local, p, size));
	CHECK(!munmap(p + page, page)); /* now in the middle of a long copy */
	CHECK(!usermem_copy(local, p, size) && !usermem_copy(p, local, size));
	CHECK(!usermem_load_be32(p + page, &v) && !usermem_store_be32(p + page, 1));
	CHECK(!usermem_fetch_add(p + page, 1, &orig));
	CHECK(!usermem_compare_swap(p + page, 1, 1, &orig));
	CHECK(!usermem_publish(p + page, local, 64));
	CHECK(!usermem_load_be32(NULL, &v));
	before = atomic_load(&test_fault_count);
	CHECK(before > 1000);
#if defined(__x86_64__) && !defined(USERMEM_PORTABLE)
	/* No address comes with the signal for a pointer that is not canonical. */
	CHECK(!usermem_copy(local, (void *)0x8000000000000000ull, 100));
	CHECK(!usermem_copy((void *)0x8000000000000000ull, local, 8));
#endif
	CHECK(!mprotect(p, page, PROT_READ));
	CHECK(usermem_copy(local, p, page) && !usermem_copy(p, local, 8));
	munmap(p - page, 4 * page);
}

static void *fault_loop(void *arg)
{
	unsigned char *p = map_island(1), local[4096];
	struct rng rng = {(uintptr_t)arg};

	for (int i = 0; i < 20000; i++) {
		size_t n = 1 + rng_below(&rng, 4096);
		size_t off = rng_below(&rng, 4096);
		bool fits = off + n <= (size_t)page;

		if (rng_below(&rng, 2))
			CHECK(usermem_copy(local, p + off, n) == fits);
		else
			CHECK(usermem_copy(p + off, local, n) == fits);
	}
	munmap(p - page, 3 * page);
	return NULL;
}

static void faults_in_threads(void)
{
	pthread_t t[4];

	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&t[i], NULL, fault_loop, (void *)(i + 1)));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* A program polls on the last byte and must find the rest in place. */
static unsigned char polled[2048];

static void *poll_last_byte(void *arg)
{
	(void)arg;
	for (unsigned round = 1; round < 256; round++) {
		size_t n = 1 + round * 7;

		while (__atomic_load_n(&polled[n - 1], __ATOMIC_ACQUIRE) != round)
			sched_yield();
		for (size_t i = 0; i < n; i++)
			CHECK(polled[i] == round);
		__atomic_store_n(&polled[2047], (unsigned char)round, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void last_byte_last(void)
{
	unsigned char src[2048];
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, poll_last_byte, NULL));
	for (unsigned round = 1; round < 256; round++) {
		memset(src, (int)round, sizeof(src));
		CHECK(usermem_copy(polled, src, 1 + round * 7));
		while (__atomic_load_n(&polled[2047], __ATOMIC_ACQUIRE) != round)
			sched_yield();
	}
	pthread_join(t, NULL);
}

/* The same bytes whatever the cuts. */
static void test_pulls(void)
{
	static unsigned char src[65536], dst[65536];
	struct run from[100], to[100];
	struct rng rng = {77};

	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (unsigned char)rng_next(&rng);
	for (int i = 0; i < 300; i++) {
		size_t total = 1 + rng_below(&rng, sizeof(src));
		uint32_t nfrom = test_runs_cut(&rng, src, total, from);
		uint32_t nto = test_runs_cut(&rng, dst, total, to);

		memset(dst, 0, sizeof(dst));
		CHECK(usermem_pull(to, nto, from, nfrom));
		CHECK(!memcmp(dst, src, total));
		for (size_t k = total; k < sizeof(dst); k++)
			CHECK(!dst[k]);
	}
	/* Lengths that differ, and memory that is not there. */
	from[0] = (struct run){.addr = src, .len = 10};
	to[0] = (struct run){.addr = dst, .len = 11};
	CHECK(!usermem_pull(to, 1, from, 1));
	to[0].len = 9;
	CHECK(!usermem_pull(to, 1, from, 1));
	CHECK(usermem_pull(to, 0, from, 0));
	from[0] = (struct run){.addr = (void *)16, .len = 10};
	to[0].len = 10;
	CHECK(!usermem_pull(to, 1, from, 1));
	from[0].addr = src;
	to[0].addr = (void *)16;
	CHECK(!usermem_pull(to, 1, from, 1));
}

/* ---- code that knows nothing of faults ---- */

struct add {
	const unsigned char *from;
	size_t n;
	unsigned *sum;
};

static void add_bytes(void *arg)
{
	const struct add *a = arg;

	for (size_t i = 0; i < a->n; i++)
		*a->sum += a->from[i];
}

/* ThreadSanitizer blocks all signals while a handler runs, whatever sigaction asked for, and the
 * jump out of the handler would leave them blocked. */
static void after_jump(void)
{
#ifdef __SANITIZE_THREAD__
	sigset_t none;

	sigemptyset(&none);
	CHECK(!pthread_sigmask(SIG_SETMASK, &none, NULL));
#endif
}

static bool add_guarded(const unsigned char *from, size_t n, unsigned *sum)
{
	struct run src = {(void *)(uintptr_t)from, n}, dst = {sum, sizeof(*sum)};
	struct add a = {from, n, sum};

	*sum = 0;
	if (usermem_guarded(add_bytes, &a, (struct usermem_list){&src, 1},
			    (struct usermem_list){&dst, 1}))
		return true;
	after_jump();
	return false;
}

static void *guarded_loop(void *arg)
{
	unsigned char *p = map_island(1);
	struct rng rng = {(uintptr_t)arg};
	unsigned sum;

	memset(p, 1, (size_t)page);
	for (int i = 0; i < 3000; i++) {
		size_t n = 1 + rng_below(&rng, 4096);
		size_t off = rng_below(&rng, 4096);
		bool fits = off + n <= (size_t)page;

		CHECK(add_guarded(p + off, n, &sum) == fits);
		CHECK(sum == (fits ? n : (size_t)page - off));
		/* touches of the other kind in between are caught as ever */
		CHECK(usermem_copy(p + off, p, n) == fits);
	}
	CHECK(!add_guarded(p - 8, 8, &sum) && !sum);
	munmap(p - page, 3 * page);
	return NULL;
}

static void foreign_code_is_guarded(void)
{
	pthread_t t[3];

	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&t[i], NULL, guarded_loop, (void *)(i + 1)));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
}

static void touch_nothing(void *arg)
{
	*(volatile int *)arg = 1;
}

/* A fault of the program's own is not ours, nor is one of guarded code at some other place. */
static void foreign_fault_is_left_alone(bool guarded)
{
	struct run elsewhere = {&guarded, sizeof(guarded)};
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		if (!guarded)
			touch_nothing(map_island(0));
		else if (!usermem_guarded(touch_nothing, map_island(0),
					  (struct usermem_list){&elsewhere, 1},
					  (struct usermem_list){NULL, 0}))
			_exit(0);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status)));
}

#define WITHOUT "without restartable sequences"

/* What a copy looks at before each touch says nothing then, so there is no copy. */
static int without_sequences(void)
{
	_Atomic(uint64_t) wide = 5;
	_Atomic(uint32_t) word = 7;
	const struct rseq_check check = {&wide, 5, &word, 7};
	char from[64] = "something", to[64] = "";

	if (rseq_available())
		SKIP("the C library registers restartable sequences whatever it is told");
	for (size_t n = 1; n <= sizeof(to); n++)
		CHECK(usermem_copy_checked(to, from, n, n % 2, &check) == USERMEM_INTERRUPTED &&
		      !to[0]);
	return 0;
}

static void needs_sequences(const char *program)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
		execl("/proc/self/exe", program, WITHOUT, (char *)NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK(!WEXITSTATUS(status) || WEXITSTATUS(status) == 77);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], WITHOUT))
		return without_sequences();
	page = sysconf(_SC_PAGESIZE);
	test_fault_catch();
	needs_sequences(argv[0]);
	copies_equal_memcpy();
	test_words();
	faults_are_caught();
	faults_in_threads();
	last_byte_last();
	test_pulls();
	foreign_code_is_guarded();
	foreign_fault_is_left_alone(false);
	foreign_fault_is_left_alone(true);
	return 0;
}
