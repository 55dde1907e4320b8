/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs foreign code, such as checksum kernels that know nothing of faults, on the program's memory.
 * On a fault the signal handler jumps back to the beginning of the stretch.
 *
 * The guard is reached from a signal handler, so its storage is allocated with the thread, never on
 * first use.
 */
#include <setjmp.h>
#include <stdatomic.h>

#include "usermem/usermem.h"

/* The kernel reports some byte of the access that faulted.  A wide access may begin before a run or
 * end behind it, but it stays in the same page. */
#define PAGE_MASK ((uintptr_t)4096 - 1)

struct stretch {
	struct usermem_list list[2];
	jmp_buf out;
};

/* libsofthca-preload.so-gdb.py reads it by this name. */
static _Thread_local struct stretch *volatile guarded_stretch
	__attribute__((tls_model("initial-exec")));

/* Saves no signal mask, because the handler is installed with SA_NODEFER. */
bool usermem_guarded(void (*work)(void *arg), void *arg, struct usermem_list a,
		     struct usermem_list b)
{
	/* not NULL if a signal handler of the program has interrupted another stretch */
	struct stretch *const outer = guarded_stretch;
	struct stretch here = {.list = {a, b}};

	if (_setjmp(here.out)) {
		guarded_stretch = outer;
		return false;
	}
	guarded_stretch = &here;
	atomic_signal_fence(memory_order_seq_cst);
	work(arg);
	atomic_signal_fence(memory_order_seq_cst);
	guarded_stretch = outer;
	return true;
}

static bool on_page_of(const struct run *r, uintptr_t addr)
{
	uintptr_t start = (uintptr_t)r->addr & ~PAGE_MASK;

	return r->len && addr - start <= (((uintptr_t)r->addr + r->len - 1) | PAGE_MASK) - start;
}

void usermem_guarded_fault(const void *addr)
{
	struct stretch *here = guarded_stretch;

	for (uint32_t i = 0; here && i < 2; i++)
		for (uint32_t k = 0; k < here->list[i].n; k++)
			if (on_page_of(&here->list[i].run[k], (uintptr_t)addr))
				longjmp(here->out, 1);
}
