// SPDX-License-Identifier: BSD-2-Clause
/* See payload.h. */
#include "wire/payload.h"

#include "usermem/usermem.h"

bool payload_pull(const struct run *dst, uint32_t ndst, const struct pkt *p)
{
	if (unlikely(p->source))
		return p->source->pull(p->source, 0, dst, ndst);
	if (p->foreign_pid)
		return usermem_pull_foreign(dst, ndst, p->runs, p->nruns, p->foreign_pid,
					    p->withdrawn);
	return usermem_pull(dst, ndst, p->runs, p->nruns, 0);
}

bool payload_gone(const struct pkt *p)
{
	return p->source ? p->source->gone : !usermem_readable(p->runs, p->nruns, p->foreign_pid);
}
