// SPDX-License-Identifier: BSD-2-Clause
/* Through memory that both processes map.  The copy itself looks at the slot
 * (usermem_checked.c). */
#include "reach/way.h"

#include "reach/way_cursor.h"
#include "reach/way_whole.h"
#include "usermem/usermem.h"

static enum way_verdict way_mapped_verdict(enum usermem_verdict v)
{
	switch (v) {
	case USERMEM_DONE:
		return WAY_DONE;
	case USERMEM_REFUSED:
		return WAY_REVOKED;
	case USERMEM_FAULT:
		return WAY_FAULT;
	case USERMEM_INTERRUPTED:
		break;
	}
	return WAY_INTERRUPTED;
}

static enum usermem_verdict copy_part(const struct way_access *a, char *here, char *there, size_t n)
{
	return usermem_copy_checked(a->read ? here : there, a->read ? there : here, n, a->read,
				    &a->hold.slot->owner, a->hold.claim);
}

static enum way_verdict mapped_move(struct way_access *a)
{
	struct way_cursor local = {a->local, 0}, remote = {a->remote, 0};

	for (a->done = 0; a->done < a->requests; a->done = (uint32_t)(remote.run - a->remote)) {
		size_t n = way_cursors_part(&local, &remote);
		enum usermem_verdict v =
			copy_part(a, way_cursor_at(&local), way_cursor_at(&remote), n);

		if (unlikely(v != USERMEM_DONE))
			return way_mapped_verdict(v);
		way_cursors_advance(&local, &remote, n);
	}
	return WAY_DONE;
}

enum way_verdict way_mapped(struct way_access *a)
{
	if (unlikely(way_is_cut(a)))
		return way_whole(a, mapped_move);
	return mapped_move(a);
}
