/* SPDX-License-Identifier: BSD-2-Clause */
/* The payload of a packet, wherever it lies: in this process, in another one, or yet to be made. */
#pragma once

#include "base/compiler.h"
#include "wire/pkt.h"

/* Copies all of it.  Of one that its sender has taken back (pkt_withdrawn) the last bytes are not
 * stored. */
bool payload_pull(const struct run *dst, uint32_t ndst, const struct pkt *p) must_check;
/* Why payload_pull failed: the sender's memory has gone; slow. */
bool payload_gone(const struct pkt *p) must_check;
