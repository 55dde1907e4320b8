// SPDX-License-Identifier: BSD-2-Clause
/* Reaches memory that both processes map, and that stays when the target has ended.  The copy
 * itself checks that the target has not revoked, and that it lives (usermem_checked.c). */
#include "reach/way.h"

#include "reach/way_internal.h"

static enum way_verdict way_mapped_verdict(const struct access *hold, enum usermem_verdict v)
{
	switch (v) {
	case USERMEM_DONE:
		return WAY_DONE;
	case USERMEM_REFUSED:
		return access_is_revoked(hold) ? WAY_REVOKED : WAY_CLOSED;
	case USERMEM_FAULT:
		return WAY_FAULT;
	case USERMEM_INTERRUPTED:
		break;
	}
	return WAY_INTERRUPTED;
}

static enum way_verdict mapped_move(struct way_access *a)
{
	const struct rseq_check check = way_mapped_check(&a->hold, a->alive);
	struct way_cursor local = {a->local, 0}, remote = {a->remote, 0};

	a->done = 0;
	if (unlikely(!check.word_value))
		return WAY_CLOSED;
	for (; a->done < a->requests; a->done = (uint32_t)(remote.run - a->remote)) {
		char *here = way_cursor_at(&local), *there = way_cursor_at(&remote);
		size_t n = way_cursors_part(&local, &remote);
		enum usermem_verdict v = usermem_copy_checked(
			a->read ? here : there, a->read ? there : here, n, a->read, &check);

		if (unlikely(v != USERMEM_DONE))
			return way_mapped_verdict(&a->hold, v);
		way_cursors_advance(&local, &remote, n);
	}
	return WAY_DONE;
}

enum way_verdict way_mapped(struct way_access *a)
{
	if (unlikely(a->nlocal > 1 && way_is_cut(a)))
		return way_whole(a, mapped_move);
	return mapped_move(a);
}
