// SPDX-License-Identifier: BSD-2-Clause
/*
 * Groups that queue pairs of Ethernet ports have joined.  Within the fabric processes know by
 * themselves who listens; a carrier has to join a group in the network outside, and to leave it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fabric/daemon/server.h"

#define GROUPS_MOST 4096u /* of one process */

/* How many queue pairs of a process have joined a group at a port. */
struct group_member {
	struct group_member *next;
	union ib_gid gid;
	uint32_t row;
	uint32_t count;
};

/* Where the group is in the list of the process, or the list's end. */
static struct group_member **member_find(struct conn *c, uint32_t row, const union ib_gid *gid)
{
	struct group_member **at = &c->groups;

	while (*at && ((*at)->row != row || memcmp(&(*at)->gid, gid, sizeof(*gid)) != 0))
		at = &(*at)->next;
	return at;
}

static void carrier_tell(struct server *s, uint32_t row, const union ib_gid *gid, bool joins)
{
	uint32_t carrier = s->fabric->ends[row].carrier_plus_1;
	struct conn *c = carrier ? s->by_slot[carrier - 1] : NULL;
	struct msg note = {.group = {.row = row, .joins = joins, .gid = *gid}};

	if (!c)
		return;
	msg_prepare(&note, MSG_GROUP, MSG_NOTE, 0, 0);
	conn_send(s, c, &note, NULL, 0);
}

/* True if a process other than this one has joined the group at the port. */
static bool others_have(struct server *s, const struct conn *c, const struct group_member *g)
{
	for (struct conn *other = s->conns; other; other = other->next)
		if (other != c && *member_find(other, g->row, &g->gid))
			return true;
	return false;
}

static void group_join(struct server *s, struct conn *c, const struct msg_group *m)
{
	struct group_member **at = member_find(c, m->row, &m->gid), *g = *at;

	if (g) {
		g->count += g->count != UINT32_MAX;
		return;
	}
	g = c->ngroups < GROUPS_MOST ? malloc(sizeof(*g)) : NULL;
	if (!g) {
		log_warn("process %d: no room for a group that it has joined, which nothing from "
			 "other "
			 "machines reaches",
			 (int)c->pid);
		return;
	}
	*g = (struct group_member){.gid = m->gid, .row = m->row, .count = 1};
	*at = g;
	c->ngroups++;
	if (!others_have(s, c, g))
		carrier_tell(s, m->row, &m->gid, true);
}

/* Takes the group that the link leads to out of the list. */
static void group_leave(struct server *s, struct conn *c, struct group_member **at)
{
	struct group_member *g = *at;

	*at = g->next;
	c->ngroups--;
	if (!others_have(s, c, g))
		carrier_tell(s, g->row, &g->gid, false);
	free(g);
}

void group_take(struct server *s, struct conn *c, const struct msg_group *m)
{
	struct group_member **at;

	if (!conn_has_port(s, c, m->row) || !s->fabric->subnet.ports[m->row].ethernet ||
	    !ib_gid_is_multicast(&m->gid))
		return;
	if (m->joins) {
		group_join(s, c, m);
		return;
	}
	at = member_find(c, m->row, &m->gid);
	if (*at && !--(*at)->count)
		group_leave(s, c, at);
}

void groups_tell(struct server *s, uint32_t row)
{
	for (struct conn *c = s->conns; c; c = c->next)
		for (struct group_member *g = c->groups; g; g = g->next)
			if (g->row == row)
				carrier_tell(s, row, &g->gid, true);
}

void groups_leave(struct server *s, struct conn *c)
{
	while (c->groups)
		group_leave(s, c, &c->groups);
}

void groups_drop(struct conn *c)
{
	while (c->groups) {
		struct group_member *g = c->groups;

		c->groups = g->next;
		free(g);
	}
}
