/* SPDX-License-Identifier: BSD-2-Clause */
/* Brief requests that stand one behind the other in a channel and belong together: they are delivered in
 * one go. */
#pragma once

#include "wire/channel.h"

/* How many packets, and the bytes of their records; some of the last one's are left over, from that one
 * on. */
struct train {
	uint32_t packets;
	uint32_t bytes;
	uint64_t payload;
	const void *rest; /* NULL: nothing is left over */
	uint32_t rest_bytes;
	uint32_t rest_part;
};

/* Delivers the record that the ring was peeked at, and those behind it, if they are brief and belong
 * together.  No packets: it is of another kind, or refused, and has to be unpacked. */
struct train train_deliver(const struct ring *rx, const void *record, uint32_t bytes,
			   const struct channel_sink *to) must_check;
