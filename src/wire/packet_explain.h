/* SPDX-License-Identifier: BSD-2-Clause */
/* Explains packets that the wire itself drops; call these after explaining() (base/explain.h). */
#pragma once

#include "base/explain.h"
#include "subnet/subnet.h"
#include "wire/pkt.h"

/* Explains a datagram to a group, or a frame, that this port sends or that has come to this
 * process. */
void packet_explain_group(const struct subnet *s, uint32_t row, const struct pkt *p,
			  const char *why) __attribute__((cold));
/* Explains a datagram to queue pair 1 that is dropped for its Q_Key where it arrives. */
void packet_explain_gsi_key(const struct subnet *s, uint32_t row, const struct pkt *p)
	__attribute__((cold));
/* Explains a packet that names a sender which the sending process has not got. */
void packet_explain_sender(const struct subnet *s, const struct pkt *p) __attribute__((cold));
