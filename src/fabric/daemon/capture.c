// SPDX-License-Identifier: BSD-2-Clause
/*
 * Captures: which programs write their packets into rings for which connection, and the MADs that
 * the daemon moves itself (registry/capture.h).  A ring lives as long as its two ends have it
 * mapped; the daemon only hands it out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory_file.h"
#include "base/record_ring.h"
#include "fabric/daemon/descriptor.h"
#include "fabric/daemon/server.h"

struct capture {
	uint32_t id;
	struct capture_want want;
	struct record_ring mads; /* ours */
	uint64_t rows[];	 /* a bit for each port */
};

static bool capture_has(const struct capture *c, uint32_t row)
{
	return c->rows[row / 64] >> row % 64 & 1;
}

/* ---- rings ---- */

static int ring_file(uint32_t bytes, uint32_t nsources)
{
	int fd = memfd_create("softhca-capture", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;

	if (fd < 0)
		return -errno;
	ret = memory_file_resize(fd, record_ring_file_bytes(bytes, nsources));
	if (ret < 0) {
		close(fd);
		return ret;
	}
	/* The seals keep either side from making the other's mapping fault. */
	fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	return fd;
}

static void ring_send(struct server *s, struct conn *to, const struct msg_capture_ring *ring,
		      int fd)
{
	struct msg note = {.capture_ring = *ring};

	msg_prepare(&note, MSG_CAPTURE, MSG_NOTE, 0, 0);
	conn_send(s, to, &note, &fd, 1);
}

/* The ports of the program's host that are captured. */
static uint32_t program_ports(const struct server *s, const struct capture *c,
			      const struct conn *program)
{
	const struct fabric *f = s->fabric;
	uint32_t host = f->rows[program->slot].host, ports = 0;
	uint32_t first = f->hosts[host].first_port;

	for (uint32_t i = 0; i < f->topology.hosts[host].nports; i++)
		if (capture_has(c, first + i))
			ports |= 1u << f->subnet.ports[first + i].host_index;
	return ports;
}

/* Makes a ring from the program to the connection that captures. */
static void ring_give(struct server *s, struct conn *reader, struct conn *program)
{
	const struct capture *c = reader->capture;
	const struct msg_capture_ring ring = {
		.id = c->id,
		.slot = (uint32_t)program->slot,
		.pid = program->pid,
		.ports = program_ports(s, c, program),
		.nsources = SLOT_PORTS,
		.first_row = s->fabric->hosts[s->fabric->rows[program->slot].host].first_port,
		.want = c->want,
	};
	int fd = ring.ports ? ring_file(c->want.ring_bytes, SLOT_PORTS) : -1;

	if (!ring.ports)
		return;
	if (fd < 0) {
		log_warn("process %d is not captured: %s", (int)program->pid, strerror(-fd));
		return;
	}
	ring_send(s, reader, &ring, fd);
	ring_send(s, program, &ring, fd);
	descriptor_put(fd);
}

/* ---- our own ring ---- */

static void mad_show(struct capture *c, const struct mad_packet *p, uint32_t row, bool received)
{
	const uint32_t bytes = sizeof(struct capture_head) + sizeof(struct capture_mad);
	struct capture_head *head;
	struct capture_mad *m;

	if (!capture_has(c, row))
		return;
	head = record_ring_reserve(&c->mads, bytes, row);
	if (!head)
		return;
	*head = (struct capture_head){
		.ns = clock_realtime_ns(),
		.row = row,
		.kind = CAPTURE_MAD,
		.received = received,
		.bytes = sizeof(*m),
		.whole = MAD_BYTES,
	};
	m = (struct capture_mad *)(head + 1);
	*m = (struct capture_mad){
		.sqpn = p->sqpn,
		.dqpn = p->dqpn,
		.qkey = p->dqpn ? p->qkey : 0,
		.flow_label = p->flow_label,
		.slid = p->slid,
		.dlid = p->dlid,
		.pkey = p->dqpn ? p->pkey : SUBNET_PKEY_DEFAULT,
		.sl = p->sl,
		.hop_limit = p->hop_limit,
		.traffic_class = p->traffic_class,
		.grh = p->grh,
		.roce_v1 = p->roce_v1,
		.sgid = p->sgid,
		.dgid = p->dgid,
	};
	memcpy(m->mad, p->mad, sizeof(m->mad));
	record_ring_commit(&c->mads, head, bytes);
}

/* As mad_fabric's crossed. */
static void mads_show(void *user, const struct mad_packet *p, uint32_t from, uint32_t to)
{
	const struct server *s = user;

	for (struct conn *c = s->conns; c; c = c->next) {
		if (!c->capture || !c->capture->mads.head)
			continue;
		/* One end may be outside of the fabric. */
		if (from != SUBNET_NONE)
			mad_show(c->capture, p, from, false);
		if (to != SUBNET_NONE)
			mad_show(c->capture, p, to, true);
	}
}

/* Shows MADs only while somebody captures. */
static void mads_settle(struct server *s)
{
	struct mad_fabric *mad = &s->fabric->mad;

	mad->crossed = NULL;
	mad->crossed_user = s;
	for (const struct conn *c = s->conns; c; c = c->next)
		if (c->capture)
			mad->crossed = mads_show;
}

static void mads_begin(struct server *s, struct conn *c)
{
	const uint32_t nports = s->fabric->subnet.nports;
	const struct msg_capture_ring ring = {
		.id = c->capture->id,
		.slot = CAPTURE_DAEMON,
		.pid = getpid(),
		.nsources = nports,
		.want = c->capture->want,
	};
	struct record_ring *r = &c->capture->mads;
	int fd = ring_file(c->capture->want.ring_bytes, nports), ret = fd;

	if (fd >= 0) {
		ret = record_ring_map(r, fd, c->capture->want.ring_bytes, nports);
		if (!ret) {
			atomic_store(&r->head->joined, 1);
			ring_send(s, c, &ring, fd);
		}
		descriptor_put(fd);
	}
	if (ret < 0)
		log_warn("MADs are not captured: %s", strerror(-ret));
}

/* ---- beginning and end ---- */

static bool want_is_sound(const struct capture_want *w)
{
	return w->snaplen && w->snaplen <= CAPTURE_SNAPLEN && w->nterms <= CAPTURE_TERMS &&
	       w->events && !(w->events & ~(uint32_t)CAPTURE_EVENT_ALL) &&
	       w->ring_bytes >= CAPTURE_RING_BYTES_MIN && w->ring_bytes <= CAPTURE_RING_BYTES_MAX &&
	       !(w->ring_bytes & (w->ring_bytes - 1));
}

/* Marks the ports of all hosts, or those that are named. */
static int rows_mark(const struct fabric *f, const struct msg_capture *m, struct capture *c)
{
	for (uint32_t row = 0; !m->nrows && row < f->subnet.nports; row++)
		if (subnet_node_of(&f->subnet, row)->kind == SUBNET_HCA)
			c->rows[row / 64] |= UINT64_C(1) << row % 64;
	for (uint32_t i = 0; i < m->nrows; i++) {
		if (m->rows[i] >= f->subnet.nports)
			return -ENOENT;
		c->rows[m->rows[i] / 64] |= UINT64_C(1) << m->rows[i] % 64;
	}
	return 0;
}

int answer_capture(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	const struct fabric *f = s->fabric;
	struct capture *capture;
	int ret;

	(void)a;
	if (c->slot != CONN_NO_SLOT || c->capture)
		return -EISCONN;
	if (!want_is_sound(&m->capture.want) || m->capture.nrows > FABRIC_CAPTURE_PORTS)
		return -EINVAL;
	capture = calloc(1, sizeof(*capture) + (f->subnet.nports / 64 + 1) * sizeof(uint64_t));
	if (!capture)
		return -ENOMEM;
	capture->id = ++s->captures_begun;
	capture->want = m->capture.want;
	ret = rows_mark(f, &m->capture, capture);
	if (ret)
		free(capture);
	else
		c->capture = capture;
	return ret;
}

void capture_begin(struct server *s, struct conn *c)
{
	if (c->capture->want.events & CAPTURE_EVENT_MAD) {
		mads_begin(s, c);
		mads_settle(s);
	}
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++)
		if (s->by_slot[slot])
			ring_give(s, c, s->by_slot[slot]);
}

void captures_join(struct server *s, struct conn *program)
{
	for (struct conn *c = s->conns; c; c = c->next)
		if (c->capture)
			ring_give(s, c, program);
}

static void end_tell(struct server *s, struct conn *to, uint32_t id, uint32_t slot)
{
	struct msg note = {.capture_end = {id, slot}};

	msg_prepare(&note, MSG_CAPTURE_END, MSG_NOTE, 0, 0);
	conn_send(s, to, &note, NULL, 0);
}

void capture_free(struct conn *c)
{
	if (c->capture)
		record_ring_unmap(&c->capture->mads);
	free(c->capture);
	c->capture = NULL;
}

void captures_leave(struct server *s, struct conn *c)
{
	if (c->slot != CONN_NO_SLOT)
		for (struct conn *reader = s->conns; reader; reader = reader->next)
			if (reader->capture)
				end_tell(s, reader, reader->capture->id, (uint32_t)c->slot);
	if (!c->capture)
		return;
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS; slot++)
		if (s->by_slot[slot])
			end_tell(s, s->by_slot[slot], c->capture->id, slot);
	capture_free(c);
	mads_settle(s);
}
