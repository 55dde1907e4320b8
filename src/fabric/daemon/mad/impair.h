/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of links, drawn from a seed: MADs that are lost, late or doubled. */
#pragma once

#include "fabric/daemon/mad/mad.h"

struct impair_link {
	uint32_t loss_ppm, duplicate_ppm;
	uint32_t delay_us, jitter_us;
};

struct impair;
struct impair *impair_open(uint64_t seed);
void impair_close(struct impair *i);
/* Sets the faults of packets that leave 'row'; SUBNET_NONE: of all links alike, whatever was set
 * before.  0, -EINVAL more than a million in a million, -ENOMEM. */
int impair_set(struct impair *i, uint32_t row, const struct impair_link *how) must_check;
/* Decides for a packet that leaves 'row' how many copies go on (0: lost), and how late. */
uint32_t impair_decide(struct impair *i, uint32_t row, uint64_t *delay_ns);
/* Keeps a packet for delay_ns and queues it again.  False: no memory. */
bool impair_hold(struct mad_fabric *f, struct mad_packet *p, uint64_t delay_ns) must_check;
