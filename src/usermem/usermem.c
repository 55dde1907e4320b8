// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies between run lists.  Each architecture has its own single touches below them
 * (usermem_x86_64.c, usermem_portable.c).
 */
#include "usermem/usermem.h"

#include "base/run.h"
#include "base/word.h"

#include <setjmp.h>
#include <stdatomic.h>

#define PAGE_MASK ((uintptr_t)4096 - 1)

typedef bool touch_copy(void *dst, const void *src, size_t n);

/* Two lists, and the one whose words are kept whole. */
struct pull {
	struct run_cursor dst, src;
	struct run_cursor *whole;
	touch_copy *copy;
};

static void pull_advance(struct pull *p, size_t n)
{
	run_cursor_advance(&p->dst, n);
	run_cursor_advance(&p->src, n);
}

/* n is at most what lies in one run of either list. */
static bool pull_part(struct pull *p, size_t n)
{
	if (p->dst.run->addr != RUN_DISCARD &&
	    !p->copy(run_cursor_at(&p->dst), run_cursor_at(&p->src), n))
		return false;
	pull_advance(p, n);
	return true;
}

static bool pull_parts(struct pull *p)
{
	while (p->dst.left && p->src.left)
		if (!pull_part(p, run_cursors_part(&p->dst, &p->src)))
			return false;
	return true;
}

/* Copies n bytes within a word, which lie in several runs of the other list. */
static bool pull_word(struct pull *p, size_t n)
{
	uint64_t word;
	char *copy = (char *)&word + (uintptr_t)run_cursor_at(p->whole) % WORD_BYTES;
	const struct run here = {copy, n};
	struct pull in = {run_cursor_start(&here, 1), p->src, NULL, p->copy};
	struct pull out = {p->dst, run_cursor_start(&here, 1), NULL, p->copy};

	if (!pull_parts(&in) || in.dst.left || !pull_parts(&out) || out.src.left)
		return false;
	p->dst = out.dst;
	p->src = in.src;
	return true;
}

static bool pull_next(struct pull *p)
{
	size_t n = run_cursors_part(&p->dst, &p->src), left = p->whole->run->len - p->whole->off;
	uintptr_t at = (uintptr_t)run_cursor_at(p->whole);
	size_t beyond = (at + n) % WORD_BYTES;

	/* This splits no word: the part ends with a word, or with the run whose words stay
	 * whole. */
	if (likely(n == left || !beyond || p->whole->run->addr == RUN_DISCARD))
		return pull_part(p, n);
	if (n > beyond)
		return pull_part(p, n - beyond);
	return pull_word(p, min_u64(left, WORD_BYTES - at % WORD_BYTES));
}

static bool pull_all(struct pull *p)
{
	while (p->dst.left && p->src.left)
		if (!pull_next(p))
			return false;
	return !p->dst.left && !p->src.left;
}

bool usermem_pull(const struct run *dst, uint32_t ndst, const struct run *src, uint32_t nsrc)
{
	struct pull p;

	/* most messages have one run on each side */
	if (likely(ndst == 1 && nsrc == 1 && dst->len == src->len && dst->addr != RUN_DISCARD))
		return usermem_copy(dst->addr, src->addr, src->len);
	p = (struct pull){run_cursor_start(dst, ndst), run_cursor_start(src, nsrc), &p.dst,
			  usermem_copy};
	return pull_all(&p);
}

bool usermem_pull_answer(const struct run *dst, uint32_t ndst, const struct run *src, uint32_t nsrc)
{
	struct pull p = {run_cursor_start(dst, ndst), run_cursor_start(src, nsrc), &p.src,
			 usermem_read};

	return pull_all(&p);
}

void usermem_bring_in(const struct run *run, uint32_t n, bool write)
{
	uintptr_t page = 1; /* the one that was brought in last */

	for (uint32_t i = 0; i < n; i++) {
		uintptr_t at = (uintptr_t)run[i].addr, end = at + run[i].len;

		/* Short pieces of a list often lie side by side. */
		if (at < end && (at & ~PAGE_MASK) == page)
			at = (at | PAGE_MASK) + 1;
		for (; at < end && usermem_touch((void *)at, write); at = (at | PAGE_MASK) + 1)
			page = at & ~PAGE_MASK;
	}
}

bool usermem_readable(const struct run *run, uint32_t n)
{
	uint8_t scratch[4096];

	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *from = run[i].addr;
		size_t part;

		for (size_t left = run[i].len; left; left -= part, from += part) {
			part = min_u64(left, sizeof(scratch));
			if (!usermem_copy(scratch, from, part))
				return false;
		}
	}
	return true;
}

/*
 * Runs foreign code, such as checksum kernels that know nothing of faults, on the program's memory.
 * On a fault the signal handler jumps back to the beginning of the stretch.
 *
 * The guard is reached from a signal handler, so its storage is allocated with the thread, never on
 * first use.
 */

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

/* The kernel reports some byte of the access that faulted.  A wide access may begin before a run or
 * end behind it, but it stays in the same page. */
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
