// SPDX-License-Identifier: BSD-2-Clause
/* What the daemon answers: one function per message, found by a table. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "fabric/daemon/answer.h"
#include "fabric/daemon/descriptor.h"
#include "prm/model.h"

static void request_terminate(char *s, size_t size)
{
	s[size - 1] = '\0';
}

/*
 * A client that is stopped, by a debugger perhaps, does not acknowledge that peers have ended, so
 * their slots stay taken.  We leave it alone as long as there are other slots.
 */
static bool debtor_cut_off(struct server *s)
{
	uint32_t debts[REGISTRY_SLOTS];
	struct conn *worst = NULL;

	slot_debts(s->fabric, debts);
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++) {
		struct conn *c = s->by_slot[slot];

		if (c && debts[slot] && !conn_is_reading(c) &&
		    (!worst || debts[slot] > debts[worst->slot]))
			worst = c;
	}
	if (!worst)
		return false;
	log_warn("process %d does not read what it is told, and no slot is left: cut off",
		 (int)worst->pid);
	conn_end(s, worst);
	return true;
}

static int slot_for(struct server *s, uint32_t host, pid_t pid)
{
	int slot;

	do {
		slot = slot_take(s->fabric, host, pid);
	} while (slot == -ENOSPC && debtor_cut_off(s));
	return slot;
}

static struct attached segments_attached(const struct fabric *f)
{
	return (struct attached){{[HELLO_FD_REGISTRY] = f->registry_segment.fd,
				  [HELLO_FD_SUBNET] = f->subnet_segment.fd,
				  [HELLO_FD_SLOTS] = f->slots_segment.fd},
				 HELLO_FDS,
				 false};
}

/* Lists the ports of a host; returns how many. */
static uint32_t host_rows(const struct fabric *f, uint32_t host, uint32_t rows[SLOT_PORTS])
{
	uint32_t n = f->topology.hosts[host].nports;

	for (uint32_t i = 0; i < n; i++)
		rows[i] = f->hosts[host].first_port + i;
	return n;
}

static int answer_hello(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	struct msg_hello_reply reply = {.registry_bytes = f->registry_segment.bytes,
					.subnet_bytes = f->subnet_segment.bytes,
					.slots_bytes = f->slots_segment.bytes};
	int64_t h;
	int slot;

	if (c->slot != CONN_NO_SLOT)
		return -EISCONN;
	request_terminate(m->hello.host, sizeof(m->hello.host));
	h = fabric_find_host(f, m->hello.host);
	if (h < 0)
		return (int)h;
	slot = slot_for(s, (uint32_t)h, c->pid);
	if (slot < 0)
		return slot;
	c->slot = slot;
	s->by_slot[slot] = c;
	conn_watch_life(s, c);
	reply.slot = (uint16_t)slot;
	reply.nports = (uint16_t)host_rows(f, (uint32_t)h, reply.rows);
	m->hello_reply = reply;
	*a = segments_attached(f);
	log_info("slot %d: process %d on %s", slot, (int)c->pid, f->topology.hosts[h].name);
	return 0;
}

/* The connection itself is the lease.  Its owner looks at the host's device tree next. */
static int answer_lease(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	int64_t host;

	(void)c, (void)a;
	request_terminate(m->lease.host, sizeof(m->lease.host));
	host = fabric_called_host(s->fabric, m->lease.host);
	return host < 0 ? (int)host : tree_write(s->fabric, (uint32_t)host);
}

static int answer_numbers(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	int64_t first;

	(void)a;
	if (c->slot == CONN_NO_SLOT)
		return -ENOTCONN;
	first = slot_numbers(s->fabric, (uint32_t)c->slot, m->numbers.kind);
	if (first < 0)
		return (int)first;
	m->numbers_reply.first = (uint32_t)first;
	return 0;
}

/* The side with the lower slot is number 0 of the channel, the other 1. */
static struct msg_channel channel_as_seen(uint32_t from, uint32_t peer)
{
	return (struct msg_channel){
		.peer = peer, .side = from > peer, .bytes = FABRIC_CHANNEL_BYTES};
}

static int answer_channel(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	uint32_t peer = m->peer.peer;
	struct msg note = {0};
	bool fresh;
	int fd;

	if (c->slot == CONN_NO_SLOT)
		return -ENOTCONN;
	fd = slot_channel(s->fabric, (uint32_t)c->slot, peer, &fresh);
	if (fd < 0)
		return fd;
	if (fresh) {
		note.channel = channel_as_seen(peer, (uint32_t)c->slot);
		msg_prepare(&note, MSG_CHANNEL, MSG_NOTE, 0, 0);
		conn_send(s, s->by_slot[peer], &note, &fd, 1);
	}
	m->channel = channel_as_seen((uint32_t)c->slot, peer);
	*a = (struct attached){{fd}, 1, false};
	return 0;
}

static int answer_function(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	int fd;

	if (c->slot == CONN_NO_SLOT)
		return -ENOTCONN;
	fd = function_memory(s->fabric, s->fabric->rows[c->slot].host, m->index.index);
	if (fd < 0)
		return fd;
	c->functions = true;
	*a = (struct attached){{fd}, 1, false};
	return 0;
}

static int answer_attr(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct msg_attr_reply reply = {0};
	int n;

	(void)c, (void)a;
	request_terminate(m->attr.host, sizeof(m->attr.host));
	request_terminate(m->attr.path, sizeof(m->attr.path));
	n = attr_text_by_path(s->fabric, m->attr.host, m->attr.path, reply.text,
			      sizeof(reply.text));
	if (n < 0)
		return n;
	reply.length = (uint32_t)n;
	m->attr_reply = reply;
	return 0;
}

static int answer_info(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;

	(void)c;
	memset(&m->info_reply, 0, sizeof(m->info_reply));
	text_copy(m->info_reply.fabric, sizeof(m->info_reply.fabric), f->name);
	text_copy(m->info_reply.release, sizeof(m->info_reply.release), SOFTHCA_VERSION);
	text_copy(m->info_reply.model, sizeof(m->info_reply.model), models[f->model].name);
	m->info_reply.nhosts = f->topology.nhosts;
	m->info_reply.pid = getpid();
	m->info_reply.stay = s->stay;
	m->info_reply.connections = s->nconns;
	m->info_reply.registry_bytes = f->registry_segment.bytes;
	m->info_reply.subnet_bytes = f->subnet_segment.bytes;
	m->info_reply.slots_bytes = f->slots_segment.bytes;
	text_copy(m->info_reply.topology, sizeof(m->info_reply.topology), f->topology_path);
	text_copy(m->info_reply.link_types, sizeof(m->info_reply.link_types), f->link_types);
	text_copy(m->info_reply.netdevs, sizeof(m->info_reply.netdevs), f->netdevs);
	m->info_reply.external_sm = f->sm_mode == SM_EXTERNAL;
	m->info_reply.sm_priority = f->sm_priority;
	*a = segments_attached(f);
	return 0;
}

static int answer_host(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	const struct fabric *f = s->fabric;
	struct msg_host_reply reply = {0};
	int64_t host = m->host.index;

	(void)c, (void)a;
	request_terminate(m->host.name, sizeof(m->host.name));
	/* Only the name finds a switch. */
	if (m->host.name[0])
		host = fabric_called_host(f, m->host.name);
	else if (host >= f->topology.nhosts)
		return -ENOENT;
	if (host < 0)
		return (int)host;
	memcpy(reply.name, f->topology.hosts[host].name, sizeof(reply.name));
	reply.index = (uint32_t)host;
	reply.nports = host_rows(f, (uint32_t)host, reply.rows);
	m->host_reply = reply;
	return 0;
}

static int answer_slot(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	uint32_t index = m->index.index;
	const struct slot_row *row;

	(void)c, (void)a;
	if (index >= REGISTRY_SLOTS)
		return -ENOENT;
	row = &s->fabric->rows[index];
	m->slot_reply = (struct msg_slot_reply){
		.used = row->state == SLOT_TAKEN,
		.pid = row->pid,
		.host = row->host,
		.generation = row->generation,
	};
	return 0;
}

static int answer_counters(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	uint32_t row = m->index.index;

	(void)c, (void)a;
	if (row >= s->fabric->subnet.nports)
		return -ENOENT;
	for (uint32_t i = 0; i < FABRIC_COUNTERS; i++)
		m->counters_reply.total[i] =
			i == PORT_COUNTERS
				? 0
				: port_counter_total(s->fabric, row, (enum port_counter)i);
	return 0;
}

static int answer_sent(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	const struct fabric *f = s->fabric;
	uint32_t first = m->index.index;

	(void)c, (void)a;
	if (first >= f->subnet.nports)
		return -ENOENT;
	for (uint32_t i = 0; i < FABRIC_SENT_ROWS; i++)
		m->sent_reply.bytes[i] =
			i < f->subnet.nports - first
				? 4 * port_counter_total(f, first + i, PORT_XMIT_DATA)
				: 0;
	return 0;
}

static int answer_stay(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	(void)c, (void)m, (void)a;
	s->stay = true;
	return 0;
}

static int answer_shutdown(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	(void)c, (void)m, (void)a;
	s->leave = true;
	return 0;
}

/* Tells every process of the port's host; others see it in the subnet. */
static int answer_set_port(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	uint32_t row = m->set_port.row;
	int changed;

	(void)c, (void)a;
	changed = port_set_state(s->fabric, row, m->set_port.state);
	if (changed < 0)
		return changed;
	if (s->fabric->subnet.ports[row].ethernet)
		tie_settle_peer(s, row);
	if (!changed)
		return 0;
	/* A change of an InfiniBand link is told when it happens. */
	if (s->fabric->subnet.ports[row].ethernet)
		tie_tell(s, row);
	return 0;
}

static answer_fn *const answers[MSG_TYPES] = {
	[MSG_HELLO] = answer_hello,
	[MSG_LEASE] = answer_lease,
	[MSG_NUMBERS] = answer_numbers,
	[MSG_CHANNEL] = answer_channel,
	[MSG_FUNCTION] = answer_function,
	[MSG_ATTR] = answer_attr,
	[MSG_DESCRIBE] = answer_describe,
	[MSG_INFO] = answer_info,
	[MSG_HOST] = answer_host,
	[MSG_SLOT] = answer_slot,
	[MSG_COUNTERS] = answer_counters,
	[MSG_SENT] = answer_sent,
	[MSG_STAY] = answer_stay,
	[MSG_SHUTDOWN] = answer_shutdown,
	[MSG_SET_PORT] = answer_set_port,
	[MSG_LINK] = answer_link,
	[MSG_NODE] = answer_node,
	[MSG_IMPAIR] = answer_impair,
	[MSG_TIE] = answer_tie,
	[MSG_UNTIE] = answer_untie,
	[MSG_TIED] = answer_tied,
	[MSG_UMAD_OPEN] = answer_umad_open,
	[MSG_ISSM_OPEN] = answer_issm_open,
	[MSG_UMAD_REGISTER] = answer_umad_register,
	[MSG_UMAD_UNREGISTER] = answer_umad_unregister,
	[MSG_UMAD_PKEY] = answer_umad_pkey,
	[MSG_UMAD_FETCH] = answer_umad_fetch,
	[MSG_UMAD_IN_FLIGHT] = answer_umad_in_flight,
	[MSG_UMAD_ADOPT] = answer_umad_adopt,
};

/* A process may tell this of its own ports only. */
static void key_violated(struct server *s, const struct conn *c, const struct key_violation *v)
{
	if (conn_has_port(s, c, v->row))
		sma_key_violated(&s->fabric->sma, v);
}

static void peer_forgotten(struct server *s, struct conn *c, uint32_t peer)
{
	slot_acked(s->fabric, (uint32_t)c->slot, peer);
	if (c->ends_told)
		c->ends_told--;
	c->ends_told_ns = clock_ns();
}

void request_answer(struct server *s, struct conn *c, struct msg *m)
{
	struct attached attached = {.fds = {-1, -1, -1}};
	enum msg_type type = (enum msg_type)m->head.type;
	int status;

	if (type == MSG_GONE) { /* an acknowledgement: it has no reply */
		if (c->slot != CONN_NO_SLOT)
			peer_forgotten(s, c, m->peer.peer);
		return;
	}
	if (type == MSG_VIOLATED) {
		key_violated(s, c, &m->violated.violation);
		return;
	}
	if (type == MSG_GSI) {
		gsi_take(s, c, &m->gsi.datagram);
		return;
	}
	status = answers[type](s, c, m, &attached);
	if (status == ANSWER_LATER)
		return;
	msg_prepare(m, type, MSG_REPLY, m->head.seq, status);
	conn_send(s, c, m, attached.fds, status ? 0 : attached.n);
	for (unsigned i = 0; attached.given && i < attached.n; i++)
		descriptor_put(attached.fds[i]);
}
