/* SPDX-License-Identifier: BSD-2-Clause */
/* A packet with a key that its receiver does not have, as notices 257 and 258 tell of it (IBTA 14.2.5.1). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "prm/ib.h"

struct key_violation {
	uint32_t row; /* of the subnet: the port that it came to */
	uint32_t key; /* the packet's */
	uint32_t sqpn, dqpn;
	uint16_t slid, dlid;
	uint8_t sl;
	uint8_t qkey; /* 1: a Q_Key; 0: a P_Key */
	uint8_t grh;  /* are there GIDs? */
	uint8_t reserved;
	union ib_gid sgid, dgid;
};
