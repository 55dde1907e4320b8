/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port counters for messages that no packets were made for: both ends count what packets would have
 * been.
 */
#pragma once

#include "wire/size.h"
#include "wire/wire.h"

/* RDMA WRITEs and their acknowledgements, sent and received by this very port. */
void tally_looped(struct wire *w, const struct path *path, const struct message_sizes *m);
/* Messages to (MESSAGE_ANSWER: read from) another process and their answers: counts for that
 * process as well. */
void tally_far(struct wire *w, const struct path *path, struct far *f,
	       const struct message_sizes *m);
