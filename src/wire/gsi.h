/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams between queue pairs and queue pair 1 of a port, the general services interface (GSI).
 * No process has queue pair 1: the daemon does, which moves MADs (fabric/daemon/gsi.c).  A datagram
 * goes to the daemon as a message.  Those that come from there wait here until a thread makes
 * progress, because the thread that hears the daemon cannot touch the program's memory.
 *
 * The daemon counts these datagrams at the ports that they pass, as it does with MADs
 * of programs.
 */
#pragma once

#include "base/spin.h"
#include "wire/wire.h"

#define GSI_WAITING_MOST 128u /* datagrams that wait in a process; more are lost */

struct gsi {
	struct spin lock;
	uint32_t taken, given;	      /* how many have come, and how many were delivered */
	struct gsi_datagram *waiting; /* a ring; NULL: none has come yet */
};

void gsi_close(struct gsi *g);
/* As wire_xmit, for packets to QP 0 and QP 1. */
enum wire_verdict gsi_xmit(struct wire *w, const struct pkt *p);
/* Delivers the datagrams that wait; true if there were some. */
bool gsi_deliver(struct wire_process *h);
