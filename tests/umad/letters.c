// SPDX-License-Identifier: BSD-2-Clause
/* MADs in letters, agents, and two ports that write to each other. */
#include "checklist.h"

#include <stdlib.h>
#include <string.h>

static void mad_put(uint8_t *mad, unsigned at, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes; i++)
		mad[at + i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static uint64_t mad_get(const uint8_t *mad, unsigned at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | mad[at + i];
	return value;
}

struct agent agent_of(uint32_t class)
{
	return (struct agent){
		.qpn = class != CLASS_DIRECTED,
		.class = class,
		.version = 1,
		.oui = class == CLASS_VENDOR ? OUI_OF_OURS : 0,
	};
}

struct agent server_of(uint32_t class, uint8_t method)
{
	struct agent a = agent_of(class);

	a.methods[method / 64] = 1ull << method % 64;
	return a;
}

uint32_t port_agent(int fd, struct agent a)
{
	int id = port_register(fd, &a);

	must(id >= 0, "class %#x: %s", a.class, strerror(-id));
	return (uint32_t)id;
}

int port_file(unsigned port)
{
	int fd = port_open(port);

	must(fd >= 0, "port %u: %s", port, strerror(-fd));
	return fd;
}

struct letter letter_to(uint16_t lid, uint32_t class, uint8_t method, uint16_t attribute,
			uint64_t tid)
{
	struct letter l = {.lid = lid, .qpn = 1, .bytes = MAD_BYTES};

	l.mad = calloc(1, MAD_BYTES);
	must(l.mad != NULL, "no memory");
	l.mad[0] = 1;
	l.mad[1] = (uint8_t) class;
	l.mad[2] = 1;
	l.mad[3] = method;
	mad_put(l.mad, 8, 8, tid);
	mad_put(l.mad, 16, 2, attribute);
	if (class == CLASS_VENDOR)
		mad_put(l.mad, 37, 3, OUI_OF_OURS);
	return l;
}

struct letter letter_to_self(uint32_t id, uint64_t tid)
{
	struct letter l = letter_to(0xffff, CLASS_DIRECTED, METHOD_GET, ATTRIBUTE_NODE, tid);

	l.id = id;
	l.qpn = 0;
	l.timeout_ms = WAIT_MS;
	mad_put(l.mad, 32, 4, 0xffffffff);
	return l;
}

/* A mixture that repeats after no power of two. */
static uint8_t data_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

struct letter letter_with_data(uint16_t lid, uint64_t tid, size_t data)
{
	struct letter l = letter_to(lid, CLASS_VENDOR, METHOD_SEND, 0, tid);

	l.bytes = VENDOR_DATA + data;
	if (l.bytes > MAD_BYTES)
		l.mad = realloc(l.mad, l.bytes);
	must(l.mad != NULL, "no memory");
	l.mad[24] = 1; /* RMPP's version, DATA, active */
	l.mad[25] = 1;
	l.mad[26] = 1;
	for (size_t i = 0; i < data; i++)
		l.mad[VENDOR_DATA + i] = data_at(i);
	return l;
}

bool letter_has_data(const struct letter *l, size_t data)
{
	if (l->bytes != VENDOR_DATA + data)
		return false;
	for (size_t i = 0; i < data; i++)
		if (l->mad[VENDOR_DATA + i] != data_at(i))
			return false;
	return true;
}

void letter_free(struct letter *l)
{
	free(l->mad);
	l->mad = NULL;
}

uint64_t letter_tid(const struct letter *l)
{
	return mad_get(l->mad, 8, 8);
}

uint16_t letter_status(const struct letter *l)
{
	return (uint16_t)mad_get(l->mad, 4, 2);
}

void letter_is_sent(int fd, const struct letter *l)
{
	int error = port_send(fd, l);

	must(error == 0, "sending: %s", strerror(-error));
}

struct letter letter_received(int fd)
{
	struct letter l;
	int error = port_receive(fd, &l, MAD_BYTES);

	must(error == 0, "receiving: %s", strerror(-error));
	return l;
}

struct pair pair_open(uint32_t rmpp)
{
	struct agent client = agent_of(CLASS_VENDOR), server = server_of(CLASS_VENDOR, METHOD_SEND);
	struct pair p = {
		.client = port_file(1),
		.server = port_file(2),
		.client_lid = lid_of(1),
		.server_lid = lid_of(2),
	};

	client.rmpp = rmpp;
	server.rmpp = rmpp;
	server.methods[0] |= 1ull << METHOD_GET;
	p.client_id = port_agent(p.client, client);
	p.server_id = port_agent(p.server, server);
	must(p.client_lid && p.server_lid && p.client_lid != p.server_lid, "LIDs %u and %u",
	     p.client_lid, p.server_lid);
	return p;
}

void pair_answer(const struct pair *p, const struct letter *request)
{
	struct letter answer = *request;

	answer.id = p->server_id;
	answer.mad[3] |= RESPONSE_BIT;
	letter_is_sent(p->server, &answer);
}

void pair_close(struct pair *p)
{
	must(port_close(p->client) == 0 && port_close(p->server) == 0, "close");
}
