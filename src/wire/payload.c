/* SPDX-License-Identifier: BSD-2-Clause */
/* See payload.h. */
#include "wire/payload.h"

#include "reach/way.h"
#include "usermem/usermem.h"
#include "wire/channel.h"

/* Copies from another process. */
static enum way_verdict payload_fetch(const struct run *dst, uint32_t ndst, const struct pkt *p,
				      const struct run *src, uint32_t nsrc)
{
	struct pkt_foreign *f = p->foreign;
	enum way_verdict v = WAY_CLOSED;

	if (likely(f->process))
		v = way_pull(f->process, dst, ndst, src, nsrc, p->withdrawn);
	f->refused = v == WAY_CLOSED || v == WAY_INTERRUPTED;
	return v;
}

bool payload_pull_runs(const struct run *dst, uint32_t ndst, const struct pkt *p,
		       const struct run *src, uint32_t nsrc)
{
	if (p->foreign)
		return payload_fetch(dst, ndst, p, src, nsrc) == WAY_DONE;
	/* Keeps whole the words of the memory that the request targets, not those of the
	 * requester's. */
	return (pkt_props(p)->response ? usermem_pull_answer : usermem_pull)(dst, ndst, src, nsrc);
}

bool payload_pull(const struct run *dst, uint32_t ndst, const struct pkt *p)
{
	if (unlikely(p->source))
		return p->source->pull(p->source, 0, dst, ndst);
	return payload_pull_runs(dst, ndst, p, p->runs, p->nruns);
}

bool payload_put(const struct pkt *request, uint64_t off, const struct run *src, uint32_t nsrc)
{
	const struct pkt_foreign *f = request->foreign;

	return f && f->process &&
	       way_push(f->process, request->runs, request->nruns, off, src, nsrc,
			request->withdrawn) == WAY_DONE;
}

bool payload_refused(const struct pkt *p)
{
	if (!p->foreign || !p->foreign->refused)
		return false;
	/* Release: the word changes before we answer this packet; partner: the acquire in
	 * hear_answer. */
	if (p->foreign->readable)
		atomic_store_explicit(p->foreign->readable, READABLE_NO, memory_order_release);
	return true;
}

static bool foreign_readable(const struct pkt *p)
{
	uint8_t scratch[4096];

	for (uint32_t i = 0; i < p->nruns; i++) {
		uint8_t *from = p->runs[i].addr;
		size_t part;

		for (size_t left = p->runs[i].len; left; left -= part, from += part) {
			struct run src = {from, part = min_u64(left, sizeof(scratch))};
			struct run dst = {scratch, part};

			if (payload_fetch(&dst, 1, p, &src, 1) == WAY_FAULT)
				return false;
		}
	}
	return true;
}

bool payload_gone(const struct pkt *p)
{
	if (p->source)
		return p->source->gone;
	return p->foreign ? !foreign_readable(p) : !usermem_readable(p->runs, p->nruns);
}
