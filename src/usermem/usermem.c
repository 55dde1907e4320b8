/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between run lists, within this process or from another.  The single touches below them are
 * made per architecture (usermem_x86_64.c, usermem_portable.c).
 */
#include <string.h>
#include <sys/uio.h>

#include "usermem/usermem.h"

/* A program polls on the last bytes of a message, so they are stored when all else is in place. */
#define TAIL_BYTES 8u

/* A position in a run list. */
struct cursor {
	const struct run *run;
	uint32_t left; /* runs from here on */
	size_t off;    /* in the first of them */
};

static void cursor_advance(struct cursor *c, size_t n)
{
	while (c->left && n >= c->run->len - c->off) {
		n -= c->run->len - c->off;
		c->run++;
		c->left--;
		c->off = 0;
	}
	c->off += n;
}

static void *cursor_addr(const struct cursor *c)
{
	return (char *)c->run->addr + c->off;
}

static struct cursor cursor_start(const struct run *runs, uint32_t n)
{
	struct cursor c = {.run = runs, .left = n};

	cursor_advance(&c, 0); /* over empty runs */
	return c;
}

static bool pull_local(struct cursor dst, struct cursor src)
{
	while (dst.left && src.left) {
		size_t n = min_u64(dst.run->len - dst.off, src.run->len - src.off);

		if (dst.run->addr != RUN_DISCARD &&
		    !usermem_copy(cursor_addr(&dst), cursor_addr(&src), n))
			return false;
		cursor_advance(&dst, n);
		cursor_advance(&src, n);
	}
	return !dst.left && !src.left;
}

/* Lists the memory from c on: at most max bytes, and only up to a run that is discarded.  Returns
 * how many bytes the list covers. */
static size_t fill_iovecs(struct iovec *iov, unsigned long *count, struct cursor c, size_t max)
{
	size_t sum = 0;

	for (*count = 0; *count < RUNS_MAX && c.left && sum < max && c.run->addr != RUN_DISCARD;
	     (*count)++) {
		size_t n = min_u64(c.run->len - c.off, max - sum);

		iov[*count] = (struct iovec){.iov_base = cursor_addr(&c), .iov_len = n};
		sum += n;
		cursor_advance(&c, n);
	}
	return sum;
}

/* Moves both cursors past the bytes of the destination's run, which nobody wants. */
static void usermem_discard(struct cursor *dst, struct cursor *src)
{
	size_t n = min_u64(dst->run->len - dst->off, src->run->len - src->off);

	cursor_advance(dst, n);
	cursor_advance(src, n);
}

/* The fence keeps the reads of the payload before this load; its partner is in channel_withdraw. */
static bool is_withdrawn(const _Atomic(uint32_t) *word)
{
	if (!word)
		return false;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(word, memory_order_relaxed);
}

/*
 * The kernel promises no order of copying, so the same call reads the last bytes to a buffer of
 * ours.  They are stored after it has returned, and only if the payload was not withdrawn by then.
 */
static bool pull_foreign(struct cursor dst, struct cursor src, int32_t pid,
			 const _Atomic(uint32_t) *withdrawn)
{
	struct iovec local[RUNS_MAX + 1], remote[RUNS_MAX];
	unsigned char tail[TAIL_BYTES];

	while (dst.left && src.left) {
		unsigned long nlocal, nremote;
		size_t room, want, held;
		struct iovec *last;
		void *tail_addr;
		ssize_t got;

		if (dst.run->addr == RUN_DISCARD) {
			usermem_discard(&dst, &src);
			continue;
		}
		room = fill_iovecs(local, &nlocal, dst, SIZE_MAX);
		want = fill_iovecs(remote, &nremote, src, room);
		if (!nlocal ||
		    !want) /* the peer sends from RUN_DISCARD, which only a destination may be */
			return false;
		if (want < room)
			room = fill_iovecs(local, &nlocal, dst, want);
		last = &local[nlocal - 1];
		held = min_u64(last->iov_len, TAIL_BYTES);
		last->iov_len -= held;
		tail_addr = (char *)last->iov_base + last->iov_len;
		local[nlocal++] = (struct iovec){.iov_base = tail, .iov_len = held};

		if (is_withdrawn(withdrawn))
			return false;
		got = process_vm_readv(pid, local, nlocal, remote, nremote, 0);
		if (got <= 0 || is_withdrawn(withdrawn))
			return false;
		if ((size_t)got > room - held &&
		    !usermem_copy(tail_addr, tail, (size_t)got - (room - held)))
			return false;
		cursor_advance(&dst, (size_t)got);
		cursor_advance(&src, (size_t)got);
	}
	return !dst.left && !src.left;
}

bool usermem_pull(const struct run *dst, uint32_t ndst, const struct run *src, uint32_t nsrc,
		  int32_t pid)
{
	struct cursor to, from;

	/* most messages by far */
	if (likely(ndst == 1 && nsrc == 1 && !pid && dst->len == src->len &&
		   dst->addr != RUN_DISCARD))
		return usermem_copy(dst->addr, src->addr, src->len);
	to = cursor_start(dst, ndst);
	from = cursor_start(src, nsrc);
	return pid ? pull_foreign(to, from, pid, NULL) : pull_local(to, from);
}

bool usermem_pull_foreign(const struct run *dst, uint32_t ndst, const struct run *src,
			  uint32_t nsrc, int32_t pid, const _Atomic(uint32_t) *withdrawn)
{
	return pull_foreign(cursor_start(dst, ndst), cursor_start(src, nsrc), pid, withdrawn);
}

bool usermem_readable(const struct run *run, uint32_t n, int32_t pid)
{
	uint8_t scratch[4096];

	for (uint32_t i = 0; i < n; i++) {
		uint8_t *from = run[i].addr;
		size_t part;

		for (size_t left = run[i].len; left; left -= part, from += part) {
			struct run src = {from, part = min_u64(left, sizeof(scratch))};
			struct run dst = {scratch, part};

			if (!usermem_pull(&dst, 1, &src, 1, pid))
				return false;
		}
	}
	return true;
}
