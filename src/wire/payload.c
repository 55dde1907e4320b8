// SPDX-License-Identifier: BSD-2-Clause
/* See payload.h. */
#include "wire/payload.h"

#include <errno.h>
#include <sys/uio.h>

#include "usermem/usermem.h"
#include "wire/channel.h"

bool payload_pull(const struct run *dst, uint32_t ndst, const struct pkt *p)
{
	if (unlikely(p->source))
		return p->source->pull(p->source, 0, dst, ndst);
	if (p->foreign_pid)
		return usermem_pull_foreign(dst, ndst, p->runs, p->nruns, p->foreign_pid,
					    p->withdrawn);
	return usermem_pull(dst, ndst, p->runs, p->nruns, 0);
}

bool payload_refused(const struct pkt *p)
{
	struct iovec local, remote;
	uint8_t byte;

	if (!p->readable || !p->nruns)
		return false;
	local = (struct iovec){&byte, 1};
	remote = (struct iovec){p->runs[0].addr, 1};
	/* EFAULT and the like: it is about the memory. */
	if (process_vm_readv(p->foreign_pid, &local, 1, &remote, 1, 0) >= 0 ||
	    (errno != EPERM && errno != EACCES && errno != ENOSYS && errno != ESRCH))
		return false;
	/* Release: before the answer to this packet; partner: the acquire in hear_answer. */
	atomic_store_explicit(p->readable, READABLE_NO, memory_order_release);
	return true;
}

bool payload_gone(const struct pkt *p)
{
	return p->source ? p->source->gone : !usermem_readable(p->runs, p->nruns, p->foreign_pid);
}
