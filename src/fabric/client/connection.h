/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the client: a process's connection to the daemon, and the threads that wait there for
 * replies.
 */
#pragma once

#include <pthread.h>

#include "base/hidden.h"
#include "fabric/client/client.h"
#include "fabric/client/segments.h"
#include "fabric/protocol.h"
#include "fabric/rundir.h"

/* Its reply is for nobody: it asks for a channel that there was no descriptor for. */
#define CLIENT_SEQ_NOBODY UINT32_MAX

struct waiter;

struct fabric_client {
	struct hidden sock;
	struct client_segments segments;
	struct fabric_client_ops ops;
	pthread_t thread;
	char dir[RUNDIR_BYTES];

	/* Peers whose channels came when we had no descriptor left; the control thread's. */
	uint64_t missed[REGISTRY_SLOTS / 64];
	uint32_t nmissed;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t answered;
	struct waiter *waiters;
	uint32_t seq;
	bool lost;
	bool closing;
};

/* What waits for replies; client_calls_open before there is a control thread. */
void client_calls_open(struct fabric_client *c);
void client_calls_close(struct fabric_client *c);
/* Whoever waits, and whoever asks from now on, gets -ECONNRESET.  True: we are closing. */
bool client_calls_end(struct fabric_client *c);
/* We are about to end the connection.  True: it has ended before. */
bool client_closing_begin(struct fabric_client *c);
bool client_is_closing(struct fabric_client *c);

/* One message.  0 or negative errno, -ECONNRESET if the program has closed the connection. */
int client_send(struct fabric_client *c, const struct msg *m, int flags) must_check;
/* The control thread's: waits for a message, and may be cancelled in this wait only. */
int client_recv(struct fabric_client *c, struct msg *m, int fds[MSG_MAX_FDS]) must_check;
/* False: the descriptor has gone, and whoever waits in a system call on the socket waits on. */
bool client_shutdown(struct fabric_client *c);

/* Sends a request and waits for its reply, which replaces it in *m.  0 or negative errno; then
 * there are no descriptors. */
int client_call(struct fabric_client *c, struct msg *m, enum msg_type type,
		int fds[MSG_MAX_FDS]) must_check;
/* Hands a reply with its descriptors to the thread that waits for it.  error: why there are no
 * descriptors, or 0.  False: nobody waits any more (timed out). */
bool client_answer(struct fabric_client *c, const struct msg *m, int fds[MSG_MAX_FDS], int error);
