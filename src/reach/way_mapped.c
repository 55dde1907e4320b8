// SPDX-License-Identifier: BSD-2-Clause
/* Through memory that both processes map, and that stays when the target has ended.  The copy itself
 * looks whether the target has revoked, and whether it lives (usermem_checked.c). */
#include "reach/way.h"

#include "reach/way_cursor.h"
#include "reach/way_whole.h"
#include "usermem/usermem.h"

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

static inline struct rseq_check mapped_check(const struct access *hold, const struct alive *alive)
{
	return (struct rseq_check){
		.wide = hold->revocations,
		.wide_value = hold->seen,
		.word = alive_word(alive),
		.word_value = alive_now(alive),
	};
}

enum way_verdict way_mapped_one(const struct access *hold, const struct alive *alive, bool read,
				void *here, void *there, size_t n)
{
	const struct rseq_check check = mapped_check(hold, alive);
	enum usermem_verdict v;

	if (unlikely(!check.word_value))
		return WAY_CLOSED;
	v = usermem_copy_checked(read ? here : there, read ? there : here, n, read, &check);
	return likely(v == USERMEM_DONE) ? WAY_DONE : way_mapped_verdict(hold, v);
}

static enum way_verdict mapped_move(struct way_access *a)
{
	const struct rseq_check check = mapped_check(&a->hold, a->alive);
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
