/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program's umad and issm files and the daemon agree on.  Both descriptors are SEQPACKET
 * sockets, which the daemon makes for one open each: poll, fcntl, dup, fork and close work on them
 * as they are, and the last close ends the socket.
 *
 * umad, program to daemon: the bytes given to write(), unchanged, in the file's own layout.  Above
 * UMAD_INLINE_BYTES it is a struct umad_marker, and the bytes are in a memfd.
 *
 * umad, daemon to program: the bytes that read() returns, unchanged, if the MAD has at most 256
 * bytes; else a struct umad_marker, and the message waits in the daemon for
 * MSG_UMAD_FETCH.  A reader whose buffer is small, and every reader while there are markers, peeks
 * before it takes, so a message that does not fit stays where it is, and poll stays true.
 *
 * The state of the file that a write or read needs lies in a page that the daemon and all holders of
 * the file map; programs count their sends there.  The daemon believes nothing that it reads there.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define UMAD_MAGIC	   0x64616d75u /* "umad" */
#define UMAD_AGENTS	   32u
#define UMAD_HEADER_OLD	   56u
#define UMAD_HEADER_NEW	   64u
#define UMAD_INLINE_BYTES  65536u
#define UMAD_MESSAGE_BYTES (UMAD_HEADER_NEW + 256u) /* the longest message without a marker */
#define UMAD_IN_FLIGHT	   4096u
#define UMAD_MOST_SENDS	   65536u	/* under way from one file; one more gets ENOMEM */
#define UMAD_MOST_RECEIVED 16384u	/* MADs that wait for a reader; more are dropped */
#define UMAD_MOST_WAITING  (256u << 20) /* bytes that wait in all files together */
#define UMAD_MOST_OF_A_FILE \
	(64u << 20) /* more than one file's share of these, so that others have some */
/* Of a MAD that write takes; what is longer gets ENOMEM.  A receiver that reads has room for it. */
#define UMAD_MOST_MESSAGE   (UMAD_MOST_OF_A_FILE - 512u)
#define UMAD_SURE_OF_A_FILE (1u << 20) /* a file has this much, whatever others have left unread */

/* Shorter than any write or read can be, so that nobody takes it for one. */
struct umad_marker {
	uint32_t magic;
	uint32_t id;	 /* id of a message for MSG_UMAD_FETCH; 0: the memfd has it */
	uint64_t length; /* with the header */
};

/* The id of a marker that a reader puts before 'length' bytes that it gives back to the stream's
 * end: they came in the moment when it took its message off, and are not those that it had seen
 * there. */
#define UMAD_RETURNED 0xffffffffu

/* An agent in the page, in one word; 0: there is none. */
#define UMAD_AGENT_THERE     (1u << 0)
#define UMAD_AGENT_QP1	     (1u << 1)
#define UMAD_AGENT_RMPP	     (1u << 2) /* rmpp_version 1 */
#define UMAD_AGENT_USER_RMPP (1u << 3)

struct umad_page {
	uint32_t magic;
	uint32_t port; /* number on its device */
	uint32_t gids; /* entries of its table */
	uint32_t is_switch;
	_Atomic(uint32_t) header_bytes; /* UMAD_HEADER_OLD or _NEW */
	_Atomic(uint32_t) gone;		/* the device has gone: read and write fail with EIO */
	_Atomic(uint32_t) sends;   /* under way, and reports of timeouts that wait in the daemon */
	_Atomic(uint32_t) longs;   /* wait for MSG_UMAD_FETCH; told before their markers go */
	_Atomic(uint64_t) dropped; /* MADs that nobody read in time */
	_Atomic(uint32_t) agents[UMAD_AGENTS];
	/* Numbers of sends, by umad_in_flight_at.  A writer adds one before it sends, and the
	 * daemon takes it away when the send is over.  0 says that a write is no duplicate; else
	 * ask MSG_UMAD_IN_FLIGHT. */
	_Atomic(uint16_t) in_flight[UMAD_IN_FLIGHT];
};

/* The program chose the low half of the TID. */
static inline uint32_t umad_in_flight_at(uint32_t tid_low, uint8_t class)
{
	return ((tid_low ^ (uint32_t) class << 24) * 0x9e3779b1u) >> 20;
}

/* ---- bodies of MSG_UMAD_*, MSG_ISSM_OPEN (fabric/protocol.h) ---- */

struct msg_umad_open { /* both kinds */
	char host[64];
	char name[16]; /* "umad0", "issm0" */
	uint32_t wait; /* issm: wait until the token is free */
};
enum umad_open_fd { UMAD_OPEN_FD_SOCKET, UMAD_OPEN_FD_PAGE, UMAD_OPEN_FDS };
struct msg_umad_open_reply { /* with 2 descriptors: socket, page; of issm 1: socket */
	uint64_t token;
};
struct msg_umad_register {
	uint64_t token;
	uint64_t methods[2];
	uint32_t qpn, oui, flags;
	uint8_t class, class_version, rmpp_version, second; /* REGISTER_AGENT2 sets 'second' */
};
struct msg_umad_agent { /* reply of register; request to unregister */
	uint64_t token;
	uint32_t id;
	uint32_t undo; /* the program never learned the id: undo the registration */
};
struct msg_umad_file { /* MSG_UMAD_PKEY */
	uint64_t token;
};
struct msg_umad_fetch {
	uint64_t token;
	uint32_t id;
	uint32_t reserved;
	uint64_t room; /* room that the reader has */
};
struct msg_umad_fetch_reply { /* with the message in 1 memfd */
	uint64_t length;
	uint32_t kept; /* too long for 'room': it stays, and the memfd has its beginning only */
	uint32_t reserved;
};
struct msg_umad_in_flight { /* status: 0, or -EINVAL for a duplicate */
	uint64_t token;
	uint32_t agent;
	uint8_t header[24];
	uint8_t gid[16];
	uint16_t lid;
	uint8_t grh, reserved;
};
/* With the page in 1 memfd. */
struct msg_umad_adopt {
	uint64_t inode; /* inode of the program's end of the socket */
};
struct msg_umad_adopt_reply {
	uint64_t token;
	uint32_t number; /* of umad<N> on its host */
	uint32_t reserved;
};

/*
 * What an agent may not send, whatever else is under way: those of the kernel's checks of a write
 * that look at nothing but the message and its agent.  The preload library makes them before it
 * writes, because write(2) has to say why.  The daemon makes them because a program can write to
 * the socket without the library.
 */

struct mad_sender {
	uint32_t gids;	/* entries of its port's table */
	bool rmpp;	/* it was registered with rmpp_version 1 */
	bool user_rmpp; /* the program makes the packets itself */
};

/* Tells whether the message has to be made into packets.  'mad' has MAD_RMPP_BYTES. */
bool mad_sends_rmpp(const struct mad_sender *a, const uint8_t *mad) must_check;
/* Returns 0 or -EINVAL.  gid_index: -1 without a GRH; 'mad' has MAD_RMPP_BYTES of 'length'. */
int mad_send_check(const struct mad_sender *a, uint8_t sl, int gid_index, const uint8_t *mad,
		   size_t length) must_check;
