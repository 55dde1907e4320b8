/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A datagram between a queue pair and queue pair 1 of a port, the general services interface (GSI):
 * a MAD with what the headers of its packet say, in host order.
 */
#pragma once

#include "prm/ib.h"
#include "prm/mad.h"

struct gsi_datagram {
	uint32_t row;  /* row of the subnet: the queue pair's own port */
	uint32_t qpn;  /* the queue pair's number */
	uint32_t qkey; /* the datagram's */
	uint32_t flow_label;
	uint16_t slid, dlid;
	uint16_t pkey;
	uint8_t sl;
	uint8_t grh; /* not 0: sgid, dgid and the three other fields of the GRH are valid */
	uint8_t hop_limit, traffic_class;
	uint8_t roce_v1; /* of an Ethernet port: not 0: RoCE v1, else v2 */
	uint8_t reserved[5];
	union ib_gid sgid, dgid;
	uint8_t mad[MAD_BYTES];
};
