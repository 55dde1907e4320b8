/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which datagram QPs of this device belong to which multicast group.
 *
 * Load: a look-up per multicast packet, changes by ibv_attach_mcast only.  A group with its members
 * is one block that is replaced as a whole; readers take no lock (RCU).
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
/* A datagram to a group; true if it has a member here.  Under RCU. */
bool multicast_receive(struct adapter *a, const struct pkt *pkt);
/* The QP leaves all its groups. */
void multicast_forget(struct qp *qp);
