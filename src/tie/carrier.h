/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who carries the frames of a tied Ethernet port: a process with a slot of its own on the fabric.  To the
 * programs of the port's host it is one more listener on the port, whose frames come from outside, and to their
 * queue pairs the way to whoever is not in the fabric (tie/packets.h).  So
 * the daemon is not on the way, and what happens to a carrier that is stopped or killed is what happens
 * to any process.
 *
 * Two threads: the caller's takes frames from the other end and sends them, a further one sleeps
 * at the slot's inbox and gives what programs send to the other end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fabric/client/environment.h"

#define CARRIER_FRAME_MAX 9216u /* as adapters take them */
#define CARRIER_FRAME_MIN 14u

struct carrier;
struct tie_end;

/* What is at the other end of the cable. */
struct tie_end_ops {
	/* A frame that the port has sent, or the carrier itself; false: it is lost.  One thread at a time. */
	bool (*put)(struct tie_end *e, const uint8_t *frame, uint32_t bytes);
	/* There is no more for the moment.  May be NULL. */
	void (*idle)(struct tie_end *e);
	/* Takes frames in and hands them to carrier_arrive, until that or carrier_sleep says no. */
	void (*take)(struct tie_end *e, struct carrier *c);
	/* Is there a link there? */
	bool (*is_up)(struct tie_end *e);
	/* The port has gone down or come up, on any thread.  May be NULL. */
	void (*port)(struct tie_end *e, bool active);
};

struct tie_end {
	const struct tie_end_ops *ops;
	struct carrier *carrier; /* from carrier_open on */
};

struct carrier_attr {
	struct fabric_environment where;
	uint32_t row;	  /* of the port */
	const char *text; /* what it is tied to */
	struct tie_end *end;
};

/* Ties the port.  0 or negative errno, as from fabric_client_open and fabric_carry. */
int carrier_open(const struct carrier_attr *attr, struct carrier **out) must_check;
/* Carries frames until the port is untied, the fabric ends, the other end has gone, or carrier_stop. */
void carrier_run(struct carrier *c);
/* From any thread or signal handler. */
void carrier_stop(struct carrier *c);
void carrier_close(struct carrier *c);

/* ---- for the other end ---- */

/* What became of a frame that was taken in. */
enum carrier_verdict {
	CARRIER_TAKEN,
	CARRIER_UNHEARD, /* no program listens, or the port is down */
	CARRIER_BAD,	 /* nobody could make sense of it */
	CARRIER_ENDS,	 /* the carrier is to end */
};

/* Hands a frame to the programs, waiting for room; whoever takes nothing for a second loses it. */
enum carrier_verdict carrier_arrive(struct carrier *c, const uint8_t *frame, uint32_t bytes);
/* Counts frames that came in, and were lost. */
void carrier_count_in(struct carrier *c, bool lost);
/* All that is to come in has come. */
void carrier_all_in(struct carrier *c);
/* Sleeps until then (CLOCK_MONOTONIC; UINT64_MAX: for ever), or until one of n descriptors is readable.  False:
 * the carrier is to end. */
bool carrier_sleep(struct carrier *c, uint64_t until_ns, const int *fds, unsigned n);
/* The link at the other end has changed.  Not on the further thread. */
void carrier_link_changed(struct carrier *c);
/* Something has gone wrong there: the log says so, and whoever asks for the tie sees the last one. */
void carrier_warn(struct carrier *c, const char *warning);
