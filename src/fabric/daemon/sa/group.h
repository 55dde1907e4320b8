/* SPDX-License-Identifier: BSD-2-Clause */
/* The store of multicast groups; who may join and leave is record_mcmember.c's. */
#pragma once

#include "fabric/daemon/sa/sa.h"

/* An MLID that is wanted and free, else the lowest free one.  NULL: none, or no memory. */
struct sa_group *sa_group_new(struct sa *s, uint16_t wanted_mlid);
void sa_group_remove(struct sa *s, struct sa_group *g);
bool sa_group_alive(const struct sa_group *g);
/* The trees must be made anew. */
void sa_group_changed(struct sa *s);
struct sa_member *sa_member_find(struct sa_group *g, const uint8_t *gid);
/* NULL: no memory. */
struct sa_member *sa_member_new(struct sa_group *g);
void sa_member_remove(struct sa_group *g, struct sa_member *m);
