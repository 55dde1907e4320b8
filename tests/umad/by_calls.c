// SPDX-License-Identifier: BSD-2-Clause
/* Files of ports by open, ioctl, write and read. */
#include "checklist.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define FILES 64

/* By descriptor, as these calls have made it. */
static bool new_layout[FILES];

int port_open(unsigned port)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/umad%u", port - 1);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	must(fd < FILES, "descriptor %d", fd);
	new_layout[fd] = false;
	return fd;
}

static int agent_by_first(int fd, const struct agent *a)
{
	struct ib_user_mad_reg_req r = {
		.id = UINT32_MAX,
		.qpn = (uint8_t)a->qpn,
		.mgmt_class = (uint8_t)a->class,
		.mgmt_class_version = (uint8_t)a->version,
		.oui = {(uint8_t)(a->oui >> 16), (uint8_t)(a->oui >> 8), (uint8_t)a->oui},
		.rmpp_version = (uint8_t)a->rmpp,
	};

	memcpy(r.method_mask, a->methods, sizeof(a->methods));
	if (ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &r) != 0)
		return -errno;
	return (int)r.id;
}

static int agent_by_second(int fd, const struct agent *a)
{
	struct ib_user_mad_reg_req2 r = {
		.id = UINT32_MAX,
		.qpn = a->qpn,
		.mgmt_class = (uint8_t)a->class,
		.mgmt_class_version = (uint8_t)a->version,
		.flags = a->flags,
		.oui = a->oui,
		.rmpp_version = (uint8_t)a->rmpp,
	};

	memcpy(r.method_mask, a->methods, sizeof(a->methods));
	if (ioctl(fd, IB_USER_MAD_REGISTER_AGENT2, &r) != 0)
		return -errno;
	return (int)r.id;
}

int port_register(int fd, const struct agent *a)
{
	return a->second ? agent_by_second(fd, a) : agent_by_first(fd, a);
}

int port_unregister(int fd, uint32_t id)
{
	return ioctl(fd, IB_USER_MAD_UNREGISTER_AGENT, &id) == 0 ? 0 : -errno;
}

int port_send(int fd, const struct letter *l)
{
	size_t header = port_header(fd);
	uint8_t *bytes = calloc(1, header + l->bytes);
	struct ib_user_mad_hdr *h = (struct ib_user_mad_hdr *)bytes;
	ssize_t n;

	must(bytes != NULL, "no memory");
	h->id = l->id;
	h->timeout_ms = l->timeout_ms;
	h->retries = l->retries;
	h->qpn = htonl(l->qpn);
	h->lid = htons(l->lid);
	h->sl = l->sl;
	h->path_bits = l->path_bits;
	h->grh_present = l->grh;
	h->gid_index = l->gid_index;
	h->hop_limit = l->hop_limit;
	h->traffic_class = l->traffic_class;
	memcpy(h->gid, l->gid, sizeof(h->gid));
	h->flow_label = htonl(l->flow_label);
	if (header == NEW_HEADER)
		h->pkey_index = l->pkey_index;
	memcpy(bytes + header, l->mad, l->bytes);
	n = write(fd, bytes, header + l->bytes);
	if (n < 0)
		n = -errno;
	else
		n = (size_t)n == header + l->bytes ? 0 : -EPROTO;
	free(bytes);
	return (int)n;
}

static void letter_from(struct letter *l, const uint8_t *bytes, size_t header)
{
	const struct ib_user_mad_hdr *h = (const struct ib_user_mad_hdr *)bytes;

	l->id = h->id;
	l->status = h->status;
	l->timeout_ms = h->timeout_ms;
	l->retries = h->retries;
	l->length = h->length;
	l->qpn = ntohl(h->qpn);
	l->lid = ntohs(h->lid);
	l->sl = h->sl;
	l->path_bits = h->path_bits;
	l->grh = h->grh_present;
	l->gid_index = h->gid_index;
	l->hop_limit = h->hop_limit;
	l->traffic_class = h->traffic_class;
	memcpy(l->gid, h->gid, sizeof(l->gid));
	l->flow_label = ntohl(h->flow_label);
	l->pkey_index = header == NEW_HEADER ? h->pkey_index : 0;
}

int port_receive(int fd, struct letter *l, size_t room)
{
	size_t header = port_header(fd);
	uint8_t *bytes = calloc(1, header + room);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int error = 0;
	ssize_t n;

	must(bytes != NULL, "no memory");
	must(poll(&p, 1, WAIT_MS) == 1, "nothing to read");
	n = read(fd, bytes, header + room);
	if (n < 0)
		error = -errno;
	memset(l, 0, sizeof(*l));
	letter_from(l, bytes, header);
	l->mad = malloc(room);
	must(l->mad != NULL, "no memory");
	memcpy(l->mad, bytes + header, room);
	l->bytes = n < 0 ? 0 : (size_t)n - header;
	free(bytes);
	return error;
}

bool port_waits(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

int port_close(int fd)
{
	return close(fd) == 0 ? 0 : -errno;
}

size_t port_header(int fd)
{
	return new_layout[fd] ? NEW_HEADER : OLD_HEADER;
}
