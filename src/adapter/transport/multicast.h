/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says which datagram QPs of this device belong to which multicast group.
 *
 * Each multicast packet looks a group up; only ibv_attach_mcast and its counterpart change groups.
 * A group and its members are one block that is replaced as a whole, so readers take no lock: they
 * hold the bucket of the groups with that hash.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "adapter/adapter.h"
#include "wire/pkt.h"

#define MULTICAST_BUCKETS 256u

struct multicast_group;

struct multicast {
	pthread_mutex_t lock;
	uint32_t groups;
	_Atomic(struct multicast_group *) bucket[MULTICAST_BUCKETS];
};

void multicast_init(struct multicast *m);
void multicast_release(struct multicast *m);
/* Takes a datagram to a group; true if the group has a member here.  The caller is a reader. */
bool multicast_receive(struct adapter *a, const struct pkt *pkt);
/* Makes the QP leave all its groups. */
void multicast_forget(struct qp *qp);
