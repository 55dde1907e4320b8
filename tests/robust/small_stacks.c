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

#define RINGS	 10u
#define LIMIT_NS 10000000000ull

static const struct device_connection connection = {
	.access = IBV_ACCESS_REMOTE_WRITE,
	.retry_cnt = 7,
	.timeout = 18,
	.min_rnr_timer = 1,
	.rd_atomic = 1,
	.mtu = IBV_MTU_1024,
};

static struct direct_field field;

static void ring_some(void)
{
	for (unsigned i = 0; i < RINGS; i++) {
		direct_nap();
		direct_write(&field.pairs[0].sq, direct_source(&field, 0),
			     direct_target(&field, 0));
		direct_ring(&field.pairs[0].sq);
		if (!direct_wait(&field.sends, LIMIT_NS))
			device_die("a store has not arrived");
	}
}

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
	ring_some();
	if (sigaltstack(&none, &now) || now.ss_sp != stack.ss_sp || now.ss_size != stack.ss_size)
		device_die("another alternate stack");
	munmap(pages, page + whole);
}

static void *ringing_thread(void *unused)
{
	ring_some();
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
	struct device_address address;
	size_t bytes;

	if (argc != 4)
		device_die("usage: small_stacks DEVICE alternate|thread BYTES");
	bytes = strtoul(argv[3], NULL, 0);
	direct_open(&field, argv[1], -1, 0);
	direct_add_single(&field);
	address = device_address(&field.port, field.pairs[0].from, 0);
	device_qp_init(field.pairs[0].from, &connection);
	device_qp_connect(&field.port, field.pairs[0].from, &connection, &address, 0);
	if (!strcmp(argv[2], "alternate"))
		with_alternate_stack(bytes);
	else
		on_thread(bytes);
	direct_close(&field);
	return 0;
}
