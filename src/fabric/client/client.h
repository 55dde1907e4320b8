/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process's end of its connection to softhcad.
 *
 * Environment (set by `softhca run` and `softhca env`):
 *   SOFTHCA_DIR   run-time directory of the fabric: <base>/softhca-<uid>/<fabric>
 *   SOFTHCA_HOST  host of the topology that this process runs on
 *   SOFTHCA_DAEMON  path of softhcad, started on demand when nothing answers
 * In SOFTHCA_DIR: sock (SOCK_SEQPACKET), hosts/<host>/sys/class/... and
 * hosts/<host>/dev/infiniband/... (plain files and directories that stand for the device tree).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "prm/ib.h"
#include "prm/mad.h"
#include "subnet/subnet.h"
#include "registry/registry.h"

struct fabric_client;
struct msg_capture_ring;

/* Notifications; called on the client's control thread. */
struct fabric_client_ops {
	/* Slot 'peer' opened a channel to us; fd is a memfd of 'bytes', ours to close. side as in
	 * fabric_open_channel. */
	void (*channel)(void *user, uint16_t peer, int fd, size_t bytes, int side);
	/* That process is gone; its channel will carry nothing more. */
	void (*gone)(void *user, uint16_t peer);
	/* A process that had the memory of a function of our host's card is gone.  NULL: we have
	 * no such memory. */
	void (*function)(void *user);
	/* A port of the subnet changed state or LID. */
	void (*port)(void *user, uint32_t port_row, enum ib_event event);
	/* Queue pair 1 of a port has sent a datagram to a queue pair of ours.  NULL: we have
	 * none. */
	void (*gsi)(void *user, const struct gsi_datagram *d);
	/* The first queue pair of a port that we carry has joined a group, or the last has left it.
	 * NULL: we carry none. */
	void (*group)(void *user, const union ib_gid *gid, bool joins);
	/* Packets of our ports are to go into a ring (wire/capture.h), whose descriptor stays the
	 * caller's; and no more of them.  NULL: our packets cannot be captured. */
	void (*capture)(void *user, const struct msg_capture_ring *ring, int fd);
	void (*capture_end)(void *user, uint32_t id);
	/* The rule of that row (registry/fault.h) is new, and concerns objects of devices.  NULL: we
	 * have none. */
	void (*fault)(void *user, uint32_t row);
	/* The daemon is gone: treat every port as down. */
	void (*lost)(void *user);
	void *user;
};

/*
 * Connects, starting the daemon if need be, takes a slot, and starts the control thread (all
 * signals blocked). 0 or negative errno (-ENOENT unknown host, -EPROTO daemon of another version,
 * -ECONNREFUSED).
 */
int fabric_client_open(const struct fabric_client_ops *ops, struct fabric_client **out) must_check;
struct fabric_environment;
/* The same with another environment than the process's. */
int fabric_client_open_in(const struct fabric_environment *env, const struct fabric_client_ops *ops,
			  struct fabric_client **out) must_check;
/* Ends the connection and waits for the control thread, and so for a callback that it is in.  A
 * callback must not call this, nor another thread while it asks the daemon for something. */
void fabric_client_close(struct fabric_client *c);
/* In a forked child: drops the descriptors without telling the daemon; the parent's connection
 * lives on. */
void fabric_client_forget(struct fabric_client *c);

const struct registry *fabric_registry(const struct fabric_client *c);
const struct subnet *fabric_subnet(const struct fabric_client *c);
struct slot *fabric_slots(const struct fabric_client *c);      /* array of REGISTRY_SLOTS */
uint16_t fabric_slot(const struct fabric_client *c);	       /* our own index */
struct traffic *fabric_traffic(const struct fabric_client *c); /* our own */

/* Gives the ports of our host, in device order (mlx5_0, mlx5_1, ...), as rows of the subnet.
 * Returns how many. */
uint32_t fabric_host_ports(const struct fabric_client *c, uint32_t *rows, uint32_t max);

/*
 * Tells the daemon that we carry the frames of an Ethernet port of our host, from and to what the
 * text says, over a link that is up or not ('peer' is filled in here).  The carrier calls this again
 * when any of that changes, or when something has gone wrong there, which the warning says (or "";
 * the last one stands).  0; -EBUSY: the port is tied to something else; -EPROTONOSUPPORT: it is
 * InfiniBand; -EADDRINUSE: another port of the fabric has the address; or another negative errno.
 */
struct msg_tie;
int fabric_carry(struct fabric_client *c, const struct msg_tie *tie) must_check;

/* Returns a number of a new chunk of 1024, from which on its numbers are to be used and behind the last
 * of which the first ones follow; or a negative errno. */
int64_t fabric_number_chunk(struct fabric_client *c, enum number_kind kind);

/*
 * Gets the shared memory between us and slot 'peer'.  The daemon creates it, zero-filled; both get
 * the same, whoever asks first. *side is 0 for the one with the lower slot index, else 1.  The
 * descriptor is the caller's.  The peer learns of it by its channel() notification.
 */
int fabric_open_channel(struct fabric_client *c, uint16_t peer, int *fd, size_t *bytes,
			int *side) must_check;

/*
 * Gets the memory of the PCI function that this device of our host emulates (registry/emulation.h);
 * the caller owns the descriptor.  -ENODEV: the device emulates none.
 */
int fabric_open_function(struct fabric_client *c, uint32_t device, int *fd) must_check;

/* Tells the daemon of a packet that had a bad key.  It neither waits nor fails: if the daemon's
 * socket has no room, the daemon does not hear of it. */
void fabric_tell_violation(struct fabric_client *c, const struct key_violation *v);
/* Sends a datagram to queue pair 1 of a port.  It does not wait: false if the daemon's socket has no
 * room, or the daemon has gone. */
bool fabric_send_gsi(struct fabric_client *c, const struct gsi_datagram *d) must_check;
/* Tells the daemon that a queue pair of a port of ours has joined a group of Ethernet, or has left it;
 * a carrier of the port hears of it. */
void fabric_tell_group(struct fabric_client *c, uint32_t row, const union ib_gid *gid, bool joins);

/*
 * Sums a port's counters over all processes, those that have ended included; needs no open client.
 * 0 or a negative errno.
 */
int fabric_port_counters(uint32_t row, uint64_t totals[PORT_COUNTERS]) must_check;

/*
 * Reads the present text of a live attribute; needs no open client.  The attribute is named by its
 * path below the host's tree ("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data").
 * Returns its length, -ENOENT if that path is not live (read the file), -EINVAL if that is the error of
 * whoever reads it, or another negative errno.
 */
ssize_t fabric_read_attr(const char *path, char *buf, size_t size);
/* Opens a stream that takes what is written to such an attribute, which is a description.  Returns
 * its descriptor, or a negative errno. */
int fabric_write_attr(const char *path) must_check;
