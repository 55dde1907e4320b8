/* SPDX-License-Identifier: BSD-2-Clause */
/* A packet with a key that its receiver, or a switch's port on its way, does not have.  Notices 257
 * to 259 tell of it (IBTA 14.2.5.1). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "prm/ib.h"

enum key_violation_kind {
	VIOLATION_PKEY,
	VIOLATION_QKEY,
	VIOLATION_PKEY_AT_SWITCH,
};

struct key_violation {
	uint32_t
		/* Row of the subnet: the port that the packet came to or, if a switch dropped it,
		 * the port that it left. */
		row;
	uint32_t key; /* the packet's */
	uint32_t sqpn, dqpn;
	uint16_t slid, dlid;
	uint8_t sl;
	uint8_t kind; /* enum key_violation_kind */
	uint8_t grh;  /* not 0: sgid and dgid are valid */
	uint8_t reserved;
	union ib_gid sgid, dgid;
};
