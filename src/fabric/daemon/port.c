// SPDX-License-Identifier: BSD-2-Clause
/* The state of a port, and what the processes of its host hear of it. */
#include "fabric/daemon/fabric.h"
#include "fabric/daemon/server.h"

#include <errno.h>
#include <stddef.h>

/*
 * The state of a port.  It lies in the subnet, where the wires of all processes read it for each
 * packet, so traffic stops without a message to anybody.
 */

static bool other_end_up(const struct fabric *f, uint32_t row)
{
	const struct port_end *end = &f->ends[row];

	if (!end->tied)
		return true;
	return end->peer == SUBNET_NONE ? end->carrier_plus_1 && end->carrier_up
					: !f->ends[end->peer].pulled;
}

/* An Ethernet port comes up without a manager. */
int port_settle(struct fabric *f, uint32_t row)
{
	bool up = !f->ends[row].pulled && other_end_up(f, row);

	if (!subnet_set_state(&f->subnet, row, up ? IB_PORT_ACTIVE : IB_PORT_DOWN))
		return 0;
	if (!up)
		f->base[row][PORT_LINK_DOWNED]++;
	return 1;
}

bool port_pull(struct fabric *f, uint32_t row, bool down)
{
	uint32_t peer = f->net.ports[row].cable;
	bool other = !down && peer != SUBNET_NONE && f->net.ports[peer].pulled;

	if (f->net.ports[row].pulled == down && !other)
		return false;
	if (other)
		net_pull(&f->net, peer, false);
	net_pull(&f->net, row, down);
	manage_links(f);
	return true;
}

int port_set_state(struct fabric *f, uint32_t row, uint32_t state)
{
	bool down = state == IB_PORT_DOWN;

	if (row >= f->subnet.nports)
		return -ENOENT;
	/* The subnet manager sets the states in between. */
	if (!down && state != IB_PORT_ACTIVE)
		return -EINVAL;
	if (f->subnet.ports[row].ethernet) {
		f->ends[row].pulled = down;
		return port_settle(f, row);
	}
	return port_pull(f, row, down);
}

/* ---- tells the processes of a host the asynchronous events of its ports ---- */

void port_note(struct server *s, uint32_t row, enum ib_event event)
{
	const struct fabric *f = s->fabric;
	uint32_t host = subnet_node_of(&f->subnet, row)->host;
	struct msg note = {.port = {.row = row, .event = event}};

	msg_prepare(&note, MSG_PORT, MSG_NOTE, 0, 0);
	for (uint32_t i = 0; i < REGISTRY_SLOTS; i++)
		if (s->by_slot[i] && f->rows[i].host == host)
			conn_send(s, s->by_slot[i], &note, NULL, 0);
}

/* INIT and ARMED lie between DOWN and ACTIVE, and programs hear only of these two. */
static void port_note_state(struct server *s, uint32_t row)
{
	uint32_t state = net_info(&s->fabric->net, row, PI_STATE);

	if (state == IB_PORT_ACTIVE)
		port_note(s, row, IB_EVENT_PORT_ACTIVE);
	else if (state == IB_PORT_DOWN)
		port_note(s, row, IB_EVENT_PORT_ERR);
}

static void port_notes_hear(struct net_listener *l, enum net_event event, uint32_t row,
			    uint32_t what)
{
	struct server *s = (struct server *)((char *)l - offsetof(struct server, port_notes));

	(void)what;
	/* Most ports of a subnet are switches', where no process hears anything. */
	if (subnet_node_of(&s->fabric->subnet, row)->kind != SUBNET_HCA)
		return;
	switch (event) {
	case NET_STATE:
		port_note_state(s, row);
		break;
	case NET_LID:
		port_note(s, row, IB_EVENT_LID_CHANGE);
		break;
	case NET_SM:
		port_note(s, row, IB_EVENT_SM_CHANGE);
		break;
	case NET_REREGISTER:
		port_note(s, row, IB_EVENT_CLIENT_REREGISTER);
		break;
	case NET_PKEYS:
		port_note(s, row, IB_EVENT_PKEY_CHANGE);
		break;
	case NET_GIDS:
		port_note(s, row, IB_EVENT_GID_CHANGE);
		break;
	default:
		break;
	}
}

void port_notes_open(struct server *s)
{
	s->port_notes.event = port_notes_hear;
	net_listen(&s->fabric->net, &s->port_notes);
}
