// SPDX-License-Identifier: BSD-2-Clause
/* Ties of Ethernet ports: where their cables lead, if not to the shared segment; see server.h. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/text.h"
#include "fabric/daemon/address.h"
#include "fabric/daemon/server.h"

void tie_tell(struct server *s, uint32_t row)
{
	port_note(s, row,
		  subnet_port_active(&s->fabric->subnet, row) ? IB_EVENT_PORT_ACTIVE
							      : IB_EVENT_PORT_ERR);
}

static void tie_settle(struct server *s, uint32_t row)
{
	if (port_settle(s->fabric, row))
		tie_tell(s, row);
}

void tie_settle_peer(struct server *s, uint32_t row)
{
	const struct port_end *end = &s->fabric->ends[row];

	if (end->tied && end->peer != SUBNET_NONE)
		tie_settle(s, end->peer);
}

static struct conn *tie_carrier(struct server *s, const struct port_end *end)
{
	return end->carrier_plus_1 ? s->by_slot[end->carrier_plus_1 - 1] : NULL;
}

/* Ends the carrier's connection, which tells it that it has nothing to do any more. */
static void carrier_dismiss(struct server *s, struct port_end *end)
{
	struct conn *c = tie_carrier(s, end);

	if (!c)
		return;
	c->dismissed = true;
	shutdown(c->sock.fd, SHUT_RDWR);
}

/* ---- the network behind a carrier ---- */

static bool gid_is_none(const union ib_gid *gid)
{
	return !gid->half[0] && !gid->half[1];
}

static void mtu_set(struct fabric *f, uint32_t row, uint32_t mtu)
{
	_Atomic(uint32_t) *own = &f->subnet.ports[row].mtu;

	if (atomic_exchange(own, mtu) != mtu)
		subnet_raise_epoch(&f->subnet);
}

/* Gives the port the address and the MTU of the network; its programs hear of new GIDs. */
static int network_take(struct server *s, const struct msg_tie *tie)
{
	struct fabric *f = s->fabric;
	struct subnet_gid_entry first;
	int ret;

	if (gid_is_none(&tie->gid))
		return 0;
	if (!f->ends[tie->row].renamed || !subnet_gid(&f->subnet, tie->row, 0, &first) ||
	    memcmp(&first.gid, &tie->gid, sizeof(first.gid)) != 0) {
		ret = address_rename(f, tie->row, &tie->gid);
		if (ret)
			return ret;
		port_note(s, tie->row, IB_EVENT_GID_CHANGE);
	}
	mtu_set(f, tie->row, tie->mtu);
	f->numbers_random = true;
	return 0;
}

static void network_leave(struct server *s, uint32_t row)
{
	mtu_set(s->fabric, row, 0);
	if (address_restore(s->fabric, row))
		port_note(s, row, IB_EVENT_GID_CHANGE);
}

/* Returns the port to the segment.  The caller settles its state. */
static void tie_undo(struct server *s, uint32_t row)
{
	struct port_end *end = &s->fabric->ends[row];
	bool pulled = end->pulled;

	carrier_dismiss(s, end);
	network_leave(s, row);
	*end = (struct port_end){.pulled = pulled};
	subnet_set_tie(&s->fabric->subnet, row, 0);
}

static int tie_port(const struct fabric *f, uint32_t row)
{
	if (row >= f->subnet.nports)
		return -ENOENT;
	return f->subnet.ports[row].ethernet ? 0 : -EPROTONOSUPPORT;
}

/* Ties two ports, as a cable between them would. */
static int tie_cable(struct server *s, uint32_t row, uint32_t peer)
{
	struct fabric *f = s->fabric;
	int ret = tie_port(f, peer);

	if (ret)
		return ret;
	if (row == peer)
		return -ELOOP;
	if (f->ends[row].tied || f->ends[peer].tied)
		return -EBUSY;
	f->ends[row].tied = f->ends[peer].tied = true;
	f->ends[row].peer = peer;
	f->ends[peer].peer = row;
	subnet_set_tie(&f->subnet, row, peer + 1);
	subnet_set_tie(&f->subnet, peer, row + 1);
	tie_settle(s, row);
	tie_settle(s, peer);
	return 0;
}

/* Called before the carrier's slot is given back. */
static void tie_carrier_gone(struct conn *c)
{
	struct server *s = c->server;
	struct fabric *f = s->fabric;
	uint32_t slot = (uint32_t)c->slot, host = f->rows[slot].host;
	uint32_t first = f->hosts[host].first_port;

	for (uint32_t row = first; row < first + f->topology.hosts[host].nports; row++) {
		if (f->ends[row].carrier_plus_1 != slot + 1)
			continue;
		log_warn("%s, %s: who carries its frames (%s) has ended, and the port is down "
			 "until it is tied anew or untied",
			 f->topology.hosts[host].name, subnet_node_of(&f->subnet, row)->name,
			 f->ends[row].text);
		f->ends[row].carrier_plus_1 = 0;
		tie_settle(s, row);
	}
}

/* The first request of a carrier makes the tie, and later ones say how its link is. */
static int tie_carried(struct server *s, struct conn *c, const struct msg_tie *tie)
{
	struct fabric *f = s->fabric;
	struct port_end *end = &f->ends[tie->row];
	uint32_t carrier;
	bool anew;
	int ret;

	if (c->slot == CONN_NO_SLOT || c->dismissed)
		return -ENOTCONN;
	if (f->rows[c->slot].host != subnet_node_of(&f->subnet, tie->row)->host)
		return -EXDEV;
	carrier = (uint32_t)c->slot + 1;
	/* A carrier that has ended may be followed by another. */
	if (end->tied &&
	    (end->peer != SUBNET_NONE || (end->carrier_plus_1 && end->carrier_plus_1 != carrier)))
		return -EBUSY;
	anew = end->carrier_plus_1 != carrier;
	if (anew) {
		end->warning[0] = '\0';
		/* The one before may have led to another network. */
		network_leave(s, tie->row);
	}
	ret = network_take(s, tie);
	if (ret)
		return ret;
	c->carrier_ended = tie_carrier_gone;
	end->tied = true;
	end->peer = SUBNET_NONE;
	end->carrier_plus_1 = carrier;
	end->carrier_up = tie->up;
	text_copy(end->text, sizeof(end->text), tie->text);
	if (tie->warning[0])
		text_copy(end->warning, sizeof(end->warning), tie->warning);
	atomic_store(&f->slots[c->slot].carries_plus_1, tie->row + 1);
	if (anew)
		groups_tell(s, tie->row);
	subnet_set_tie(&f->subnet, tie->row, tie->row + 1);
	tie_settle(s, tie->row);
	return 0;
}

int answer_tie(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct msg_tie tie = m->tie;
	int ret = tie_port(s->fabric, tie.row);

	(void)a;
	tie.text[sizeof(tie.text) - 1] = '\0';
	tie.warning[sizeof(tie.warning) - 1] = '\0';
	if (tie.mtu > IB_MTU_4096)
		return -EINVAL;
	if (ret)
		return ret;
	return tie.peer == SUBNET_NONE ? tie_carried(s, c, &tie) : tie_cable(s, tie.row, tie.peer);
}

int answer_untie(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	uint32_t row = m->index.index, peer;
	int ret = tie_port(s->fabric, row);

	(void)c, (void)a;
	if (ret)
		return ret;
	if (!s->fabric->ends[row].tied)
		return -ENOLINK;
	peer = s->fabric->ends[row].peer;
	tie_undo(s, row);
	if (peer != SUBNET_NONE) {
		tie_undo(s, peer);
		tie_settle(s, peer);
	}
	tie_settle(s, row);
	return 0;
}

int answer_tied(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	uint32_t row = m->index.index;
	const struct port_end *end;
	const struct conn *carrier;
	struct msg_tied_reply reply = {.peer = SUBNET_NONE};

	(void)c, (void)a;
	if (row >= s->fabric->subnet.nports)
		return -ENOENT;
	end = &s->fabric->ends[row];
	carrier = tie_carrier(s, end);
	if (end->tied) {
		reply.tied = true;
		reply.peer = end->peer;
		text_copy(reply.text, sizeof(reply.text), end->text);
		text_copy(reply.warning, sizeof(reply.warning), end->warning);
	}
	if (carrier) {
		const struct slot *slot = &s->fabric->slots[carrier->slot];

		reply.pid = carrier->pid;
		reply.all = atomic_load(&slot->carried_all);
		for (int i = 0; i < CARRIED_COUNTS; i++)
			reply.carried[i] = atomic_load(&slot->carried[i]);
	}
	m->tied_reply = reply;
	return 0;
}
