/* SPDX-License-Identifier: BSD-2-Clause */
/* The store of multicast groups; record_mcmember.c decides who may join and leave. */
#pragma once

#include "fabric/daemon/sa/sa.h"

/*
 * Makes a group with the wanted MLID if that is free, else with the lowest free one.  NULL: none,
 * or no memory.
 */
struct sa_group *sa_group_new(struct sa *s, uint16_t wanted_mlid);
void sa_group_remove(struct sa *s, struct sa_group *g);
bool sa_group_alive(const struct sa_group *g);
/* The SM must make the trees anew. */
void sa_group_changed(struct sa *s);
struct sa_member *sa_member_find(struct sa_group *g, const uint8_t *gid);
/* NULL: no memory. */
struct sa_member *sa_member_new(struct sa_group *g);
void sa_member_remove(struct sa_group *g, struct sa_member *m);
