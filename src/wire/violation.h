/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets with bad keys, and how often the subnet's manager hears of them. */
#pragma once

#include "base/compiler.h"
#include "prm/mad.h"
#include "wire/pkt.h"

struct wire;

/*
 * Says whether it is time to tell the subnet's manager of a bad key again.  A port with a bad
 * neighbour may see millions of bad keys in a second, while a trap that nobody has repressed is
 * under way once anyway; so the port tells of one of each kind in a while.  Only one of several
 * threads gets true.
 */
bool violation_due(_Atomic(uint64_t) *next_ns) must_check;
/* Describes the violation by the packet; struct key_violation explains 'row'. */
struct key_violation violation_of(const struct pkt *p, uint32_t row, enum key_violation_kind kind);

/* Counts a packet that a switch's port has not let pass, both as sent by our port and as refused
 * there (wire/traffic.h), and tells of it when it is time. */
void violation_at_switch(struct wire *w, const struct pkt *p) __attribute__((cold));
