/* SPDX-License-Identifier: BSD-2-Clause */
/* A frame in one piece as a packet of its port. */
#pragma once

#include <string.h>

#include "adapter/core/device.h"
#include "wire/bth.h"

struct frame_pkt {
	struct run run;
	struct path path;
	struct pkt pkt;
};

static inline void frame_pkt_make(struct frame_pkt *f, struct adapter *a, uint32_t sqpn,
				  const uint8_t *frame, uint32_t bytes)
{
	f->run = (struct run){(void *)(uintptr_t)frame, bytes};
	f->path = (struct path){
		.src_port = wire_port_row(a->wire),
		.dst_port = SUBNET_NONE,
	};
	f->pkt = (struct pkt){
		.opcode = BTH_RAW | BTH_SEND_ONLY,
		.sqpn = sqpn,
		.dqpn = IB_MULTICAST_QPN,
		.npkts = 1,
		.path = &f->path,
		.payload_len = bytes,
		.nruns = 1,
		.runs = &f->run,
	};
	memcpy(f->path.dgid.raw, frame, 6);
}
