// SPDX-License-Identifier: BSD-2-Clause
/* Tells the processes of a host the asynchronous events of its ports; see server.h. */
#include <stddef.h>

#include "fabric/daemon/server.h"

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
