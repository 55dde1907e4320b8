// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread with little stack rings by bare stores, while the device sleeps: the thread has an
 * alternate stack for signals of so many bytes, or itself has no more than so many.  The stores
 * arrive.
 *
 *	small_stacks DEVICE alternate|thread BYTES
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../traffic/direct.h"

#define RINGS 10u

static struct direct_field field;

/* Before it there is a page without access, which whoever needs more meets. */
static void with_alternate_stack(size_t bytes)
{
	size_t page = 4096, whole = (bytes + page - 1) / page * page;
	char *pages = mmap(NULL, page + whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	stack_t stack = {.ss_sp = pages + page, .ss_size = bytes}, none = {.ss_flags = SS_DISABLE},
		now;

	if (pages == MAP_FAILED || mprotect(pages, page, PROT_NONE) || sigaltstack(&stack, NULL))
		device_die("an alternate stack: %m");
	direct_ring_asleep(&field, RINGS);
	if (sigaltstack(&none, &now) || now.ss_sp != stack.ss_sp || now.ss_size != stack.ss_size)
		device_die("another alternate stack");
	munmap(pages, page + whole);
}

static void *ringing_thread(void *unused)
{
	direct_ring_asleep(&field, RINGS);
	return unused;
}

static void on_thread(size_t bytes)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, bytes) ||
	    pthread_create(&thread, &attr, ringing_thread, NULL) || pthread_join(thread, NULL))
		device_die("no thread");
	pthread_attr_destroy(&attr);
}

int main(int argc, char **argv)
{
	size_t bytes;

	if (argc != 4)
		device_die("usage: small_stacks DEVICE alternate|thread BYTES");
	bytes = strtoul(argv[3], NULL, 0);
	direct_open(&field, argv[1], -1, 0);
	direct_add_loopback(&field);
	if (!strcmp(argv[2], "alternate"))
		with_alternate_stack(bytes);
	else
		on_thread(bytes);
	direct_close(&field);
	return 0;
}
