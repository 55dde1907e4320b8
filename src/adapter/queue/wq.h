/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive work queues: receive rings without a queue pair, for RSS. */
#pragma once

#include "adapter/core/device.h"
#include "adapter/queue/recvq.h"

struct wq {
	struct adapter *adapter;
	struct wq_attr create;
	uint32_t wqn;
	struct spin lock;
	_Atomic(uint32_t) state; /* enum ib_wq_state; written under the lock */
	bool strip_vlan;
	struct recv_ring ring;
};

/* Called when the ring or its memory is unusable: enters the error state and raises the event.  The
 * caller holds the lock. */
void wq_fail(struct wq *wq);
