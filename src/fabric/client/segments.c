// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/client/segments.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory_file.h"

#define SLOTS_BYTES (REGISTRY_SLOTS * sizeof(struct slot))

static int segment_map_at(int fd, uint64_t offset, size_t bytes, int protection, void *out)
{
	/* Without a file the mapping would be private memory. */
	void *p = fd < 0 ? NULL : sparse_map(bytes, protection, fd, offset);

	if (fd < 0)
		return -EBADF;
	if (!p)
		return -errno;
	memcpy(out, &p, sizeof(p));
	return 0;
}

static int segment_map(int fd, size_t bytes, int protection, void *out)
{
	return segment_map_at(fd, 0, bytes, protection, out);
}

static int subnet_map(struct client_segments *s, size_t bytes, int fd)
{
	void *p = NULL;
	int ret = segment_map(fd, bytes, PROT_READ, &p);

	if (ret)
		return ret;
	ret = subnet_attach(&s->subnet, p, bytes);
	if (ret) {
		munmap(p, bytes);
		return ret;
	}
	s->subnet_bytes = bytes;
	return 0;
}

/* Maps all slots, and of the traffic behind them only our own.  A slot past the last one: we have
 * none, and only look. */
static int slots_map(struct client_segments *s, uint16_t slot, int fd)
{
	const bool looks = slot >= REGISTRY_SLOTS;
	int ret =
		segment_map(fd, SLOTS_BYTES, looks ? PROT_READ : PROT_READ | PROT_WRITE, &s->slots);

	if (ret || looks)
		return ret;
	return segment_map_at(fd, registry_traffic_offset(slot), sizeof(*s->traffic),
			      PROT_READ | PROT_WRITE, &s->traffic);
}

static int segments_take(struct client_segments *s, const struct msg_hello_reply *r, const int *fds)
{
	int ret;

	if (r->nports > SLOT_PORTS || r->slot > REGISTRY_SLOTS ||
	    r->slots_bytes < registry_traffic_offset(REGISTRY_SLOTS) ||
	    r->registry_bytes != sizeof(struct registry))
		return -EBADMSG;
	ret = segment_map(fds[HELLO_FD_REGISTRY], sizeof(*s->registry), PROT_READ, &s->registry);
	if (ret)
		return ret;
	if (s->registry->magic != REGISTRY_MAGIC || s->registry->version != REGISTRY_VERSION)
		return -EPROTO;
	ret = subnet_map(s, r->subnet_bytes, fds[HELLO_FD_SUBNET]);
	if (ret)
		return ret;
	ret = slots_map(s, r->slot, fds[HELLO_FD_SLOTS]);
	if (ret)
		return ret;
	s->slot = r->slot;
	s->nports = r->nports;
	for (uint32_t i = 0; i < s->nports; i++) {
		if (r->rows[i] >= s->subnet.nports)
			return -EBADMSG;
		s->rows[i] = r->rows[i];
	}
	return 0;
}

void client_segments_unmap(struct client_segments *s)
{
	if (s->traffic)
		munmap(s->traffic, sizeof(*s->traffic));
	if (s->slots)
		munmap(s->slots, SLOTS_BYTES);
	if (s->subnet.head)
		munmap(s->subnet.head, s->subnet_bytes);
	if (s->registry)
		munmap((void *)(uintptr_t)s->registry, sizeof(*s->registry));
	*s = (struct client_segments){0};
}

static int segments_map(struct client_segments *s, const struct msg_hello_reply *r,
			const int fds[MSG_MAX_FDS])
{
	int ret = segments_take(s, r, fds);

	if (ret)
		client_segments_unmap(s);
	return ret;
}

int client_segments_map(struct client_segments *s, const struct msg_hello_reply *r,
			const int fds[MSG_MAX_FDS])
{
	return r->slot < REGISTRY_SLOTS ? segments_map(s, r, fds) : -EBADMSG;
}

int client_segments_map_to_look(struct client_segments *s, const struct msg_info_reply *info,
				const struct msg_host_reply *host, const int fds[MSG_MAX_FDS])
{
	struct msg_hello_reply r = {
		.slot = REGISTRY_SLOTS,
		.nports = (uint16_t)host->nports,
		.registry_bytes = info->registry_bytes,
		.subnet_bytes = info->subnet_bytes,
		.slots_bytes = info->slots_bytes,
	};

	if (host->nports > SLOT_PORTS)
		return -EBADMSG;
	memcpy(r.rows, host->rows, sizeof(r.rows));
	return segments_map(s, &r, fds);
}
