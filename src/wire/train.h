/* SPDX-License-Identifier: BSD-2-Clause */
/* Delivers brief requests that stand one behind the other in a channel and belong together, in one
 * call. */
#pragma once

#include "wire/channel.h"

/* The packets and bytes of the records of which the client has taken at least one packet.  If it
 * has left some of the last record, rest is that record, and rest_part is the first packet left. */
struct train {
	uint32_t packets;
	uint32_t bytes;
	uint64_t payload;
	const void *rest; /* NULL: nothing is left over */
	uint32_t rest_bytes;
	uint32_t rest_part;
};

/* Delivers the record that the ring was peeked at, and the records behind it that are brief and
 * belong to it.  Returns no packets if the record is of another kind, or if the client refuses it;
 * then the caller has to unpack it. */
struct train train_deliver(const struct ring *rx, const void *record, uint32_t bytes,
			   const struct channel_sink *to) must_check;
