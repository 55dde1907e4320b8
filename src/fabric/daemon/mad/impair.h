/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of links, by seed: MADs that are lost, late or doubled. */
#pragma once

#include "fabric/daemon/mad/mad.h"

struct impair_link {
	uint32_t loss_ppm, duplicate_ppm;
	uint32_t delay_us, jitter_us;
};

struct impair;
struct impair *impair_open(uint64_t seed);
void impair_close(struct impair *i);
/* For packets that leave 'row'.  SUBNET_NONE: all links alike, whatever was set before. 0, -EINVAL more
 * than a million in a million, -ENOMEM. */
int impair_set(struct impair *i, uint32_t row, const struct impair_link *how) must_check;
/* Does nothing happen to any packet? */
bool impair_is_perfect(const struct impair *i) must_check;
/* What becomes of a packet that leaves 'row': copies (0: lost), and how late. */
uint32_t impair_decide(struct impair *i, uint32_t row, uint64_t *delay_ns);
/* Keeps a packet for so long and queues it again.  False: no memory. */
bool impair_hold(struct mad_fabric *f, struct mad_packet *p, uint64_t delay_ns) must_check;
