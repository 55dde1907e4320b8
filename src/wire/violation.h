/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets with bad keys, and how often the subnet's manager hears of them. */
#pragma once

#include "base/compiler.h"
#include "prm/violation.h"
#include "wire/pkt.h"

struct wire;

/*
 * A port with a bad neighbour may see millions of bad keys in a second, while a trap that nobody has
 * repressed is under way once anyway.  So of each kind one is told in a while.  Is it time to tell of one again?  For
 * one thread only.
 */
bool violation_due(_Atomic(uint64_t) *next_ns) must_check;
/* By the packet; 'row' as struct key_violation has it. */
struct key_violation violation_of(const struct pkt *p, uint32_t row, enum key_violation_kind kind);

/* A switch's port has not let it pass: it has left our port, and is counted so, and there (wire/traffic.h). */
void violation_at_switch(struct wire *w, const struct pkt *p) __attribute__((cold));
