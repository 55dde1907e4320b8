/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program's umad and issm files and the daemon agree on.  Both descriptors are SEQPACKET sockets,
 * made by the daemon for one open each: poll, fcntl, dup, fork and close work on them as they are, and
 * the end of the socket is the last close.
 *
 * umad, program to daemon: what write() was given, as it was given, in the file's own layout; above
 * UMAD_INLINE_BYTES a struct umad_marker, with a memfd at the end of which it is.  That memfd is of fixed size (sealed).
 * umad, daemon to program: what read() returns, as it returns it, if the MAD has at most 256 bytes; else
 * a struct umad_marker, and the message waits in the daemon for MSG_UMAD_FETCH.  A reader whose
 * buffer is small, and all while there are markers, peek before they take, so what does not fit stays where it
 * is, and poll goes on to be true.
 *
 * State of the file that a write or read needs lies in a page that the daemon writes and all holders of
 * the file map.  The daemon believes nothing that it reads there.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define UMAD_MAGIC	   0x64616d75u /* "umad" */
#define UMAD_AGENTS	   32u
#define UMAD_HEADER_OLD	   56u
#define UMAD_HEADER_NEW	   64u
#define UMAD_INLINE_BYTES  65536u
#define UMAD_MESSAGE_BYTES (UMAD_HEADER_NEW + 256u) /* the longest without a marker */
#define UMAD_MOST_HEAD	   (UMAD_HEADER_NEW + 64u)  /* the header and those of the MAD */
#define UMAD_IN_FLIGHT	   4096u
#define UMAD_MOST_SENDS	   65536u	/* under way from one file: then ENOMEM */
#define UMAD_MOST_RECEIVED 16384u	/* MADs that wait for a reader; more are dropped */
#define UMAD_MOST_WAITING  (256u << 20) /* bytes that wait in all files together */
#define UMAD_MOST_OF_A_FILE \
	(64u << 20) /* of these, more than one file's, so that others have some */
#define UMAD_SURE_OF_A_FILE (1u << 20) /* whatever others have left unread */

/* Shorter than any write or read can be. */
struct umad_marker {
	uint32_t magic;
	uint32_t id;	 /* of a message for MSG_UMAD_FETCH; 0: see the memfd */
	uint64_t length; /* header included */
};

/* The id of a marker that a reader puts before 'length' bytes: they came when it took its message off
 * the stream, and are not the ones that it had seen there.  They go back, to the stream's end. */
#define UMAD_RETURNED 0xffffffffu

/* An agent in the page, one word; 0: none. */
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
	_Atomic(uint32_t) gone;		/* the device: read and write are EIO */
	_Atomic(uint32_t) sends;   /* under way, and reports of timeouts that wait in the daemon */
	_Atomic(uint32_t) longs;   /* that wait for MSG_UMAD_FETCH; told before their markers go */
	_Atomic(uint64_t) dropped; /* MADs that nobody read in time */
	_Atomic(uint32_t) agents[UMAD_AGENTS];
	/* By umad_in_flight_at: so many sends.  A writer adds one before it sends, the daemon takes it
	 * away when the send is over. 0 says that a write is no duplicate; else ask MSG_UMAD_IN_FLIGHT. */
	_Atomic(uint16_t) in_flight[UMAD_IN_FLIGHT];
};

/* The low half of the TID is what the program chose. */
static inline uint32_t umad_in_flight_at(uint32_t tid_low, uint8_t class)
{
	return ((tid_low ^ (uint32_t) class << 24) * 0x9e3779b1u) >> 20;
}

/* ---- bodies of MSG_UMAD_*, MSG_ISSM_OPEN (fabric/protocol.h) ---- */

struct msg_umad_open { /* both kinds */
	char host[64];
	char name[16]; /* "umad0", "issm0" */
	uint32_t wait; /* issm: until it is free */
};
enum umad_open_fd { UMAD_OPEN_FD_SOCKET, UMAD_OPEN_FD_PAGE, UMAD_OPEN_FDS };
struct msg_umad_open_reply { /* with 2 descriptors: socket, page; of issm 1: socket */
	uint64_t token;
};
struct msg_umad_register {
	uint64_t token;
	uint64_t methods[2];
	uint32_t qpn, oui, flags;
	uint8_t class, class_version, rmpp_version, second; /* by REGISTER_AGENT2 */
};
struct msg_umad_agent { /* reply of register; request to unregister */
	uint64_t token;
	uint32_t id;
	uint32_t undo; /* the program never learned the id: as if there had been no registration */
};
struct msg_umad_file { /* MSG_UMAD_PKEY */
	uint64_t token;
};
struct msg_umad_fetch {
	uint64_t token;
	uint32_t id;
	uint32_t reserved;
	uint64_t room; /* of the reader */
};
struct msg_umad_fetch_reply { /* with the message in 1 memfd */
	uint64_t length;
	uint32_t kept; /* too long for 'room': it stays, and is the reader's copy only */
	/* So much of the beginning is here; the rest is what the memfd has up to its end, and begins at 'at': it may
	 * be the one that the sender has written. */
	uint32_t nhead;
	uint64_t at;
	uint8_t head[UMAD_MOST_HEAD];
};
struct msg_umad_in_flight { /* status: 0, or -EINVAL a duplicate */
	uint64_t token;
	uint32_t agent;
	uint8_t header[24];
	uint8_t gid[16];
	uint16_t lid;
	uint8_t grh, reserved;
};
/* With the page in 1 memfd. */
struct msg_umad_adopt {
	uint64_t inode; /* of the program's end of the socket */
};
struct msg_umad_adopt_reply {
	uint64_t token;
	uint32_t number; /* of umad<N> on its host */
	uint32_t reserved;
};
