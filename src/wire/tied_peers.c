// SPDX-License-Identifier: BSD-2-Clause
/* See tied_peers.h. */
#include "wire/tied_peers.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exposure/segment.h"
#include "wire/process.h"
#include "wire/route.h"

const struct tied_peers *tied_peers_map(const struct slot *carrier)
{
	int fd = segment_file_open(carrier->pid, atomic_load(&carrier->peers_fd_plus_1) - 1,
				   atomic_load(&carrier->peers_id));
	void *p = MAP_FAILED;
	int seals;

	if (fd < 0)
		return NULL;
	/* The seal says that the file keeps its size, so plain instructions may read all of it. */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals >= 0 && seals & F_SEAL_SHRINK &&
	    lseek(fd, 0, SEEK_END) == (off_t)sizeof(struct tied_peers))
		p = mmap(NULL, sizeof(struct tied_peers), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

void tied_peers_unmap(const struct tied_peers *p)
{
	if (p)
		munmap((void *)(uintptr_t)p, sizeof(*p));
}

const struct tied_peer *tied_peer_find(const struct tied_peers *p, const union ib_gid *gid)
{
	uint32_t n = atomic_load_explicit(&p->n, memory_order_acquire);

	for (uint32_t i = 0; i < n && i < TIED_PEERS; i++)
		if (!memcmp(&p->peer[i].gid, gid, sizeof(*gid)))
			return &p->peer[i];
	return NULL;
}

bool wire_tied_peer(const struct wire *w, const union ib_gid *gid, struct tied_peer *out)
{
	uint32_t carrier = route_carrier(w);
	const struct tied_peers *p =
		carrier ? tied_peers_map(&w->process->attr.slots[carrier - 1]) : NULL;
	const struct tied_peer *found = p ? tied_peer_find(p, gid) : NULL;

	if (found)
		memcpy(out, found, sizeof(*out));
	tied_peers_unmap(p);
	return found;
}
