/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a store to a page that refuses costs by itself: the fault, the signal, and the return from a
 * handler that does nothing but step over the store.  After the program has slept for some
 * milliseconds, and after it has been busy for as long.  Prints "name value unit" lines.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include "verbs_device.h"

#define PAUSE_NS 3000000u
#define SAMPLES	 100u

#if defined(__x86_64__)

static void on_fault(int signum, siginfo_t *info, void *ucontext)
{
	(void)signum;
	(void)info;
	/* mov %rax,(%rdx) */
	((ucontext_t *)ucontext)->uc_mcontext.gregs[REG_RIP] += 3;
}

static void store(void *page)
{
	__asm__ volatile("mov %%rax, (%%rdx)" ::"a"(1ul), "d"(page) : "memory");
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

static void work(void)
{
	uint64_t until = device_now_ns() + PAUSE_NS;

	while (device_now_ns() < until)
		;
}

static void measure(const char *name, void *page, void (*pause)(void))
{
	uint64_t ns[SAMPLES];

	for (unsigned i = 0; i < SAMPLES; i++) {
		uint64_t start;

		pause();
		start = device_now_ns();
		store(page);
		ns[i] = device_now_ns() - start;
	}
	device_sort(ns, SAMPLES);
	printf("%s_p50 %.2f us\n", name, (double)ns[SAMPLES / 2] / 1e3);
}

int main(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || sigaction(SIGSEGV, &act, NULL))
		device_die("set-up: %m");
	measure("asleep", page, nap);
	measure("busy", page, work);
	return 0;
}

#else

int main(void)
{
	device_die("x86-64 only");
}

#endif
