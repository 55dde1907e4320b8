/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between run lists.  The single touches below them are made per architecture
 * (usermem_x86_64.c, usermem_portable.c).
 */
#include "base/run_cursor.h"
#include "usermem/usermem.h"

static bool pull_lists(struct run_cursor dst, struct run_cursor src)
{
	while (dst.left && src.left) {
		size_t n = run_cursors_part(&dst, &src);

		if (dst.run->addr != RUN_DISCARD &&
		    !usermem_copy(run_cursor_at(&dst), run_cursor_at(&src), n))
			return false;
		run_cursor_advance(&dst, n);
		run_cursor_advance(&src, n);
	}
	return !dst.left && !src.left;
}

bool usermem_pull(const struct run *dst, uint32_t ndst, const struct run *src, uint32_t nsrc)
{
	/* most messages by far */
	if (likely(ndst == 1 && nsrc == 1 && dst->len == src->len && dst->addr != RUN_DISCARD))
		return usermem_copy(dst->addr, src->addr, src->len);
	return pull_lists(run_cursor_start(dst, ndst), run_cursor_start(src, nsrc));
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
