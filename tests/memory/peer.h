/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer: a process that does to the host's memory what the host tells it to, as often and as
 * fast as it is told.  It is forked before the host opens its device.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "self.h"
#include "side.h"

#define PEER_BYTES   (1u << 20) /* the longest request; also what the peer has for others */
#define PEER_MESSAGE 4096u	/* a SEND of the hammering */

/* What the peer stores when it hammers, and what it must never see or change. */
#define PEER_VALUE  0x5a
#define PEER_POISON 0xee

enum { PEER_HITS_WRITE = 1, PEER_HITS_READ = 2, PEER_HITS_ADD = 4, PEER_HITS_SEND = 8 };

struct peer {
	struct memory_side *side; /* the host's */
	pid_t pid;
	uint64_t addr; /* the peer's own memory */
	uint32_t rkey;
	bool patient;
};

struct peer_answer {
	struct device_address address;
	uint64_t addr;
	uint64_t wrong; /* bytes that should not be what they are */
	uint64_t done;	/* requests that ended well */
	uint32_t rkey;
	uint32_t status; /* enum ibv_wc_status of the first that did not, or errno */
};

/* Before the host opens its device: sets side->sock. */
void peer_start(struct peer *p, struct memory_side *side, const char *device);
/* The same with a program of its own, which may begin at any time: its main() calls
 * peer_program. */
void peer_start_anew(struct peer *p, struct memory_side *side, const char *device);
/* The same by another program, which runs what follows its own arguments: unshare -Ur, say. */
void peer_start_under(struct peer *p, struct memory_side *side, const char *device,
		      const char *const *program);
/* Returns if the program was not started as a peer. */
void peer_program(int argc, char **argv);
/* Both make queue pairs; may be called again. */
void peer_connect(struct peer *p);
/* Ends it; it must have found nothing wrong. */
void peer_end(struct peer *p);
void peer_kill(struct peer *p);

/* One request.  What is read must be `value`, or answer.wrong says how many bytes are not. */
enum ibv_wc_status peer_write(const struct peer *p, const void *at, uint32_t rkey, size_t bytes,
			      int value);
struct peer_answer peer_read(const struct peer *p, const void *at, uint32_t rkey, size_t bytes,
			     int value);
enum ibv_wc_status peer_send(const struct peer *p, size_t bytes, int value);
/* Requests of PEER_HITS_* until one fails or peer_rest; what they read must not be PEER_POISON. */
void peer_hammer(const struct peer *p, const void *at, uint32_t rkey, size_t bytes, unsigned what);
/* Writes one number after the other into a word and reads it again, until peer_rest; answer.wrong
 * says how often another one was there. */
void peer_count(const struct peer *p, const void *at, uint32_t rkey);
/* Waits for the end of the hammering. */
struct peer_answer peer_rest(const struct peer *p);
struct peer_answer peer_wait(const struct peer *p);
/* Posts receives into its own memory; says how much of that has the value. */
void peer_receive(const struct peer *p, unsigned receives, size_t bytes);
/* Waits for the completion of a receive. */
void peer_collect(const struct peer *p);
uint64_t peer_look(const struct peer *p, int value);
/* Its system calls to other processes' memory fail with that errno from now on. */
void peer_refuse(const struct peer *p, int err);
/* A timer's signal every so many microseconds; 0 ends it. */
void peer_tick(const struct peer *p, unsigned us);
/* Leaves a core file in the directory of at most so many bytes, and is gone. */
void peer_dump(struct peer *p, const char *directory, uint64_t limit);

void peer_stop(const struct peer *p);
void peer_go_on(const struct peer *p);
