/* SPDX-License-Identifier: BSD-2-Clause */
/* A queue pair that is connected with itself, a region, and a completion queue with a channel. */
#pragma once

#include "verbs_device.h"

#define LOOPBACK_BYTES 65536u

struct loopback {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
};

/* Exit on failure, as the device does. */
void loopback_open(struct loopback *l, const char *device);
void loopback_close(struct loopback *l);
/* One more of its kind, which is not connected. */
struct ibv_qp *loopback_qp_make(struct loopback *l);
