/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire as the adapter sees it: a way out for packets and an upcall for those that arrive.
 *
 * struct wire_process: one per process.  It owns what the process's devices share: the channels to
 * the other processes of this machine.  struct wire: one port of one adapter, attached to a
 * process.
 *
 * Links (wire/link.h) carry the packets.  A packet to a queue pair of the same process is delivered
 * inside wire_xmit (loopback); one to another process goes through a channel in shared memory and
 * is delivered by that process's wire_process_progress. Which process owns a QP number is read from
 * the registry, which port owns an address and whether ports are up from the subnet.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "subnet/subnet.h"
#include "wire/pkt.h"
#include "registry/registry.h"

struct brief;
struct expose;
struct traffic;
struct remote;
struct wire;
struct wire_process;

/* Outcome of a transmission. */
enum wire_verdict {
	WIRE_SENT, /* delivered, or on its way */
	WIRE_BUSY, /* no room; nothing was sent: try again at the next progress */
	/* no route, port down, peer gone, or stopped and the transport is unreliable: a real wire
	   drops it silently */
	WIRE_LOST,
	/* The payload's own memory has gone: nothing was sent (local protection error). Loopback
	 * never says so: there the receiver is the one who reads. */
	WIRE_FAULT,
};

/* What the wire calls in the adapter that it serves. */
struct wire_client {
	/*
	 * A packet for this adapter.  On loopback it runs inside the sender's wire_xmit; from
	 * another process inside wire_process_progress.  Packet and payload are valid until return.
	 */
	void (*receive)(void *user, const struct pkt *pkt);
	/* The same for packets to a group and for Ethernet frames; false if nobody here wants it.
	 * NULL: nobody ever does. */
	bool (*receive_group)(void *user, const struct pkt *pkt);
	/*
	 * Packets from another process as wire/brief.h describes them, not counted yet; each follows on
	 * the one before.  The client says how many it has taken whole and counted.  With the next
	 * it has done nothing: that comes as packets.  May be NULL.
	 */
	uint32_t (*receive_briefs)(void *user, const struct brief *b, uint32_t n);
	/* Of a process that carries: a packet that the port has sent out of the fabric, of at most one
	 * path MTU.  May be NULL. */
	void (*carry)(void *user, const struct pkt *pkt);
	void *user;
};

struct key_violation;

struct wire_process_attr {
	const struct registry *registry;
	const struct subnet *subnet;
	struct slot *slots;	 /* REGISTRY_SLOTS entries */
	uint16_t slot;		 /* our own */
	struct traffic *traffic; /* our own; NULL: what ports send counts without its destination */
	/* Slow path, first packet to a process: gets the shared memory; as fabric_open_channel.
	 * NULL: loopback only.  No lock of the wire is held, but the caller's may be. */
	int (*open_channel)(void *user, uint16_t peer, int *fd, size_t *bytes, int *side);
	/* A switch's port has not let a packet of ours pass, and others before.  NULL: nobody wants to know. */
	void (*violated)(void *user, const struct key_violation *v);
	bool expose; /* lay memory and responders open to peers */
	/* It is no program, but carries what one port sends out of the fabric (tie/carrier.h): that comes in
	 * packets of the path MTU, with their payloads. */
	bool carries;
	void *user;
};

/* From now on that hears, in whichever thread makes progress, of emulated functions (registry/emulation.h) in which
 * something has happened. */
void wire_process_hear_emulated(struct wire_process *h, void (*emulated)(void));

int wire_process_create(const struct wire_process_attr *attr, struct wire_process **out) must_check;
void wire_process_destroy(struct wire_process *h);
/* A peer opened a channel to us (fabric_client_ops.channel).  Takes over fd.  Harmless if we have
 * it already. */
int wire_process_add_channel(struct wire_process *h, uint16_t peer, int fd, size_t bytes, int side);
/* That process is gone: drops its channel.  What it had sent is delivered first, by the next
 * progress, and the memory released then; so this never waits. */
void wire_process_drop_channel(struct wire_process *h, uint16_t peer);
/* Delivers what other processes have sent.  O(1) when there is nothing.  True if anything was
 * delivered, or if what was told WIRE_BUSY should be tried again: a peer that makes room raises our
 * inbox. */
bool wire_process_progress(struct wire_process *h);

/* Links of a process that drain (wire/link.h). */
#define WIRE_PROCESS_LINKS 4u
/* Their descriptors, of those that have one: readable when wire_process_progress has something to
 * do there.  Returns how many. */
unsigned wire_process_fds(const struct wire_process *h, int fds[WIRE_PROCESS_LINKS]);

/* The process has taken files back that it had laid open: its peers let go of them, lest they keep
 * the memory. */
void wire_process_files_ended(struct wire_process *h);
/* Lets go of such files of peers, if any were taken back since the last call.  True: so it was.
 * One thread at a time calls it; it is cheap if there is nothing, and makes system calls if there
 * is. */
bool wire_process_let_go(struct wire_process *h);

int wire_create(struct wire_process *h, uint32_t port_row, struct wire **out) must_check;
void wire_destroy(struct wire *w);
/* NULL detaches: when it has returned, nobody is in the client's receive. Not from within
 * receive. */
void wire_attach(struct wire *w, const struct wire_client *client);

const struct subnet *wire_subnet(const struct wire *w);
uint32_t wire_port_row(const struct wire *w);
/* The counters of this port in this process, for wire/counter_shard.h. */
_Atomic(uint64_t) *wire_counters(struct wire *w);
/* Where this port counts what it sends, by destination (wire/traffic.h); NULL: among its counters. */
struct traffic *wire_traffic(const struct wire *w);

/*
 * Sends one packet.  The wire keeps no reference to the payload after it returned, with one
 * exception: a reliable request (RC, XRC, DC) with ack_req and run_keys set, to another process,
 * may be sent by reference, and the peer reads the payload from our memory before it acknowledges;
 * if it is a READ that names the places of its answer (pkt.runs), the peer may write there.
 * The requester keeps the memory in place until then, as it must for hardware, or takes the payload
 * or the places back.
 */
enum wire_verdict wire_xmit(struct wire *w, const struct pkt *pkt);
/* Does the peer of a connection look at this moment for what it gets at once, without being woken?  A hint. */
bool wire_peer_looks(const struct wire *w, const struct path *path, uint32_t dqpn);

/*
 * Takes back what queue pair sqpn has sent to dqpn by reference: what the peer has not read when
 * this returns it takes for lost, also if it is stopped, for which nobody waits.  The caller has
 * set the word that the queue pair's packets name (pkt.withdrawn), so nothing follows.  True: a
 * peer may be reading some of it until expose_revoke has returned.
 */
bool wire_withdraw(struct wire *w, uint32_t dqpn, uint32_t sqpn);
/*
 * The same for all that was found under some key (pkt.run_keys) in some memory, to whomever it
 * went. lost hears of each queue pair concerned, under a lock of the wire: it must not call the
 * wire.
 */
bool wire_withdraw_key(struct wire *w, uint32_t key, struct run memory,
		       void (*lost)(void *user, uint32_t sqpn), void *user);

/* What we lay open to peers (exposure/expose.h). */
struct expose *wire_expose(struct wire *w);
/* As wire_expose, for a process. */
struct expose *wire_process_expose(struct wire_process *h);
/* All slots. */
struct slot *wire_process_slots(struct wire_process *h);
/*
 * What the process that owns (path, dqpn) lays open, if both ports are up and it lives; NULL if it
 * is this process, or not connected.  Under RCU.
 */
struct remote *wire_remote(struct wire *w, const struct path *path, uint32_t dqpn);
/* The same by slot, for remote_living; NULL: this process reaches nobody's. */
const _Atomic(struct remote *) *wire_remotes(const struct wire *w);
/* Does the number belong to this process? */
bool wire_owns(const struct wire *w, uint32_t qpn);
/* Control path: maps it. */
void wire_remote_connect(struct wire *w, const struct path *path, uint32_t dqpn);
/* How many processes have ended: while that number stays, the same ones live. */
uint32_t wire_process_ends(const struct wire *w);
/* Slots and our own index. */
struct slot *wire_slots(const struct wire *w);
uint16_t wire_slot(const struct wire *w);

/* Not 0: requests are to make packets (wire/tap.h). */
const _Atomic(uint32_t) *wire_observers(const struct wire *w);

/*
 * Has the process of dqpn not taken all packets of this one yet, although it is neither stopped nor
 * dead?  Then it waits for a processor.  Takes a look at /proc.
 */
bool wire_peer_is_behind(struct wire *w, const struct path *path, uint32_t dqpn) must_check;

/*
 * After WIRE_BUSY: is there room for more within some microseconds, because the process of dqpn takes
 * out what is there?  Waits for it.
 */
bool wire_room_soon(struct wire *w, const struct path *path, uint32_t dqpn) must_check;

/*
 * The largest payload one packet to (path, dqpn) may carry, at most IB_MAX_MSG_BYTES.  A multiple
 * of mtu_bytes, and mtu_bytes itself while this process or that of dqpn is observed.
 * by_reference_ok: the packet will satisfy the exception above.
 */
uint32_t wire_max_payload(struct wire *w, const struct path *path, uint32_t dqpn,
			  uint32_t mtu_bytes, bool by_reference_ok);

/*
 * Packets to IB_MULTICAST_QPN go to all processes that listen.  Each client says what it listens
 * to, as often as it has reasons to; it may get more than that.
 */
#define WIRE_GROUP_BITS	  256u
#define WIRE_GROUP_FRAMES 0u /* Ethernet frames */
unsigned wire_group(const union ib_gid *gid);
void wire_listen(struct wire *w, unsigned group);
void wire_unlisten(struct wire *w, unsigned group);
/*
 * A frame that comes to the port from outside the fabric, to the other processes that listen there: the
 * port has not sent it, so nothing is counted as sent.  WIRE_LOST: nobody listens, or the port is
 * down.
 */
enum wire_verdict wire_arrive(struct wire *w, const struct pkt *pkt);
/*
 * The same for a packet to a queue pair, whose path says the addresses that it came with.  WIRE_LOST also: no
 * process at the port has the number.
 */
enum wire_verdict wire_arrive_packet(struct wire *w, const struct pkt *pkt);
