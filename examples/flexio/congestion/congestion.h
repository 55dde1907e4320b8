/* SPDX-License-Identifier: BSD-2-Clause */
/* What host and DPA agree on. */
#pragma once

#include <stdint.h>

/* On the DPA's heap; the argument of the handler. */
struct control {
	uint64_t megabytes; /* a second, the most for each flow; 0: as fast as the port */
	uint64_t reacts;    /* to congestion */
	/* By the handler. */
	uint64_t flows;
	uint64_t events;
	uint64_t notified; /* of congestion */
	uint64_t refused;
	uint64_t probes;
	uint64_t shortest_ns; /* round trip */
	uint64_t bytes, packets;
	uint64_t lowest_rate; /* that it has set */
	uint64_t last_rate;
};

/* Numbers of a control, as a call gives them. */
enum control_word {
	CONTROL_FLOWS = 2,
	CONTROL_EVENTS,
	CONTROL_NOTIFIED,
	CONTROL_REFUSED,
	CONTROL_PROBES,
	CONTROL_SHORTEST_NS,
	CONTROL_BYTES,
	CONTROL_PACKETS,
	CONTROL_LOWEST_RATE,
	CONTROL_LAST_RATE,
};
