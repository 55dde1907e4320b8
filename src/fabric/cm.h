/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program's files of /dev/infiniband/rdma_cm and the daemon agree on.
 *
 * The program's descriptor is the reading end of a pipe that the daemon made for one open.  It carries a byte
 * for each event, so that poll, epoll, O_NONBLOCK, fork and close work on it as they are; the event itself
 * waits in the daemon until GET_EVENT asks for it, because destroying or moving an id takes events back,
 * and their bytes.  A program that has got the descriptor from another one cannot write to it.
 *
 * A command goes as the program wrote it; the structures are those of rdma/rdma_user_cm.h.
 */
#pragma once

#include <stdint.h>

/* The kernel gives numbers of the misc class as it goes. */
#define CM_MAJOR 10u
#define CM_MINOR 58u

/*
 * By this IPv4 address programs of all hosts name a port (docs/connections.md); with 127 in the first byte it
 * is one of the loopback interface, too.
 */
#define CM_HOSTS_OF_BLOCK 512u
#define CM_PORTS_OF_HOST  3u /* in a block of addresses */
static inline void cm_port_address(uint32_t host, uint32_t index, uint8_t ip[4])
{
	ip[0] = 198;
	ip[1] = (uint8_t)(18 | (host >> 8 & 1));
	ip[2] = (uint8_t)host;
	ip[3] = (uint8_t)(index + 1 + CM_PORTS_OF_HOST * (host / CM_HOSTS_OF_BLOCK));
}

/* The largest command, which brings six path records, and the largest answer. */
#define CM_MOST_IN   512u
#define CM_MOST_OUT  512u
#define CM_WHY_BYTES 384u

/* ---- what rdma/rdma_user_cm.h lacks where the kernel's headers are older than Linux 6.17 ---- */

/* A program queues an event for an id of its own.  librdmacm's rdma_resolve_addrinfo does so when it has resolved
 * a name. */
#define CM_COMMAND_WRITE_EVENT 24u
struct cm_write_event {
	uint32_t id;
	uint32_t reserved;
	uint32_t event; /* RDMA_CM_EVENT_USER or RDMA_CM_EVENT_INTERNAL */
	uint32_t status;
	uint64_t arg;
	uint8_t rest[296]; /* of the union of all events' parameters, of which arg is a member */
};

/* ---- bodies of MSG_CM_* (fabric/protocol.h) ---- */

struct msg_cm_open {
	char host[64];
};
struct msg_cm_open_reply { /* with the pipe's end */
	uint64_t token;
};
struct msg_cm_is_file {
	uint64_t inode; /* of a pipe */
};
struct msg_cm_call {
	uint64_t token;
	uint64_t other; /* MIGRATE_ID: the file that the id comes from */
	uint32_t command;
	uint16_t privileged; /* the program may bind to privileged ports */
	uint16_t explain;    /* the answer is to say what an address was taken for */
	uint16_t in;	     /* bytes of the command that the program has given */
	uint16_t out;	     /* and room for the answer */
	uint8_t bytes[CM_MOST_IN];
};
struct msg_cm_call_reply {
	uint32_t length;
	uint32_t reserved;
	char why[CM_WHY_BYTES]; /* for people: what an address was taken for; empty: nothing to say */
	uint8_t bytes[CM_MOST_OUT];
};

/* For people: the first id from that number of that host on; those of later hosts follow. */
#define CM_NO_ID UINT32_MAX
struct msg_cm_id {
	uint32_t number;
	uint32_t host;
};
struct msg_cm_id_reply {
	uint32_t number; /* CM_NO_ID: there is none, and all else is 0 */
	int32_t pid;	 /* of the process that opened its file */
	uint32_t host;	 /* index of its host */
	uint32_t row;	 /* of the port that it is bound to; SUBNET_NONE: none */
	uint32_t qpn;	 /* 0: none */
	uint16_t space;	 /* of enum rdma_ucm_port_space */
	uint8_t qp_type;
	uint8_t state;	  /* as the kernel numbers them: 0 IDLE to 10 DESTROYING */
	uint8_t src[128]; /* socket addresses; of family 0: none */
	uint8_t dst[128];
};
