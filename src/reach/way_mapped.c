// SPDX-License-Identifier: BSD-2-Clause
/* Through memory that both processes map.  The copy itself looks at the slot (usermem_checked.c).
 */
#include "reach/way.h"

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

enum way_verdict way_mapped(struct way_access *a)
{
	const struct run *local = a->local;
	size_t off = 0;

	for (a->done = 0; a->done < a->requests; a->done++) {
		const struct run *r = &a->remote[a->done];

		for (size_t at = 0; at < r->len;) {
			size_t n = min_u64(r->len - at, local->len - off);
			enum usermem_verdict v =
				copy_part(a, (char *)local->addr + off, (char *)r->addr + at, n);

			if (unlikely(v != USERMEM_DONE))
				return way_mapped_verdict(v);
			at += n;
			off += n;
			if (off == local->len) {
				local++;
				off = 0;
			}
		}
	}
	return WAY_DONE;
}
