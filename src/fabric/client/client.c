// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process's end of its connection: opening, closing, and requests to the daemon.  When the
 * connection has ended, calls fail at once.
 */
#include "fabric/client/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/thread.h"
#include "base/log.h"
#include "base/text.h"
#include "base/trace.h"
#include "fabric/client/connection.h"
#include "fabric/client/control.h"
#include "fabric/client/environment.h"
#include "fabric/client/link.h"

const struct registry *fabric_registry(const struct fabric_client *c)
{
	return c->segments.registry;
}

const struct subnet *fabric_subnet(const struct fabric_client *c)
{
	return &c->segments.subnet;
}

struct slot *fabric_slots(const struct fabric_client *c)
{
	return c->segments.slots;
}

struct traffic *fabric_traffic(const struct fabric_client *c)
{
	return c->segments.traffic;
}

uint16_t fabric_slot(const struct fabric_client *c)
{
	return c->segments.slot;
}

uint32_t fabric_host_ports(const struct fabric_client *c, uint32_t *rows, uint32_t max)
{
	for (uint32_t i = 0; i < c->segments.nports && i < max; i++)
		rows[i] = c->segments.rows[i];
	return c->segments.nports;
}

int64_t fabric_number_chunk(struct fabric_client *c, enum number_kind kind)
{
	struct msg m = {.numbers.kind = kind};
	int fds[MSG_MAX_FDS];
	int ret = client_call(c, &m, MSG_NUMBERS, fds);

	return ret ? ret : (int64_t)m.numbers_reply.first;
}

int fabric_open_channel(struct fabric_client *c, uint16_t peer, int *fd, size_t *bytes, int *side)
{
	struct msg m = {.peer.peer = peer};
	int fds[MSG_MAX_FDS];
	int ret = client_call(c, &m, MSG_CHANNEL, fds);

	if (ret)
		return ret;
	*fd = fds[0];
	*bytes = m.channel.bytes;
	*side = (int)m.channel.side;
	return 0;
}

int fabric_open_function(struct fabric_client *c, uint32_t device, int *fd)
{
	struct msg m = {.index.index = device};
	int fds[MSG_MAX_FDS];
	int ret = client_call(c, &m, MSG_FUNCTION, fds);

	if (!ret)
		*fd = fds[0];
	return ret;
}

void fabric_tell_violation(struct fabric_client *c, const struct key_violation *v)
{
	struct msg m = {.violated.violation = *v};

	no_cancellation();
	msg_prepare(&m, MSG_VIOLATED, MSG_REQUEST, 1, 0);
	if (client_send(c, &m, MSG_DONTWAIT))
		log_debug("cannot tell of a bad key");
}

bool fabric_send_gsi(struct fabric_client *c, const struct gsi_datagram *d)
{
	struct msg m = {.gsi.datagram = *d};

	no_cancellation();
	msg_prepare(&m, MSG_GSI, MSG_REQUEST, 1, 0);
	return !client_send(c, &m, MSG_DONTWAIT);
}

int fabric_carry(struct fabric_client *c, uint32_t row, bool up, const char *text,
		 const char *warning)
{
	struct msg m = {.tie = {.row = row, .peer = SUBNET_NONE, .up = up}};
	int fds[MSG_MAX_FDS];

	text_copy(m.tie.text, sizeof(m.tie.text), text);
	text_copy(m.tie.warning, sizeof(m.tie.warning), warning);
	return client_call(c, &m, MSG_TIE, fds);
}

int fabric_client_open_in(const struct fabric_environment *env, const struct fabric_client_ops *ops,
			  struct fabric_client **out)
{
	struct timeval forever = {0};
	struct fabric_client *c;
	struct msg m = {0};
	int fds[MSG_MAX_FDS];
	int ret;

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->ops = *ops;
	memcpy(c->dir, env->dir, sizeof(c->dir));
	memcpy(m.hello.host, env->host, sizeof(m.hello.host));
	ret = link_open(env->dir, env->daemon[0] ? env->daemon : NULL, &m, MSG_HELLO, fds);
	if (ret < 0)
		goto free_client;
	c->sock = hidden_keep(ret);
	setsockopt(c->sock.fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	ret = client_segments_map(&c->segments, &m.hello_reply, fds);
	msg_close_fds(fds);
	if (ret)
		goto close_sock;

	client_calls_open(c);
	ret = client_control_start(c);
	if (ret)
		goto close_calls;
	trace(fabric, joined, c->segments.slot, c->segments.nports);
	*out = c;
	return 0;

close_calls:
	client_calls_close(c);
	client_segments_unmap(&c->segments);
close_sock:
	hidden_close(&c->sock);
free_client:
	free(c);
	return ret;
}

int fabric_client_open(const struct fabric_client_ops *ops, struct fabric_client **out)
{
	const struct fabric_environment *env = fabric_environment();

	return env ? fabric_client_open_in(env, ops, out) : -ENODEV;
}

void fabric_client_close(struct fabric_client *c)
{
	client_control_stop(c);
	client_segments_unmap(&c->segments);
	client_calls_close(c);
	free(c);
}
