/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What processes and softhcad say to each other: fixed-size messages on a SOCK_SEQPACKET socket,
 * with descriptors attached (SCM_RIGHTS).  A request carries a sequence number that its reply
 * repeats; a notification from the daemon has sequence number 0.
 *
 * Neither end trusts the other: a message is malformed if its length, type, number of descriptors
 * or strings differ from the table in protocol.c, and its connection is closed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fabric/cm.h"
#include "fabric/options.h"
#include "fabric/umad.h"
#include "prm/mad.h"
#include "registry/capture.h"
#include "registry/registry.h"

#define MSG_MAGIC   0x73686370u /* "shcp" */
#define MSG_VERSION 29u		/* version of all that follows, and of registry/ and exposure/ */

#define FABRIC_NAME_BYTES      64u   /* host and fabric names, with their NUL */
#define FABRIC_PATH_BYTES      256u  /* path of an attribute, with its NUL */
#define FABRIC_TEXT_BYTES      128u  /* text of an attribute */
#define FABRIC_NETDEVS_BYTES   1024u /* text of --netdev, with its NUL */
#define FABRIC_DEFAULT	       "default"
#define FABRIC_DEFAULT_HOST    "host1"
#define FABRIC_MAX_HOSTS       65535u
#define FABRIC_SM_PRIORITY_MAX 15u   /* of a subnet manager (IBTA 14.2.5.13) */
#define FABRIC_TIMEOUT_MS      10000 /* for an answer, and for the start of a daemon */

/*
 * What a daemon tells its starter: 0 once it serves, a negative errno that says why it ends, or
 * this:
 */
#define FABRIC_ANOTHER_SERVES 1

#define FABRIC_CHANNEL_BYTES (1u << 20) /* of the memory that two processes share */

#define FABRIC_COUNTERS (PORT_UNICAST_RCV_PACKETS + 1u) /* stored ones and derived ones */

#define MSG_MAX_FDS 3u

/* The descriptors that come with the replies to MSG_HELLO and MSG_INFO. */
enum hello_fd { HELLO_FD_REGISTRY, HELLO_FD_SUBNET, HELLO_FD_SLOTS, HELLO_FDS };

enum msg_type {
	MSG_HELLO,    /* take a slot */
	MSG_LEASE,    /* hold the daemon without a slot, and have a host's device tree */
	MSG_NUMBERS,  /* get a chunk of QPNs, SRQNs or mkey indices */
	MSG_CHANNEL,  /* get shared memory with a peer; as a notification: a peer opened it */
	MSG_FUNCTION, /* get the memory of a PCI function that our host's card emulates; as a
			 notification: a process that had one is gone */
	MSG_GONE,     /* notification: a peer is gone; as a request: we have forgotten it */
	MSG_PORT,     /* notification: a port changed */
	MSG_VIOLATED, /* a packet had a bad key; this has no reply */
	MSG_GSI,      /* a datagram of ours to queue pair 1 of a port; this has no reply; as a
			 notification: one from there */
	MSG_GROUP,    /* a queue pair of a port has joined a group, or left; this has no reply; as a
			 notification to the port's carrier: the first one has, or the last */
	MSG_ATTR,     /* read the text of a live attribute */
	MSG_DESCRIBE, /* open a stream whose every record becomes a node's description */
	MSG_INFO,     /* read about the fabric, and get its shared memory for reading */
	MSG_HOST,     /* read a row of the host table */
	MSG_SLOT,     /* read who has a slot */
	MSG_COUNTERS, /* read the totals of a port */
	MSG_SENT,     /* read the bytes that ports have sent, for many rows */
	MSG_STAY,     /* do not leave with the last connection */
	MSG_SHUTDOWN, /* leave now; the connection closes when everything is removed */
	MSG_SET_PORT, /* take a port down or up */
	MSG_LINK,     /* pull a cable of the subnet or put it back */
	MSG_NODE,     /* take a node out of the subnet or put it back */
	MSG_IMPAIR,   /* set faults of links, for MADs or for packets */
	MSG_FAULT, /* read a rule, and what it has done; as a notification: there is a new one for
			 objects */
	MSG_TIE,   /* tie an Ethernet port, or say that its carrier's link changed */
	MSG_UNTIE, /* bring it back to the segment that all share */
	MSG_TIED,  /* read what it is tied to */
	/* Capture packets of ports, until the connection ends; as a notification: a ring for them,
	 * to the process that writes it and to the one that reads it. */
	MSG_CAPTURE,
	MSG_CAPTURE_END, /* notification: the ring has lost its reader, or its writer */
	/* For files that carry MADs; fabric/umad.h. */
	MSG_UMAD_OPEN,
	MSG_ISSM_OPEN, /* the reply comes when the port's token is ours */
	MSG_UMAD_REGISTER,
	MSG_UMAD_UNREGISTER,
	MSG_UMAD_PKEY,	    /* change the layout of the header */
	MSG_UMAD_FETCH,	    /* get a received message that is too long for the socket */
	MSG_UMAD_IN_FLIGHT, /* ask whether this send would be a duplicate */
	MSG_UMAD_ADOPT,	    /* ask which file a descriptor from execve or a peer belongs to */
	/* For files of rdma_cm; fabric/cm.h. */
	MSG_CM_OPEN,
	MSG_CM_IS_FILE, /* ask whether a descriptor from execve or a peer is such a file's */
	MSG_CM_CALL,
	MSG_CM_ID, /* read about one of the ids of all programs */
	MSG_TYPES,
};
/* For traces. */
const char *msg_type_name(enum msg_type type);

/* The layout of the head is the same in every version, so that two versions can recognise each
 * other. */
struct msg_head {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t length; /* of the whole message */
	uint32_t seq;
	uint32_t reply;
	int32_t status; /* of a reply: 0, or a negative errno, and then no body follows */
};

struct msg_hello {
	char host[FABRIC_NAME_BYTES]; /* empty: the first host */
};

struct msg_lease {
	char host[FABRIC_NAME_BYTES]; /* empty: the first host */
};

struct msg_hello_reply {
	uint16_t slot;
	uint16_t nports;
	uint32_t rows[SLOT_PORTS];
	uint32_t reserved;
	uint64_t registry_bytes;
	uint64_t subnet_bytes;
	uint64_t slots_bytes;
};

struct msg_numbers {
	uint32_t kind; /* enum number_kind */
};

struct msg_numbers_reply {
	uint32_t first;
};

struct msg_peer {
	uint32_t peer;
};

struct msg_channel {
	uint32_t peer;
	uint32_t side;
	uint64_t bytes;
};

struct msg_violated {
	struct key_violation violation;
};

struct msg_gsi {
	struct gsi_datagram datagram;
};

struct msg_group {
	uint32_t row;
	uint32_t joins;
	union ib_gid gid;
};

struct msg_port {
	uint32_t row;
	uint32_t event;
};

struct msg_set_port {
	uint32_t row;
	uint32_t state; /* IB_PORT_DOWN or IB_PORT_ACTIVE */
};

/* Names the port by its host's name, or by id or description of its node. */
struct msg_link {
	char node[FABRIC_NAME_BYTES];
	uint32_t port;
	uint32_t up;
};

struct msg_node {
	char node[FABRIC_NAME_BYTES];
	uint32_t there;
};

/* What faults concern. */
enum impair_what {
	IMPAIR_MADS = 1,
	IMPAIR_DATA = 2,
	IMPAIR_CLEAR = 4, /* forget all of these first */
	IMPAIR_MINE = 8	  /* forget the rule when this connection ends; not for MADs */
};

struct msg_impair {
	char node[FABRIC_NAME_BYTES]; /* empty: all links */
	uint32_t port;
	uint32_t what; /* mask of enum impair_what */
	/* For MADs loss, duplicates, delay and jitter of it.  seed: 0: go on; else MADs forget what
	 * was set, and begin with this.  The daemon fills the link in. */
	struct fault_rule rule;
};

/* Where the rule is: a row, and the number that the rule has there; 0: nothing was set. */
struct msg_impair_reply {
	uint32_t row;
	uint32_t set;
};

/* Row of a rule; -ENOENT behind the last one. */
struct msg_fault_reply {
	struct fault_rule rule; /* set is 0: the row has none */
	uint64_t seen, done;
};

#define FABRIC_TIE_BYTES     128u /* bytes of the words that say what a port is tied to */
#define FABRIC_WARNING_BYTES 256u

/* Ties a port to a carrier (tie/carrier.h), or to another port by a cable. */
struct msg_tie {
	uint32_t row;
	uint32_t peer; /* row of the port at the other end; SUBNET_NONE: we carry its frames */
	uint32_t up;
	uint32_t mtu; /* of the network behind the carrier (enum ib_mtu); 0: as the port's own */
	union ib_gid gid; /* the port's address in that network; zeros: the port keeps its own */
	char text[FABRIC_TIE_BYTES];
	char warning[FABRIC_WARNING_BYTES]; /* what has gone wrong; empty: nothing new */
};

struct msg_tied_reply {
	uint32_t tied;
	uint32_t peer;
	int32_t pid;  /* of the carrier; 0: it is a cable, or the carrier has ended */
	uint32_t all; /* all that is to come in has come in */
	uint64_t carried[CARRIED_COUNTS];
	char text[FABRIC_TIE_BYTES];
	char warning[FABRIC_WARNING_BYTES]; /* the carrier's last warning; empty: it gave none */
};

#define FABRIC_CAPTURE_PORTS 64u /* that can be named; all: any number */

struct msg_capture {
	struct capture_want want;
	uint32_t nrows; /* 0: the ports of all hosts */
	uint32_t rows[FABRIC_CAPTURE_PORTS];
};

#define CAPTURE_DAEMON 0xffffffffu /* the ring's writer is the daemon */

struct msg_capture_ring {
	uint32_t id;	/* of the capture */
	uint32_t slot;	/* of the writer, or CAPTURE_DAEMON */
	int32_t pid;	/* the writer's */
	uint32_t ports; /* as struct capture_attr */
	uint32_t nsources;
	uint32_t first_row; /* of the port that source 0 is */
	struct capture_want want;
};

struct msg_capture_end {
	uint32_t id;
	uint32_t slot;
};

struct msg_attr {
	char host[FABRIC_NAME_BYTES];
	char path[FABRIC_PATH_BYTES];
};

struct msg_attr_reply {
	uint32_t length;
	char text[FABRIC_TEXT_BYTES];
};

struct msg_index {
	uint32_t index;
};

struct msg_host {
	char name[FABRIC_NAME_BYTES]; /* empty: the next field says which */
	uint32_t index;
};

struct msg_info_reply {
	char fabric[FABRIC_NAME_BYTES];
	char release[FABRIC_NAME_BYTES];
	char model[FABRIC_NAME_BYTES];
	uint32_t nhosts;
	int32_t pid;
	uint32_t stay;
	uint32_t connections;
	uint64_t registry_bytes;
	uint64_t subnet_bytes;
	uint64_t slots_bytes;
	char topology[FABRIC_PATH_BYTES];      /* the file that it was made from, or empty */
	char link_types[LINK_TYPES_BYTES];     /* a host's devices; empty: as in the topology */
	char device_names[DEVICE_NAMES_BYTES]; /* as --device-names says them, or empty */
	char netdevs[FABRIC_NETDEVS_BYTES];    /* interfaces as --netdev names them, or empty */
	uint32_t external_sm;		       /* only programs manage the subnet */
	uint32_t sm_priority; /* of the built-in subnet manager; 0: it stands back */
};

struct msg_host_reply {
	char name[FABRIC_NAME_BYTES];
	uint32_t index;
	uint32_t nports;
	uint32_t rows[SLOT_PORTS];
};

struct msg_slot_reply {
	uint32_t used;
	int32_t pid;
	uint32_t host;
	uint32_t generation;
};

struct msg_counters_reply {
	uint64_t total[FABRIC_COUNTERS];
};

#define FABRIC_SENT_ROWS 40u /* of a reply: no longer than others */

struct msg_sent_reply {
	uint64_t bytes[FABRIC_SENT_ROWS]; /* from the requested row on; 0 beyond the last */
};

struct msg {
	struct msg_head head;
	union {
		struct msg_hello hello;
		struct msg_lease lease;
		struct msg_hello_reply hello_reply;
		struct msg_numbers numbers;
		struct msg_numbers_reply numbers_reply;
		struct msg_peer peer;
		struct msg_channel channel;
		struct msg_violated violated;
		struct msg_gsi gsi;
		struct msg_group group;
		struct msg_port port;
		struct msg_set_port set_port;
		struct msg_link link;
		struct msg_node node;
		struct msg_impair impair;
		struct msg_impair_reply impair_reply;
		struct msg_fault_reply fault_reply;
		struct msg_tie tie;
		struct msg_tied_reply tied_reply;
		struct msg_capture capture;
		struct msg_capture_ring capture_ring;
		struct msg_capture_end capture_end;
		struct msg_attr attr;
		struct msg_attr_reply attr_reply;
		struct msg_index index;
		struct msg_info_reply info_reply;
		struct msg_host host;
		struct msg_host_reply host_reply;
		struct msg_slot_reply slot_reply;
		struct msg_counters_reply counters_reply;
		struct msg_sent_reply sent_reply;
		struct msg_umad_open umad_open;
		struct msg_umad_open_reply umad_open_reply;
		struct msg_umad_register umad_register;
		struct msg_umad_agent umad_agent;
		struct msg_umad_file umad_file;
		struct msg_umad_fetch umad_fetch;
		struct msg_umad_fetch_reply umad_fetch_reply;
		struct msg_umad_in_flight umad_in_flight;
		struct msg_umad_adopt umad_adopt;
		struct msg_umad_adopt_reply umad_adopt_reply;
		struct msg_cm_open cm_open;
		struct msg_cm_open_reply cm_open_reply;
		struct msg_cm_is_file cm_is_file;
		struct msg_cm_call cm_call;
		struct msg_cm_call_reply cm_call_reply;
		struct msg_cm_id cm_id;
		struct msg_cm_id_reply cm_id_reply;
	};
};

enum msg_kind { MSG_REQUEST, MSG_REPLY, MSG_NOTE, MSG_KINDS };

/*
 * Fills in the head and leaves the body as it is.  status != 0 (replies only) leaves the body out.
 */
void msg_prepare(struct msg *m, enum msg_type type, enum msg_kind kind, uint32_t seq, int status);
enum msg_kind msg_kind(const struct msg *m);

/* 0 or negative errno; -EAGAIN only with MSG_DONTWAIT in flags. */
int msg_send(int sock, const struct msg *m, const int *fds, unsigned nfds, int flags) must_check;

/*
 * Receives and validates one message from a sender of the kinds in 'allowed' (bit mask of enum
 * msg_kind).  Unused entries of fds are -1. -ECONNRESET at the end of the connection, -EPROTO from
 * another version (the head alone is valid then), -EMFILE the message is valid but this process had
 * no room for its descriptors, which are lost; -ENOMEM the kernel wants for something, and the
 * message waits; -EBADMSG malformed, -EAGAIN, or what recvmsg says.
 */
int msg_recv(int sock, struct msg *m, int fds[MSG_MAX_FDS], unsigned allowed, int flags) must_check;

void msg_close_fds(int fds[MSG_MAX_FDS]);

/*
 * Allows letters, digits, '.', '_' and '-', not beginning with '.' or '-': safe in paths, shells,
 * JSON.
 */
bool fabric_name_ok(const char *name);
