/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Carries the frames of a tied Ethernet port: a process with its own slot on the fabric.  To the
 * programs of the port's host it is one more listener on the port, whose frames come from outside.
 * To their queue pairs it is the way to everybody who is not in the fabric (tie/packets.h).  So the
 * daemon is not on the way, and a carrier that is stopped or killed counts as any process that is.
 *
 * Two threads run: the caller's takes frames from the other end and sends them; a further one
 * sleeps at the slot's inbox and gives what programs send to the other end.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fabric/client/link.h"
#include "prm/ib.h"

#define CARRIER_FRAME_MAX 9216u /* the longest that adapters take */
#define CARRIER_FRAME_MIN 14u

struct carrier;
struct pkt;
struct slot;
struct roce_packet;
struct tie_end;

/* The other end of the cable. */
struct tie_end_ops {
	/* Called before any of the others, with the carrier's slot: 0 or a negative errno.  Both may
	 * be NULL. */
	int (*open)(struct tie_end *e, struct slot *slot);
	void (*close)(struct tie_end *e, struct slot *slot);
	/* Takes a frame that the port, or the carrier itself, has sent; false: it is lost.  One
	 * thread at a time calls this. */
	bool (*put)(struct tie_end *e, const uint8_t *frame, uint32_t bytes);
	/* Takes a packet that a queue pair has sent out of the fabric, or to a group, and counts it by
	 * carrier_count_out.  It may wait until 'flush', which follows whatever was sent.  Only the
	 * further thread calls these.  NULL: the carrier makes frames of packets, for 'put'. */
	void (*send)(struct tie_end *e, const struct pkt *p);
	void (*flush)(struct tie_end *e);
	/* There are no more frames for the moment.  May be NULL. */
	void (*idle)(struct tie_end *e);
	/* Takes frames in and hands them to carrier_arrive, until one of both says to end. */
	void (*take)(struct tie_end *e, struct carrier *c);
	/* Tells whether there is a link. */
	bool (*is_up)(struct tie_end *e);
	/* The first queue pair of the port has joined a group, or the last has left it.  A thread of
	 * its own calls this.  May be NULL. */
	void (*group)(struct tie_end *e, const union ib_gid *gid, bool joins);
	/* The port has gone down or come up; any thread may call this.  May be NULL. */
	void (*port)(struct tie_end *e, bool active);
};

struct tie_end {
	const struct tie_end_ops *ops;
	struct carrier *carrier; /* set by carrier_open */
	/* The port's address in the network there, as RoCE v2; zeros: the port keeps its own. */
	union ib_gid gid;
	_Atomic(uint32_t) mtu; /* enum ib_mtu: what the network takes; 0: anything */
};

struct carrier_attr {
	struct fabric_environment where;
	uint32_t row;	  /* row of the port */
	const char *text; /* says what it is tied to */
	struct tie_end *end;
};

/* Ties the port.  0 or a negative errno, as from fabric_client_open and fabric_carry. */
int carrier_open(const struct carrier_attr *attr, struct carrier **out) must_check;
/* Carries frames until the port is untied, the fabric or other end has gone, or carrier_stop. */
void carrier_run(struct carrier *c);
/* Ends carrier_run; any thread or signal handler may call this. */
void carrier_stop(struct carrier *c);
void carrier_close(struct carrier *c);

/* ---- for the other end ---- */

/* What happened to a frame that was taken in. */
enum carrier_verdict {
	CARRIER_TAKEN,
	CARRIER_UNHEARD, /* no program listens, or the port is down */
	CARRIER_BAD,	 /* nobody could understand it */
	CARRIER_ENDS,	 /* the carrier has to end */
};

/* Hands a frame to the programs, waiting for room; one that takes nothing for a second loses it. */
enum carrier_verdict carrier_arrive(struct carrier *c, const uint8_t *frame, uint32_t bytes);
/* The same for a packet to a queue pair of the port, whose frame carrier_sniff has had. */
enum carrier_verdict carrier_arrive_packet(struct carrier *c, struct roce_packet *packet);
/* Shows the frame of such a packet to those who sniff. */
void carrier_sniff(struct carrier *c, const uint8_t *frame, uint32_t bytes);
/* The largest payload of a packet to that queue pair that stands for several; 0: each comes by
 * itself. */
uint32_t carrier_arrive_most(struct carrier *c, const struct roce_packet *packet);
/* Counts a frame that came in, or was lost. */
void carrier_count_in(struct carrier *c, bool lost);
/* Counts one among the lost that was spoiled, or came from somebody who is no peer. */
void carrier_count_bad(struct carrier *c, bool checksum);
void carrier_count_foreign(struct carrier *c);
/* Counts a frame that went out, or was lost. */
void carrier_count_out(struct carrier *c, bool lost);
/* The MAC of the port. */
void carrier_mac(const struct carrier *c, uint8_t mac[6]);
/* Says that all frames that are to come in have come. */
void carrier_all_in(struct carrier *c);
/* Sleeps until then (CLOCK_MONOTONIC; UINT64_MAX: for ever), or until one of n descriptors is
 * readable.  False: the carrier has to end. */
bool carrier_sleep(struct carrier *c, uint64_t until_ns, const int *fds, unsigned n);
/* The link at the other end has changed.  The further thread must not call this. */
void carrier_link_changed(struct carrier *c);
/* Something has gone wrong there: the log says so, and who asks for the tie sees the last one. */
void carrier_warn(struct carrier *c, const char *warning);
