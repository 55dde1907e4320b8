/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair that only answers.  Its requester is made by the test, which sends packets from the
 * other end of a channel and takes what comes back:
 *
 *      st[0]: the adapter with the queue pair ---- channel ---- st[1]: the test
 */
#pragma once

#include "adapter/qp/qp.h"
#include "adapter_device.h"
#include "test_fabric.h"

#define LONE_PEER (test_fabric_qpn(1) + 5) /* the requester's number */

struct lone_responder {
	struct test_fabric *fabric;
	struct test_process st[TEST_FABRIC_PORTS];
	struct test_device device;
	struct device_qp qp;
	struct mkey *mr; /* of all the memory */
};

struct lone_attr {
	/* Takes what comes to either end. */
	void (*receive)(void *user, const struct pkt *p);
	void *user;
	struct run memory;
	uint32_t psn;	 /* of the first request */
	uint32_t region; /* of registers by which the queue pair is rung; 0: by a doorbell record */
	uint8_t reads;	 /* that may be under way; 0: as many as usual */
};

void lone_responder_up(struct lone_responder *l, const struct lone_attr *how);
void lone_responder_down(struct lone_responder *l);
/* Sends a packet to the queue pair. */
void lone_responder_ask(struct lone_responder *l, struct pkt *p);
/* The adapter's side runs once; what it answers is under way then. */
void lone_responder_progress(struct lone_responder *l);
