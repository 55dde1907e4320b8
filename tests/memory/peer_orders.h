/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes over the socket from the host to the peer; an answer goes back for all but REST in
 * between. */
#pragma once

#include <stdio.h>

#include "peer.h"

enum order_kind {
	ORDER_CONNECT,
	ORDER_WRITE,
	ORDER_READ,
	ORDER_SEND,
	ORDER_HAMMER,
	ORDER_COUNT,
	ORDER_REST,
	ORDER_RECEIVE,
	ORDER_COLLECT,
	ORDER_LOOK,
	ORDER_REFUSE,
	ORDER_TICK,
	ORDER_DUMP,
	ORDER_END,
};

struct peer_order {
	enum order_kind what;
	bool patient;
	uint32_t rkey;
	uint64_t addr;
	uint64_t bytes;
	uint32_t value;
	uint32_t hits;
	struct device_address address;
	char path[200];
};

/* The peer's life, once it is a process of its own. */
_Noreturn void peer_main(int sock, const char *device);
