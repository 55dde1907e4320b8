// SPDX-License-Identifier: BSD-2-Clause
/* Multicast groups and their members. */
#include "fabric/daemon/sa/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MOST  NET_MULTICAST_CAP
#define LIFE_DEFAULT 18u

bool sa_is_multicast(const uint8_t *gid)
{
	return gid[0] == 0xff;
}

struct sa_group *sa_group_find(const struct sa *s, const uint8_t *mgid)
{
	for (struct sa_group *g = s->groups; g; g = g->next)
		if (!memcmp(&g->mgid, mgid, sizeof(g->mgid)))
			return g;
	return NULL;
}

static bool group_mlid_free(const struct sa *s, uint32_t mlid)
{
	for (const struct sa_group *g = s->groups; g; g = g->next)
		if (g->mlid == mlid)
			return false;
	return true;
}

/* Returns the lowest free MLID, or 0. */
static uint16_t group_mlid(const struct sa *s)
{
	for (uint32_t mlid = MAD_LID_MULTICAST; mlid < MAD_LID_MULTICAST + GROUPS_MOST; mlid++)
		if (group_mlid_free(s, mlid))
			return (uint16_t)mlid;
	return 0;
}

struct sa_group *sa_group_new(struct sa *s, uint16_t wanted_mlid)
{
	bool wanted = wanted_mlid >= MAD_LID_MULTICAST &&
		      wanted_mlid < MAD_LID_MULTICAST + GROUPS_MOST &&
		      group_mlid_free(s, wanted_mlid);
	uint16_t mlid = wanted ? wanted_mlid : group_mlid(s);
	struct sa_group *g = mlid ? calloc(1, sizeof(*g)) : NULL, **end;

	if (!g)
		return NULL;
	g->mlid = mlid;
	for (end = &s->groups; *end; end = &(*end)->next)
		;
	*end = g;
	s->ngroups++;
	return g;
}

static void group_free(struct sa_group *g)
{
	free(g->members);
	free(g);
}

void sa_group_remove(struct sa *s, struct sa_group *g)
{
	struct sa_group **at = &s->groups;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	s->ngroups--;
	group_free(g);
}

void sa_group_changed(struct sa *s)
{
	if (s->groups_changed)
		loop_queue(s->fabric->loop, s->groups_changed);
}

struct sa_member *sa_member_find(struct sa_group *g, const uint8_t *gid)
{
	for (uint32_t i = 0; i < g->nmembers; i++)
		if (!memcmp(&g->members[i].gid, gid, sizeof(g->members[i].gid)))
			return &g->members[i];
	return NULL;
}

struct sa_member *sa_member_new(struct sa_group *g)
{
	struct sa_member *m = reallocarray(g->members, g->nmembers + 1u, sizeof(*g->members));

	if (!m)
		return NULL;
	g->members = m;
	m += g->nmembers++;
	*m = (struct sa_member){0};
	return m;
}

void sa_member_remove(struct sa_group *g, struct sa_member *m)
{
	*m = g->members[--g->nmembers];
}

/* A group without a full member does not exist (15.2.5.17), except the one that we keep. */
bool sa_group_alive(const struct sa_group *g)
{
	for (uint32_t i = 0; i < g->nmembers; i++)
		if (g->members[i].join_state & (SA_JOIN_FULL | SA_JOIN_SENDS_FULL))
			return true;
	return g->well_known;
}

/* Makes IPoIB's broadcast group of the default partition (RFC 4391), which hosts join first. */
int sa_groups_open(struct sa *s)
{
	static const uint8_t broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,	0,
					      0,    0,	  0,	0,    0xff, 0xff, 0xff, 0xff};
	struct sa_group *g;

	if (sa_group_find(s, broadcast))
		return 0;
	g = sa_group_new(s, 0);
	if (!g)
		return -ENOMEM;
	memcpy(&g->mgid, broadcast, sizeof(broadcast));
	g->pkey = SUBNET_PKEY_DEFAULT;
	g->qkey = 0x0b1b;
	g->mtu = IB_MTU_2048;
	g->rate = 3; /* 10 Gb/s: every port has it */
	g->life = LIFE_DEFAULT;
	g->scope = 2;
	g->well_known = true;
	return 0;
}

void sa_groups_close(struct sa *s)
{
	while (s->groups)
		sa_group_remove(s, s->groups);
}
