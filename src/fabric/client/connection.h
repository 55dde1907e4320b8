/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the client: a process's connection to the daemon, and the threads that wait there for
 * replies.
 */
#pragma once

#include <pthread.h>

#include "base/descriptor.h"
#include "fabric/client/client.h"
#include "fabric/client/segments.h"
#include "fabric/protocol.h"
#include "fabric/rundir.h"

/* Sequence number of requests for channels that we had no descriptor for; nobody waits. */
#define CLIENT_SEQ_NOBODY UINT32_MAX

struct waiter;

struct fabric_client {
	struct hidden sock;
	struct hidden survivor; /* of rundir_survive, once the daemon has gone */
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

/* Prepares the list of waiting threads; called before there is a control thread. */
void client_calls_open(struct fabric_client *c);
void client_calls_close(struct fabric_client *c);

/* Sends one message.  0 or negative errno, -ECONNRESET if the program has closed the connection. */
int client_send(struct fabric_client *c, const struct msg *m, int flags) must_check;

/* Sends a request and waits for its reply, which replaces it in *m.  0 or a negative errno, and
 * then there are no descriptors. */
int client_call(struct fabric_client *c, struct msg *m, enum msg_type type,
		int fds[MSG_MAX_FDS]) must_check;

/*
 * The control thread reads everything that the daemon sends: it hands replies to the threads that
 * wait for them, and notifications to the upcalls.
 */

/* 0, or a negative errno if memory or threads are short. */
int client_control_start(struct fabric_client *c) must_check;
/* Ends the connection and waits for the thread's end.  Cleans up if the daemon had gone. */
void client_control_stop(struct fabric_client *c);
