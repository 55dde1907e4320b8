/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of the daemon: its loop never blocks on a client.  It queues messages that a client
 * does not take at once, and cuts off a client that takes nothing for too long.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fabric/daemon/fabric.h"

struct server;
struct outgoing;
struct capture;

#define CONN_NO_SLOT (-1)

struct conn {
	struct server *server;
	struct source sock;
	struct source life; /* pidfd of a process with a slot: descriptors can outlive it */
	struct conn *next;
	struct conn **prev;
	struct loop_grave grave;
	pid_t pid;
	int slot;
	bool dead;
	bool dismissed;		     /* as a carrier: it is to end */
	bool functions;		     /* it has the memory of an emulated PCI function */
	struct group_member *groups; /* that its queue pairs have joined */
	uint32_t ngroups;
	uint32_t no_memory; /* how often in a row there was no memory for a message of it */
	struct outgoing *queue;
	struct outgoing **queue_end;
	uint32_t queued;
	/* A record that waits for something to tell on this connection; 'ended' makes it forget the
	 * connection. */
	void *waiting;
	void (*ended)(struct conn *c);
	struct capture *capture;	       /* not NULL: it captures packets */
	void (*carrier_ended)(struct conn *c); /* not NULL: it carries frames of a port */
	uint32_t ends_told;		       /* ends of peers that it has not acknowledged */
	uint64_t ends_told_ns;		       /* since when no acknowledgement has come */
};

struct server {
	struct fabric *fabric;
	struct net_listener port_notes;
	struct source listener;
	struct source signals;
	struct source home; /* watches the run-time directory; -1: it does not */
	int lock;	    /* the lock on that directory */
	int spare;	    /* a descriptor to refuse clients with when no other is left */
	bool deaf;	    /* not even the spare was left, so the listener rests */
	struct conn *conns;
	struct conn *by_slot[REGISTRY_SLOTS];
	uint32_t nconns;
	uint32_t captures_begun;
	bool served; /* whether somebody has connected since the start */
	bool stay;
	bool leave;
};

/* lock: the lock on the fabric's directory. */
int server_open(struct server *s, struct fabric *f, int lock) must_check;
/* Serves until it is time to leave: by request, by signal, or because nobody is left. */
void server_run(struct server *s);
/*
 * Tells whether a program with a device is connected.  Carriers have no numbers that could live on.
 */
bool server_has_programs(const struct server *s) must_check;
/* May follow a server_open that failed or was never called: the descriptors are then -1. */
void server_close(struct server *s);

/* ---- conn.c: what a connection is sent, and its end ---- */

/* Sends the message or queues it; fd (or -1) stays the caller's. */
void conn_send(struct server *s, struct conn *c, const struct msg *m, const int *fds,
	       unsigned nfds);
/* The same for a message that may be lost, and is if the client has not taken much of what it was
 * sent. */
void conn_send_lossy(struct conn *c, const struct msg *m);
/* Tells whether the connection is that of a process on the port's host. */
bool conn_has_port(const struct server *s, const struct conn *c, uint32_t row) must_check;
/* Ends the connection and what depends on it. */
void conn_end(struct server *s, struct conn *c);
/* Closes and frees the connection without telling anybody; for the end of the server. */
void conn_drop(struct conn *c);
/* Sends what is queued, as far as the client takes it. */
void conn_flush(struct server *s, struct conn *c);
/* Watches the life of the process behind the connection, once it has a slot. */
void conn_watch_life(struct server *s, struct conn *c);

/* Tells whether the client reads what it is sent. */
bool conn_is_reading(const struct conn *c) must_check;

/* ---- group.c: groups of Ethernet, which carriers join outside ---- */

/* Takes what a process says of its port. */
void group_take(struct server *s, struct conn *c, const struct msg_group *m);
/* Tells a new carrier of the port of the groups that there are. */
void groups_tell(struct server *s, uint32_t row);
/* The connection has ended, and with it its queue pairs. */
void groups_leave(struct server *s, struct conn *c);
/* Frees what is noted of the connection, without telling anybody. */
void groups_drop(struct conn *c);

/* ---- port.c ---- */

/* Listens to the net for what processes of a port's host have to hear. */
void port_notes_open(struct server *s);
/* Tells them an asynchronous event of the port. */
void port_note(struct server *s, uint32_t row, enum ib_event event);

/* ---- gsi.c: datagrams between queue pairs of processes and queue pair 1 of ports ---- */

void gsi_open(struct server *s);
/* A process has sent one to queue pair 1 of a port. */
void gsi_take(struct server *s, const struct conn *c, const struct gsi_datagram *d);

/* ---- tie.c: where the cables of Ethernet ports lead ---- */

/* Tells the programs of its host the state of an Ethernet port, which has changed. */
void tie_tell(struct server *s, uint32_t row);
/* Tells the other end of the port's cable that the port was taken down or up. */
void tie_settle_peer(struct server *s, uint32_t row);

/* ---- capture.c: connections that capture what ports send and receive ---- */

/* Gives all programs that are concerned their rings, after the reply to the request. */
void capture_begin(struct server *s, struct conn *c);
/* A program has connected, and a capture wants its packets, too. */
void captures_join(struct server *s, struct conn *program);
void capture_free(struct conn *c);
/* A connection has ended: it may have captured, or been captured. */
void captures_leave(struct server *s, struct conn *c);

/* ---- requests.c ---- */

/* Answers one valid request. */
void request_answer(struct server *s, struct conn *c, struct msg *m);

/* How the daemon answers: requests.c finds these functions by the type of a message. */

/* Descriptors that go with a reply. */
struct attached {
	int fds[MSG_MAX_FDS];
	unsigned n;
	bool given; /* the daemon closes them when the reply has gone; else the fabric keeps them */
};

/* Turns the request into its reply.  Returns its status, or ANSWER_LATER: there is none yet. */
typedef int answer_fn(struct server *s, struct conn *c, struct msg *m, struct attached *a);
#define ANSWER_LATER 1

/* capture.c */
answer_fn answer_capture;
/* tie.c */
answer_fn answer_tie, answer_untie, answer_tied;
