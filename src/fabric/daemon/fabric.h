/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's picture of a fabric.  One thread uses it, without locks.  The part that clients see
 * lies in the three shared segments, see registry/registry.h and subnet/subnet.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fabric/attr.h"
#include "fabric/daemon/cm/cm.h"
#include "fabric/daemon/loop/loop.h"
#include "fabric/daemon/node/net.h"
#include "fabric/daemon/pma/pma.h"
#include "fabric/daemon/sm/sm.h"
#include "fabric/daemon/sma/sma.h"
#include "fabric/daemon/topology.h"
#include "fabric/daemon/topology/plan.h"
#include "fabric/daemon/umad/umad.h"
#include "fabric/protocol.h"
#include "fabric/rundir.h"
#include "prm/ib.h"
#include "subnet/subnet.h"
#include "registry/registry.h"

/* Where a host of the topology lies in the subnet, whose rows have the same order. */
struct fabric_host {
	uint32_t first_node;
	uint32_t first_port;
	bool tree_written;
};

struct segment {
	void *memory;
	size_t bytes;
	int fd;
};

/*
 * Life of a slot: FREE -> TAKEN by a HELLO; TAKEN -> DRAINING when its process is gone, until each
 * peer that had a channel to it has forgotten it (acks_due) -> FREE, at the end of the free list.
 */
enum slot_state { SLOT_FREE, SLOT_TAKEN, SLOT_DRAINING };

#define SLOT_WORDS (REGISTRY_SLOTS / 64)

struct slot_row {
	enum slot_state state;
	uint32_t host;
	uint32_t generation;
	pid_t pid;
	uint64_t acks_due[SLOT_WORDS]; /* peers that may still touch the slot */
	uint64_t peers[SLOT_WORDS];    /* peers with a channel */
	int *channel; /* memfd per peer with a higher index; allocated with the first */
	uint16_t next_free;
};

/*
 * Free chunks of a number space.  They go out in the order in which they came back, so that a
 * number is reused as late as possible.
 */
struct numbers {
	uint16_t fifo[REGISTRY_CHUNKS];
	uint32_t head;
	uint32_t count;
	uint16_t owner_plus_1[REGISTRY_CHUNKS];
};

/* The other end of an Ethernet port's cable, as users set it. */
struct port_end {
	bool pulled;
	bool tied;
	uint32_t peer;		 /* port that its cable leads to; SUBNET_NONE: a carrier has it */
	uint32_t carrier_plus_1; /* slot of the carrier; 0: the carrier has ended */
	bool carrier_up;	 /* whether the link behind the carrier is up */
	/* The port has the address of the carrier's network, and these are its own GIDs. */
	bool renamed;
	struct subnet_gid_entry own[SUBNET_ETHERNET_GIDS];
	bool own_there[SUBNET_ETHERNET_GIDS];
	char text[FABRIC_TIE_BYTES];	    /* what the carrier leads to, in its words */
	char warning[FABRIC_WARNING_BYTES]; /* what has gone wrong there */
};

struct fabric {
	struct loop loop; /* runs all that the daemon does */
	char dir[RUNDIR_BYTES];
	char name[FABRIC_NAME_BYTES];
	/* For fabric_create, which takes one of them over: hosts, or a plan read from a file. */
	struct topology topology;
	struct plan plan;
	char topology_path[FABRIC_PATH_BYTES]; /* the topology's file; empty: none */
	char netdevs[FABRIC_NETDEVS_BYTES]; /* which interfaces were chosen, as text; empty: none */
	char link_types[LINK_TYPES_BYTES];  /* if all hosts are alike; empty: a file says them */
	char device_names
		[DEVICE_NAMES_BYTES]; /* as --device-names says them; empty: none were chosen */
	enum sm_mode sm_mode;
	uint32_t sm_priority; /* of the built-in SM; 0: it stands back for all others */
	struct fabric_host *hosts;
	uint32_t model; /* the model that devices say they are, see prm/model.h */

	struct segment registry_segment, subnet_segment, slots_segment;
	struct registry *registry;
	struct subnet subnet;
	struct slot *slots;
	struct net net;
	struct mad_fabric mad;
	struct sma sma;
	struct pma pma;
	struct sm sm;
	struct umad umad;
	struct cm cm;
	struct description_file *descriptions;
	bool managed; /* whether the six are open */

	struct port_end *ends;		 /* per port */
	uint64_t (*base)[PORT_COUNTERS]; /* per port: counts of processes that are gone */
	struct slot_row rows[REGISTRY_SLOTS];
	uint32_t faults_set; /* how often a rule has been set */
	/* By row of the rule: what processes that are gone have counted. */
	uint64_t fault_seen[FAULT_RULES], fault_done[FAULT_RULES];
	const void *fault_owner[FAULT_RULES]; /* the rule goes with it; NULL: it stays */
	uint16_t free_head, free_tail;
	struct numbers numbers[NUMBER_KINDS];
	uint32_t first_number; /* the first number that is given out; any value */
	/* Numbers are given out so that nobody can guess them, because packets come from outside. */
	bool numbers_random;
	struct function_file *functions;
};

/* ---- function.c: PCI functions that cards emulate ---- */

/* Tells whether this device of the host emulates a function. */
bool function_is_there(const struct fabric *f, uint32_t host, uint32_t device);
/*
 * Returns a descriptor of its memory, which the fabric owns and makes for the first who asks;
 * -ENODEV, or another negative errno.
 */
int function_memory(struct fabric *f, uint32_t host, uint32_t device) must_check;
void functions_free(struct fabric *f);

/* ---- fault.c: faults on demand ---- */

/*
 * Sets a rule in place of one that concerns the same; one that does nothing takes that away.  owner:
 * with whom the rule goes; NULL: it stays.  where: the row and the rule's number there, 0: none was
 * set.  -EINVAL: it makes no sense; -ENOSPC: there are FAULT_RULES.
 */
int fault_set(struct fabric *f, const struct fault_rule *rule, const void *owner,
	      struct msg_impair_reply *where) must_check;
/* Takes away the rules that go with that owner. */
void fault_owner_ended(struct fabric *f, const void *owner);
/* True if processes have to look for faults in what they send, receive and call. */
bool fault_observes(const struct fabric *f);
/* Takes all rules for packets away, or all others. */
void fault_clear(struct fabric *f, bool packets);
/* Takes over what the process has counted, whose slot is about to be given up. */
void fault_fold(struct fabric *f, uint32_t slot);
/* How many packets, requests or calls the rule has met, in all processes. */
void fault_count(const struct fabric *f, uint32_t row, uint64_t *seen, uint64_t *done);

/* ---- fabric.c: the whole ---- */

/* 0, or negative errno after it has logged what is wrong with the topology. */
int fabric_create(struct fabric *f) must_check;
void fabric_destroy(struct fabric *f);
/* Index of the host, or of the first host if name is empty; or -ENOENT. */
int64_t fabric_find_host(const struct fabric *f, const char *name) must_check;
/* The same for any name by which users call a host (names.c), and the row of a node of InfiniBand.
 * -ENOENT; -ENOTUNIQ: several have that description. */
int64_t fabric_called_host(const struct fabric *f, const char *name) must_check;
int64_t fabric_called_node(const struct fabric *f, const char *name) must_check;
/* Row of a port of that host, or SUBNET_NONE. */
uint32_t fabric_find_port(const struct fabric *f, uint32_t host, const char *hca, uint32_t number);
/*
 * Row of the attribute's port; of its device's first port, if it is the device's; or SUBNET_NONE.
 */
uint32_t fabric_find_attr(const struct fabric *f, uint32_t host, const struct attr *a);
/* The name of the host that a port is plugged into. */
const char *fabric_host_name(const struct fabric *f, uint32_t row);

/* Cables were pulled or put back: on return the SM has done what it can do in a moment. */
void manage_links(struct fabric *f);

/* ---- port.c: state of a port ---- */

/* Pulls the cable of a port or puts it back.  Returns 1 if that was a change, 0 if not; -ENOENT no
 * such row, -EINVAL no state that can be set. */
int port_set_state(struct fabric *f, uint32_t row, uint32_t state) must_check;
/* Gives a port of Ethernet the state that follows from both ends of its cable; 1 or 0 as above. */
int port_settle(struct fabric *f, uint32_t row);
/* The same for a port of InfiniBand.  Putting a cable back puts back both of its ends. */
bool port_pull(struct fabric *f, uint32_t row, bool down);

/* ---- names.c: writers of a node's description ---- */

/* *fd is the program's end of a stream; each of its records becomes the node's description. */
int description_open(struct fabric *f, uint32_t row, int *fd) must_check;
void descriptions_close(struct fabric *f);

/* ---- slots.c: processes, their channels, their counters ---- */

/* What the server sends to clients; NULL: nobody listens. */
struct slot_notes {
	void (*gone)(void *user, uint32_t to, uint32_t peer);
	void *user;
};

void slots_init(struct fabric *f);
/* Returns the slot's index, or -ENOSPC. */
int slot_take(struct fabric *f, uint32_t host, pid_t pid) must_check;
void slot_release(struct fabric *f, uint32_t slot, const struct slot_notes *notes);
/* The process in 'slot' has forgotten 'peer'. */
void slot_acked(struct fabric *f, uint32_t slot, uint32_t peer);
/* Counts for each slot how many other slots wait only for its acknowledgement to be free. */
void slot_debts(const struct fabric *f, uint32_t debts[REGISTRY_SLOTS]);
/*
 * Returns the channel's descriptor, which the fabric keeps, or a negative errno.  *fresh: it was
 * just created.
 */
int slot_channel(struct fabric *f, uint32_t slot, uint32_t peer, bool *fresh) must_check;
/* Returns a number of a new chunk, from which on its numbers are to be used, or a negative errno. */
int64_t slot_numbers(struct fabric *f, uint32_t slot, uint32_t kind) must_check;
/* Sum of the port's counter over its processes, with what the daemon itself counts there. */
uint64_t port_counter_total(const struct fabric *f, uint32_t row, enum port_counter counter);
/* Sum over its processes alone, also those that are gone. */
uint64_t port_counter_stored(const struct fabric *f, uint32_t row, enum port_counter counter);

/* ---- traffic.c: what processes have sent, by destination ---- */

/* Counts what was sent at all ports that it passed.  Call it before ways can change. */
void traffic_settle(struct fabric *f);
/* The same for a process that is gone; also frees its cells. */
void traffic_end(struct fabric *f, uint32_t slot);
/* What a port has sent and nobody has settled; 0 for counters other than data and packets sent. */
uint64_t traffic_pending(const struct fabric *f, uint32_t row, enum port_counter counter);

/* ---- text.c: attributes as text ---- */

/* Returns the length, -ENOENT, or -EINVAL: there is such an attribute, and reading it is this error. */
int attr_text(const struct fabric *f, uint32_t row, enum attr_group group, uint32_t index,
	      char *buf, size_t size) must_check;
int guid_text(uint64_t guid, char *buf, size_t size);
/* The same by path; host as in fabric_find_host. */
int attr_text_by_path(const struct fabric *f, const char *host, const char *path, char *buf,
		      size_t size) must_check;

/* ---- tree.c: the device trees of the hosts ---- */

/* Makes the directory for the trees. */
int trees_open(const struct fabric *f) must_check;
/* Writes a host's tree, unless it has been written. */
int tree_write(struct fabric *f, uint32_t host) must_check;
