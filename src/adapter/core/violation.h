/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets whose P_Key or Q_Key their receiver does not have: the port counts each one, and the
 * subnet's manager hears of some of them. */
#pragma once

#include "adapter/core/device.h"
#include "wire/pkt.h"

/* Counts a violation; 'c' is PORT_PKEY_VIOLATIONS or PORT_QKEY_VIOLATIONS. */
void violation_count(struct adapter *a, const struct pkt *pkt, enum port_counter c);
