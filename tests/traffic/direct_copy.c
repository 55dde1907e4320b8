// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that copies its requests to the register (BlueFlame) and has an alternate stack for signals, as
 * UCX does: its doorbells find a sleeping device executed by the thread that rings, not by another one.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "direct.h"

#define ROUNDS	    50u
#define ROUNDS_MAX  1000u /* where others keep the processors busy */
#define BLOCK	    64u
#define STACK_BYTES (144u << 10) /* of UCX 1.13 */

/* One call that the compiler does not take apart. */
static void *(*volatile copy)(void *to, const void *from, size_t len) = memmove;

/* The record, then the last request as a whole. */
static void ring_by_copy(struct direct_sq *sq)
{
	const uint8_t *last = sq->ring + ((sq->next - 1) % sq->blocks) * BLOCK;

	atomic_thread_fence(memory_order_release);
	*(volatile __be32 *)sq->record = htobe32(sq->next & 0xffff);
	atomic_thread_fence(memory_order_seq_cst);
	copy(sq->reg->at + sq->reg->offset, last, BLOCK);
	sq->reg->offset ^= sq->reg->half;
}

static bool pages_can_be_protected(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* An engine that is awake for another reason may be there first: as many rounds as it takes. */
static bool copy_rounds(struct direct_field *f, unsigned *at_once)
{
	for (unsigned i = 0; i < ROUNDS || (*at_once < ROUNDS / 2 && i < ROUNDS_MAX); i++) {
		f->memory[0] = i + 1;
		direct_nap();
		direct_write(&f->pairs[0].sq, direct_source(f, 0), direct_target(f, 0));
		ring_by_copy(&f->pairs[0].sq);
		if (direct_poll(&f->sends))
			++*at_once;
		else if (!direct_wait(&f->sends, DIRECT_LIMIT_NS))
			return false;
		if (f->memory[1] != i + 1)
			return false;
	}
	return true;
}

bool direct_copies(struct direct_field *f)
{
	stack_t stack = {.ss_size = STACK_BYTES}, before;
	unsigned at_once = 0;
	bool good;

	stack.ss_sp =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, &before))
		device_die("an alternate stack: %m");
	good = copy_rounds(f, &at_once);
	if (sigaltstack(&before, NULL) || munmap(stack.ss_sp, STACK_BYTES))
		device_die("the stack before: %m");
	if (!good)
		fprintf(stderr, "a request was not executed\n");
#if defined(__x86_64__)
	if (at_once < ROUNDS / 2 && pages_can_be_protected()) {
		fprintf(stderr, "the engine was waited for: %u of %u rounds did not\n", at_once,
			ROUNDS_MAX);
		good = false;
	}
#endif
	return good;
}
