// SPDX-License-Identifier: BSD-2-Clause
/* Files of ports by libibumad, which takes the new layout for all of them. */
#include "checklist.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/umad.h>
#include <stdlib.h>
#include <string.h>

int port_open(unsigned port)
{
	return umad_open_port("mlx5_0", (int)port);
}

static int agent_by_second(int fd, const struct agent *a)
{
	struct umad_reg_attr r = {
		.mgmt_class = (uint8_t)a->class,
		.mgmt_class_version = (uint8_t)a->version,
		.flags = a->flags,
		.oui = a->oui,
		.rmpp_version = (uint8_t)a->rmpp,
	};
	uint32_t id = UINT32_MAX;
	int error;

	memcpy(r.method_mask, a->methods, sizeof(a->methods));
	error = umad_register2(fd, &r, &id);
	return error ? -abs(error) : (int)id;
}

/* The library knows one version of the vendors' classes. */
int port_register(int fd, const struct agent *a)
{
	uint8_t oui[3] = {(uint8_t)(a->oui >> 16), (uint8_t)(a->oui >> 8), (uint8_t)a->oui};
	long methods[2];
	int id;

	if (a->second)
		return agent_by_second(fd, a);
	memcpy(methods, a->methods, sizeof(methods));
	errno = 0;
	if (a->class >= 0x30 && a->class <= 0x4f)
		id = umad_register_oui(fd, (int)a->class, (uint8_t)a->rmpp, oui, methods);
	else
		id = umad_register(fd, (int)a->class, (int)a->version, (uint8_t)a->rmpp, methods);
	return id < 0 && errno ? -errno : id;
}

int port_unregister(int fd, uint32_t id)
{
	errno = 0;
	return umad_unregister(fd, (int)id) == 0 ? 0 : -errno;
}

int port_send(int fd, const struct letter *l)
{
	uint8_t *umad = calloc(1, umad_size() + l->bytes);
	int n;

	must(umad != NULL, "no memory");
	umad_set_addr(umad, l->lid, (int)l->qpn, l->sl, 0);
	umad_get_mad_addr(umad)->path_bits = l->path_bits;
	if (l->grh) {
		ib_mad_addr_t to = {
			.hop_limit = l->hop_limit,
			.traffic_class = l->traffic_class,
			.flow_label = l->flow_label,
		};

		memcpy(to.gid, l->gid, sizeof(to.gid));
		umad_set_grh(umad, &to);
		umad_get_mad_addr(umad)->gid_index = l->gid_index; /* which it leaves out */
	}
	umad_set_pkey(umad, l->pkey_index);
	memcpy(umad_get_mad(umad), l->mad, l->bytes);
	errno = 0;
	n = umad_send(fd, (int)l->id, umad, (int)l->bytes, (int)l->timeout_ms, (int)l->retries);
	free(umad);
	return n == 0 ? 0 : -errno;
}

static void letter_from(struct letter *l, struct ib_user_mad *umad)
{
	const ib_mad_addr_t *from = umad_get_mad_addr(umad);

	l->id = umad->agent_id;
	l->status = (uint32_t)umad_status(umad);
	l->timeout_ms = umad->timeout_ms;
	l->retries = umad->retries;
	l->length = umad->length;
	l->qpn = ntohl(from->qpn);
	l->lid = ntohs(from->lid);
	l->sl = from->sl;
	l->path_bits = from->path_bits;
	l->grh = from->grh_present;
	l->gid_index = from->gid_index;
	l->hop_limit = from->hop_limit;
	l->traffic_class = from->traffic_class;
	memcpy(l->gid, from->gid, sizeof(l->gid));
	l->flow_label = ntohl(from->flow_label);
	l->pkey_index = (uint16_t)umad_get_pkey(umad);
}

int port_receive(int fd, struct letter *l, size_t room)
{
	struct ib_user_mad *umad = calloc(1, umad_size() + room);
	int length = (int)room, id;

	must(umad != NULL, "no memory");
	must(umad_poll(fd, WAIT_MS) == 0, "nothing to read");
	id = umad_recv(fd, umad, &length, 0);
	memset(l, 0, sizeof(*l));
	letter_from(l, umad);
	l->mad = malloc(room);
	must(l->mad != NULL, "no memory");
	memcpy(l->mad, umad_get_mad(umad), room);
	l->bytes = id < 0 ? 0 : (size_t)length;
	free(umad);
	return id < 0 ? id : 0;
}

bool port_waits(int fd)
{
	return umad_poll(fd, 0) == 0;
}

int port_close(int fd)
{
	return umad_close_port(fd);
}

size_t port_header(int fd)
{
	(void)fd;
	return umad_size();
}
