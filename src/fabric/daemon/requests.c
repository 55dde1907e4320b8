// SPDX-License-Identifier: BSD-2-Clause
/* What the daemon answers: one function per message, found by a table. */
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "fabric/daemon/server.h"
#include "fabric/daemon/descriptor.h"
#include "fabric/daemon/mad/impair.h"
#include "prm/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Requests of programs about their umad and issm files.  A token names a file, because the program
 * that asks need not be the one that opened it. */

/* Returns the row of the host's fourth port for "umad3", or SUBNET_NONE. */
static uint32_t row_of_name(const struct fabric *f, struct msg_umad_open *r, const char *prefix)
{
	unsigned long number;
	const char *digits = r->name + strlen(prefix);
	int64_t host;
	char *end;

	r->host[sizeof(r->host) - 1] = '\0';
	r->name[sizeof(r->name) - 1] = '\0';
	if (strncmp(r->name, prefix, strlen(prefix)) != 0 || *digits < '0' || *digits > '9')
		return SUBNET_NONE;
	number = strtoul(digits, &end, 10);
	host = fabric_find_host(f, r->host);
	if (host < 0 || *end || number >= f->topology.hosts[host].nports)
		return SUBNET_NONE;
	return f->hosts[host].first_port + (uint32_t)number;
}

static int answer_umad_open(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	uint32_t row = row_of_name(f, &m->umad_open, "umad");
	uint64_t token;
	int ret;

	(void)c;
	if (row == SUBNET_NONE)
		return -ENOENT;
	ret = umad_file_open(&f->umad, row, &token, a->fds);
	if (ret)
		return ret;
	m->umad_open_reply.token = token;
	a->n = UMAD_OPEN_FDS;
	a->given = true;
	return 0;
}

static struct umad_file *file_of(struct server *s, uint64_t token)
{
	return umad_file_find(&s->fabric->umad, token);
}

static int answer_umad_register(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	const struct msg_umad_register r = m->umad_register;
	struct umad_file *f = file_of(s, r.token);
	uint32_t id;
	int ret;

	(void)c, (void)a;
	if (!f)
		return -ESTALE;
	ret = umad_file_register(f, &r, &id);
	if (!ret)
		m->umad_agent = (struct msg_umad_agent){.token = r.token, .id = id};
	return ret;
}

static int answer_umad_unregister(struct server *s, struct conn *c, struct msg *m,
				  struct attached *a)
{
	struct umad_file *f = file_of(s, m->umad_agent.token);

	(void)c, (void)a;
	return f ? umad_file_unregister(f, m->umad_agent.id, m->umad_agent.undo != 0) : -ESTALE;
}

static int answer_umad_pkey(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct umad_file *f = file_of(s, m->umad_file.token);

	(void)c, (void)a;
	return f ? umad_file_pkey(f) : -ESTALE;
}

static int answer_umad_fetch(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	const struct msg_umad_fetch r = m->umad_fetch;
	struct umad_file *f = file_of(s, r.token);
	int ret;

	(void)c;
	if (!f)
		return -ESTALE;
	ret = umad_file_fetch(f, &r, &m->umad_fetch_reply, &a->fds[0]);
	if (ret)
		return ret;
	a->n = 1;
	a->given = true;
	return 0;
}

static int answer_umad_in_flight(struct server *s, struct conn *c, struct msg *m,
				 struct attached *a)
{
	struct umad_file *f = file_of(s, m->umad_in_flight.token);

	(void)c, (void)a;
	return f ? umad_file_in_flight(f, &m->umad_in_flight) : -ESTALE;
}

/* Adopts a file of which the program has only the descriptor, by execve or from another program. */
static int answer_umad_adopt(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	const struct umad_file *file = umad_file_find_inode(&f->umad, m->umad_adopt.inode);
	uint64_t token;
	uint32_t row;
	int ret;

	(void)c;
	if (!file)
		return -ENOENT;
	ret = umad_file_adopt(file, &token, &row, &a->fds[0]);
	if (ret)
		return ret;
	m->umad_adopt_reply = (struct msg_umad_adopt_reply){
		.token = token,
		.number = row - f->hosts[subnet_node_of(&f->subnet, row)->host].first_port,
	};
	a->n = 1;
	a->given = true;
	return 0;
}

/* ---- issm: the reply comes when the token does ---- */

struct issm_request {
	struct issm_waiter waiter;
	struct server *server;
	struct conn *conn;
	uint32_t seq;
};

static void request_free(struct issm_request *r)
{
	r->conn->ended = NULL;
	r->conn->waiting = NULL;
	free(r);
}

static void issm_granted(struct issm_waiter *w, int fd)
{
	struct issm_request *r = container_of(w, struct issm_request, waiter);
	struct msg m = {0};

	msg_prepare(&m, MSG_ISSM_OPEN, MSG_REPLY, r->seq, fd < 0 ? fd : 0);
	conn_send(r->server, r->conn, &m, &fd, fd >= 0);
	if (fd >= 0)
		descriptor_put(fd);
	request_free(r);
}

/* The client that waited has gone. */
static void issm_conn_ended(struct conn *c)
{
	struct issm_request *r = c->waiting;

	issm_wait_end(&r->waiter);
	request_free(r);
}

static int issm_wait_for(struct server *s, struct conn *c, uint32_t row, uint32_t seq)
{
	struct issm_request *r;

	if (c->waiting)
		return -EALREADY;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct issm_request){.waiter = {.row = row, .granted = issm_granted},
				   .server = s,
				   .conn = c,
				   .seq = seq};
	c->waiting = r;
	c->ended = issm_conn_ended;
	issm_wait(&s->fabric->umad, &r->waiter);
	return ANSWER_LATER;
}

/* Opens an issm file; ports of Ethernet have no subnet manager, and so none. */
static int answer_issm_open(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	uint32_t row = row_of_name(f, &m->umad_open, "issm");
	int ret;

	if (row == SUBNET_NONE || f->subnet.ports[row].ethernet)
		return -ENOENT;
	ret = issm_open(&f->umad, row, &a->fds[0]);
	if (ret == -EAGAIN && m->umad_open.wait)
		return issm_wait_for(s, c, row, m->head.seq);
	if (ret)
		return ret;
	a->n = 1;
	a->given = true;
	return 0;
}

/* What users do to the subnet's hardware: they pull cables, take nodes out and rename them. */

/* Finds the row of a node's port that has a cable. */
static int port_find(const struct fabric *f, const char *name, uint32_t port, uint32_t *row)
{
	int64_t node = fabric_called_node(f, name);

	if (node < 0)
		return (int)node;
	*row = subnet_node_port(&f->subnet.nodes[node], port);
	if (*row == SUBNET_NONE)
		return -ENXIO;
	return f->net.ports[*row].cable == SUBNET_NONE ? -ENOLINK : 0;
}

static int answer_link(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	struct msg_link link = m->link;
	uint32_t row;
	int ret;

	(void)c, (void)a;
	link.node[sizeof(link.node) - 1] = '\0';
	ret = port_find(f, link.node, link.port, &row);
	if (!ret)
		port_pull(f, row, !link.up);
	return ret;
}

static int answer_node(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct msg_node node = m->node;
	int64_t row;

	(void)c, (void)a;
	node.node[sizeof(node.node) - 1] = '\0';
	row = fabric_called_node(s->fabric, node.node);
	if (row < 0)
		return (int)row;
	net_remove(&s->fabric->net, (uint32_t)row, !node.there);
	manage_links(s->fabric);
	return 0;
}

static int answer_describe(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	struct attr attr;
	uint32_t row;
	int64_t host;
	int ret;

	(void)c;
	m->attr.host[sizeof(m->attr.host) - 1] = '\0';
	m->attr.path[sizeof(m->attr.path) - 1] = '\0';
	host = fabric_find_host(f, m->attr.host);
	if (host < 0 || !attr_parse(m->attr.path, &attr) || attr.group != GROUP_DEVICE)
		return -ENOENT;
	row = fabric_find_attr(f, (uint32_t)host, &attr);
	if (row == SUBNET_NONE)
		return -ENOENT;
	ret = description_open(f, row, &a->fds[0]);
	if (ret)
		return ret;
	a->n = 1;
	a->given = true;
	return 0;
}

/* Begins anew with another seed; packets that are late at that time are lost. */
static int impair_begin(struct mad_fabric *mad, uint32_t seed)
{
	struct impair *fresh;

	if (mad->impair && !seed)
		return 0;
	fresh = impair_open(seed);
	if (!fresh)
		return -ENOMEM;
	impair_close(mad->impair);
	mad->impair = fresh;
	return 0;
}

/* row: an end of a link, or SUBNET_NONE: all links. */
static int impair_mads(struct fabric *f, const struct fault_rule *rule, uint32_t row)
{
	const struct impair_link how = {
		.loss_ppm = rule->loss_ppm,
		.duplicate_ppm = rule->duplicate_ppm,
		.delay_us = rule->delay_us,
		.jitter_us = rule->jitter_us,
	};
	int ret = impair_begin(&f->mad, rule->seed);

	if (!ret)
		ret = impair_set(f->mad.impair, row, &how);
	if (!ret && row != SUBNET_NONE)
		ret = impair_set(f->mad.impair, f->net.ports[row].cable, &how);
	return ret;
}

/* Tells all processes that the rule of that row concerns objects. */
static void fault_note(struct server *s, uint32_t row)
{
	struct msg note = {.index.index = row};

	msg_prepare(&note, MSG_FAULT, MSG_NOTE, 0, 0);
	for (uint32_t i = 0; i < REGISTRY_SLOTS; i++)
		if (s->by_slot[i])
			conn_send(s, s->by_slot[i], &note, NULL, 0);
}

static int answer_impair(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	struct msg_impair want = m->impair;
	struct msg_impair_reply where = {0};
	uint32_t row = SUBNET_NONE;
	int ret = 0;

	(void)a;
	want.node[sizeof(want.node) - 1] = '\0';
	if (want.node[0])
		ret = port_find(f, want.node, want.port, &row);
	if (!ret && want.what & IMPAIR_MADS)
		ret = impair_mads(f, &want.rule, row);
	if (!ret && want.what & IMPAIR_DATA) {
		if (want.what & IMPAIR_CLEAR)
			fault_clear(f, want.rule.kind == FAULT_PACKETS);
		want.rule.link_row_plus_1 = row + 1; /* SUBNET_NONE becomes 0 */
		ret = fault_set(f, &want.rule, want.what & IMPAIR_MINE ? c : NULL, &where);
		if (!ret && where.set && want.rule.kind == FAULT_OBJECTS)
			fault_note(s, where.row);
	}
	m->impair_reply = where;
	return ret;
}

static int answer_fault(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	const struct fabric *f = s->fabric;
	uint32_t row = m->index.index;

	(void)c, (void)a;
	if (row >= FAULT_RULES)
		return -ENOENT;
	m->fault_reply.rule = f->registry->faults.rule[row];
	fault_count(f, row, &m->fault_reply.seen, &m->fault_reply.done);
	return 0;
}

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

/* A file of rdma_cm: its commands come by any connection of the program's. */
static int answer_cm_open(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	uint64_t token;
	int64_t host;
	int ret;

	request_terminate(m->cm_open.host, sizeof(m->cm_open.host));
	host = fabric_find_host(f, m->cm_open.host);
	if (host < 0)
		return (int)host;
	ret = cm_file_open(&f->cm, (uint32_t)host, c->pid, &token, &a->fds[0]);
	if (ret)
		return ret;
	m->cm_open_reply.token = token;
	a->n = 1;
	a->given = true;
	return 0;
}

static int answer_cm_is_file(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	(void)c, (void)a;
	return cm_is_file(&s->fabric->cm, m->cm_is_file.inode) ? 0 : -ENOENT;
}

static int answer_cm_id(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	const struct msg_cm_id from = m->cm_id;

	(void)c, (void)a;
	cm_describe(&s->fabric->cm, from.host, from.number, &m->cm_id_reply);
	return 0;
}

static int answer_cm_call(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct msg_cm_call_reply reply;
	int ret = cm_call(&s->fabric->cm, &m->cm_call, &reply);

	(void)c, (void)a;
	if (!ret)
		m->cm_call_reply = reply;
	return ret;
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
	text_copy(m->info_reply.device_names, sizeof(m->info_reply.device_names), f->device_names);
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

static uint64_t words_sent(const struct fabric *f, uint32_t row)
{
	/* Nobody counts at a switch: the daemon reckons what has passed it. */
	return subnet_node_of(&f->subnet, row)->kind == SUBNET_SWITCH
		       ? net_total(&f->net, row, NET_XMIT_DATA)
		       : port_counter_total(f, row, PORT_XMIT_DATA);
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
			i < f->subnet.nports - first ? 4 * words_sent(f, first + i) : 0;
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
	[MSG_FAULT] = answer_fault,
	[MSG_TIE] = answer_tie,
	[MSG_UNTIE] = answer_untie,
	[MSG_TIED] = answer_tied,
	[MSG_CAPTURE] = answer_capture,
	[MSG_UMAD_OPEN] = answer_umad_open,
	[MSG_ISSM_OPEN] = answer_issm_open,
	[MSG_UMAD_REGISTER] = answer_umad_register,
	[MSG_UMAD_UNREGISTER] = answer_umad_unregister,
	[MSG_UMAD_PKEY] = answer_umad_pkey,
	[MSG_UMAD_FETCH] = answer_umad_fetch,
	[MSG_UMAD_IN_FLIGHT] = answer_umad_in_flight,
	[MSG_UMAD_ADOPT] = answer_umad_adopt,
	[MSG_CM_OPEN] = answer_cm_open,
	[MSG_CM_IS_FILE] = answer_cm_is_file,
	[MSG_CM_CALL] = answer_cm_call,
	[MSG_CM_ID] = answer_cm_id,
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
	if (type == MSG_GROUP) {
		group_take(s, c, &m->group);
		return;
	}
	status = answers[type](s, c, m, &attached);
	if (status == ANSWER_LATER)
		return;
	msg_prepare(m, type, MSG_REPLY, m->head.seq, status);
	conn_send(s, c, m, attached.fds, status ? 0 : attached.n);
	for (unsigned i = 0; attached.given && i < attached.n; i++)
		descriptor_put(attached.fds[i]);
	if (type == MSG_HELLO && !status)
		captures_join(s, c);
	else if (type == MSG_CAPTURE && !status)
		capture_begin(s, c);
}
