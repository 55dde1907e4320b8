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
 * is delivered by that process's wire_process_progress.  The registry says which process owns a QP
 * number; the subnet says which port owns an address, and whether ports are up.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/mad.h"
#include "registry/registry.h"
#include "subnet/subnet.h"
#include "wire/pkt.h"

struct short_send;
struct expose;
struct traffic;
struct remote;
struct wire;
struct wire_process;

/* What became of a transmission. */
enum wire_verdict {
	WIRE_SENT, /* delivered, or on its way */
	WIRE_BUSY, /* no room; nothing was sent: try again at the next progress */
	/* no route, port down, peer gone, or the peer is stopped and the transport is unreliable: a
	 * real wire drops the packet silently */
	WIRE_LOST,
	/* The payload's memory no longer exists: nothing was sent (local protection error).
	 * Loopback never says this, because there the receiver reads the payload. */
	WIRE_FAULT,
};

/* What the wire calls in the adapter that it serves. */
struct wire_client {
	/*
	 * Takes a packet for this adapter.  On loopback it runs inside the sender's wire_xmit; for
	 * a packet from another process it runs inside wire_process_progress.  Packet and payload
	 * are valid until it returns.
	 */
	void (*receive)(void *user, const struct pkt *pkt);
	/* The same for packets to a group and for Ethernet frames; returns false if nobody here
	 * wants the packet.  NULL: nobody ever wants one. */
	bool (*receive_group)(void *user, const struct pkt *pkt);
	/* Takes a frame of RoCE that the port has sent or received, for sniffers; the packet is not
	 * for this adapter.  May be NULL. */
	void (*sniff)(void *user, const struct pkt *pkt);
	/*
	 * Takes packets from another process as wire/short_send.h describes them, which are not counted
	 * yet.  The client returns how many it has taken and counted.  It has done nothing with the
	 * next one, which comes again as a packet.  May be NULL.
	 */
	uint32_t (*receive_short_sends)(void *user, const struct short_send *b);
	/* Calls wire_deliver_late when the clock (base/clock.h) has come to that time; a later call
	 * takes the place of the one before.  NULL: no packet is ever late. */
	void (*wake_at)(void *user, uint64_t deadline_ns);
	/* Takes a packet that the port has sent out of the fabric, of at most one path MTU, in a
	 * process that carries.  May be NULL. */
	void (*carry)(void *user, const struct pkt *pkt);
	void *user;
};

struct gsi_datagram;
struct key_violation;

struct wire_process_attr {
	const struct registry *registry;
	const struct subnet *subnet;
	struct slot *slots; /* REGISTRY_SLOTS entries */
	uint16_t slot;	    /* our own */
	/* Our own; NULL: ports count what they send without its destination. */
	struct traffic *traffic;
	/* Gets the shared memory for the first packet to a process (slow path); as
	 * fabric_open_channel.  NULL: loopback only.  The wire holds no lock, but its caller may
	 * hold some. */
	int (*open_channel)(void *user, uint16_t peer, int *fd, size_t *bytes, int *side);
	/* Hears that a switch's port has not let a packet of ours pass.  NULL: nobody wants to
	 * know. */
	void (*violated)(void *user, const struct key_violation *v);
	/* Sends a datagram to queue pair 1 of a port, without waiting; false: it is lost.  NULL: all
	 * are lost. */
	bool (*send_gsi)(void *user, const struct gsi_datagram *d);
	/* Hears that a queue pair of an Ethernet port has joined a group, or left it.  NULL: nobody
	 * wants to know. */
	void (*group)(void *user, uint32_t row, const union ib_gid *gid, bool joins);
	bool expose; /* lay memory and responders open to peers */
	/* The process is no program, but carries what one port sends out of the fabric
	 * (tie/carrier.h).  These packets come to it in packets of the path MTU, with their
	 * payloads. */
	bool carries;
	void *user;
};

/* From now on 'emulated' hears, in whichever thread makes progress, that something has happened in
 * an emulated function (registry/emulation.h). */
void wire_process_hear_emulated(struct wire_process *h, void (*emulated)(void));

int wire_process_create(const struct wire_process_attr *attr, struct wire_process **out) must_check;
void wire_process_destroy(struct wire_process *h);
/* Adds the channel that a peer has opened to us (fabric_client_ops.channel).  Takes over fd.
 * Harmless if we have the channel already. */
int wire_process_add_channel(struct wire_process *h, uint16_t peer, int fd, size_t bytes, int side);
/* Drops the channel of a process that has ended.  The next progress delivers what it had sent, and
 * only then releases the memory; so this never waits. */
void wire_process_drop_channel(struct wire_process *h, uint16_t peer);
/* Takes a datagram that queue pair 1 of a port has sent to a queue pair of this process, for the
 * next progress.  It never waits: a datagram for which there is no room is lost. */
void wire_process_take_gsi(struct wire_process *h, const struct gsi_datagram *d);
/* Delivers what other processes have sent.  O(1) when there is nothing.  True if anything was
 * delivered, or if the caller should try again what was told WIRE_BUSY: a peer that makes room
 * raises our inbox. */
bool wire_process_progress(struct wire_process *h);

/* The number of links of a process that drain (wire/link.h). */
#define WIRE_PROCESS_LINKS 4u
/* Stores the descriptors of the links that have one.  A descriptor is readable when
 * wire_process_progress has something to do at its link.  Returns how many there are. */
unsigned wire_process_fds(const struct wire_process *h, int fds[WIRE_PROCESS_LINKS]);

/* The process has taken files back that it had laid open.  Peers that still map them would keep the
 * memory, so this tells them to let go. */
void wire_process_files_ended(struct wire_process *h);
/* Lets go of the files that peers have taken back since the last call.  True: there were some.
 * Only one thread calls it at a time.  It is cheap if there is nothing, and makes system calls if
 * there is. */
bool wire_process_let_go(struct wire_process *h);

int wire_create(struct wire_process *h, uint32_t port_row, struct wire **out) must_check;
void wire_destroy(struct wire *w);
/* client NULL detaches: when it has returned, nobody is in the client's receive.  Must not be
 * called from within receive. */
void wire_attach(struct wire *w, const struct wire_client *client);

const struct subnet *wire_subnet(const struct wire *w);
uint32_t wire_port_row(const struct wire *w);
/* The counters of this port in this process, for wire/counter_shard.h. */
_Atomic(uint64_t) *wire_counters(struct wire *w);
/* The cells in which this port counts what it sends, by destination (wire/traffic.h); NULL: it uses
 * its counters. */
struct traffic *wire_traffic(const struct wire *w);

/*
 * Sends one packet.  The wire keeps no reference to the payload after it returned, with one
 * exception: a reliable request (RC, XRC, DC) with ack_req and run_keys set, to another process,
 * may be sent by reference, and the peer reads the payload from our memory before it acknowledges;
 * if it is a READ that names the places of its answer (pkt.runs), the peer may write there.  The
 * requester keeps the memory in place until then, as it must for hardware, or it takes the payload
 * or the places back.
 */
enum wire_verdict wire_xmit(struct wire *w, const struct pkt *pkt);

/*
 * Takes back what queue pair sqpn has sent to dqpn by reference.  The peer takes for lost what it
 * has not read when this returns.  That holds for a stopped peer too, and nobody waits for it.  The
 * caller has set the word that the queue pair's packets name (pkt.withdrawn), so nothing follows.
 * True: a peer may be reading some of it until expose_revoke has returned.
 */
bool wire_withdraw(struct wire *w, uint32_t dqpn, uint32_t sqpn);
/*
 * Takes back, in the same way, all that the process has sent to anyone by reference to this memory
 * under this key (pkt.run_keys).  'lost' hears of each queue pair concerned, under a lock of the
 * wire: it must not call the wire.
 */
bool wire_withdraw_key(struct wire *w, uint32_t key, struct run memory,
		       void (*lost)(void *user, uint32_t sqpn), void *user);

/* What we lay open to peers (exposure/expose.h). */
struct expose *wire_expose(struct wire *w);
/* As wire_expose, for a process. */
struct expose *wire_process_expose(struct wire_process *h);
/* All slots of the registry. */
struct slot *wire_process_slots(struct wire_process *h);
/*
 * What the process that owns (path, dqpn) lays open, if both ports are up and the process lives.
 * NULL if it is this process, or not connected.  The caller is a reader.
 */
struct remote *wire_remote(struct wire *w, const struct path *path, uint32_t dqpn);
/* What each slot's process lays open, for remote_living.  NULL: this process reaches nobody's
 * memory. */
const _Atomic(struct remote *) *wire_remotes(const struct wire *w);
/* True if this process owns the number. */
bool wire_owns(const struct wire *w, uint32_t qpn);
/* True if the path leads out of the fabric, where packets may be lost that are sent faster than their
 * receiver takes them. */
bool wire_leads_out(const struct wire *w, const struct path *path);
/* The largest payload of a datagram: 4096, or what the network takes that an Ethernet port is tied
 * to. */
uint32_t wire_datagram_max(const struct wire *w);
/* Maps what the process of dqpn lays open.  Control path. */
void wire_remote_connect(struct wire *w, const struct path *path, uint32_t dqpn);
/* How many processes have ended so far: the same processes live while that number stays. */
uint32_t wire_process_ends(const struct wire *w);
/* All slots, and our own index. */
struct slot *wire_slots(const struct wire *w);
uint16_t wire_slot(const struct wire *w);
/* Delivers packets that a fault had held back until now (wire/fault.h). */
void wire_deliver_late(struct wire *w);
/* Delivers all that has come to the wire's process until the call; it may also deliver what comes
 * meanwhile.  Control path: waits for a thread that is delivering. */
void wire_catch_up(struct wire *w);

/* Not 0: somebody observes, so requests have to make packets (wire/tap.h). */
const _Atomic(uint32_t) *wire_observers(const struct wire *w);

/*
 * True if the process of dqpn has not taken all packets of this one yet although it is neither
 * stopped nor dead: then it waits for a processor.  Reads /proc.  *up_to is 0 at the first question;
 * the next ones ask for what the first one found, not for what was sent since.
 */
bool wire_peer_is_behind(struct wire *w, const struct path *path, uint32_t dqpn,
			 uint64_t *up_to) must_check;
/* True if the process of dqpn has sent something that this one has not taken yet, or takes now. */
bool wire_peer_is_unheard(struct wire *w, const struct path *path, uint32_t dqpn) must_check;

/*
 * Called after WIRE_BUSY.  Waits some microseconds for the process of dqpn to take out what is
 * there.  True: there is room for more.
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
 * to, once for each reason that it has; it may get more than that.
 */
#define WIRE_GROUP_BITS	  256u
#define WIRE_GROUP_FRAMES 0u /* Ethernet frames */
unsigned wire_group(const union ib_gid *gid);
void wire_listen(struct wire *w, unsigned group);
void wire_unlisten(struct wire *w, unsigned group);
/* The same for the group of a GID, of which the network hears that the port is tied to. */
void wire_join(struct wire *w, const union ib_gid *gid);
void wire_leave(struct wire *w, const union ib_gid *gid);
/*
 * Passes a frame, or a datagram to a group, that has come to the port from outside the fabric to the
 * other processes that listen there.  The port has not sent it, so it does not count as sent.
 * WIRE_LOST: nobody listens, or the port is down.
 */
enum wire_verdict wire_arrive(struct wire *w, const struct pkt *pkt);
/*
 * Passes a packet from outside to a queue pair; its path says the addresses that it came with.
 * WIRE_LOST: the port is down, or no process at the port has the number.
 */
enum wire_verdict wire_arrive_packet(struct wire *w, const struct pkt *pkt);
/* The largest payload of such a packet that stands for several; 0: each has to come by itself. */
uint32_t wire_arrive_most(struct wire *w, uint32_t dqpn);

/* Packets with bad keys, and how often the subnet's manager hears of them. */

/*
 * Says whether it is time to tell the subnet's manager of a bad key again.  A port with a bad
 * neighbour may see millions of bad keys in a second, while a trap that nobody has repressed is
 * under way once anyway; so the port tells of one of each kind in a while.  Only one of several
 * threads gets true.
 */
bool violation_due(_Atomic(uint64_t) *next_ns) must_check;
/* Describes the violation by the packet; struct key_violation explains 'row'. */
struct key_violation violation_of(const struct pkt *p, uint32_t row, enum key_violation_kind kind);
