/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of the daemon: its loop never blocks on a client.  Messages that a client
 * does not take at once are queued; a client that takes nothing for too long is cut off.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fabric/daemon/fabric.h"

struct server;
struct outgoing;

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
	bool dismissed;	    /* as a carrier */
	uint32_t no_memory; /* times in a row that there was none for a message of it */
	struct outgoing *queue;
	struct outgoing **queue_end;
	uint32_t queued;
	/* What waits for something that is to be told on this connection, and who forgets it then. */
	void *waiting;
	void (*ended)(struct conn *c);
	void (*carrier_ended)(struct conn *c); /* it carries frames of a port; NULL: it does not */
	uint32_t ends_told;		       /* ends of peers that it has not acknowledged */
	uint64_t ends_told_ns;		       /* since when no acknowledgement has come */
};

struct server {
	struct fabric *fabric;
	struct net_listener port_notes;
	struct source listener;
	struct source signals;
	struct source home; /* the run-time directory; -1: not watched */
	int lock;	    /* on it */
	int spare;	    /* a descriptor kept for refusing clients when no other is left */
	bool deaf;	    /* the spare was not left either: the listener rests */
	struct conn *conns;
	struct conn *by_slot[REGISTRY_SLOTS];
	uint32_t nconns;
	bool served; /* somebody has connected since the start */
	bool stay;
	bool leave;
};

/* lock: that on the fabric's directory. */
int server_open(struct server *s, struct fabric *f, int lock) must_check;
/* Serves until it is time to leave: by request, by signal, or because nobody is left. */
void server_run(struct server *s);
/* Is any connection that of a program with a device?  Carriers have no numbers that could live on. */
bool server_has_programs(const struct server *s) must_check;
/* May follow a server_open that failed or did not happen: then the descriptors are -1. */
void server_close(struct server *s);

/* ---- conn.c: what a connection is sent, and its end ---- */

/* Sends or queues; fd (or -1) stays the caller's. */
void conn_send(struct server *s, struct conn *c, const struct msg *m, const int *fds,
	       unsigned nfds);
/* Ends the connection and what depends on it. */
void conn_end(struct server *s, struct conn *c);
/* Closes and frees it without telling anybody; at the end of the server. */
void conn_drop(struct conn *c);
/* Sends what has been queued, as far as the client takes it. */
void conn_flush(struct server *s, struct conn *c);
/* Watches the life of the process behind the connection, once it has a slot. */
void conn_watch_life(struct server *s, struct conn *c);

/* Does the client read what it is sent? */
bool conn_is_reading(const struct conn *c) must_check;

/* ---- port_notes.c ---- */

/* Listens to the net for what processes of a port's host are to hear. */
void port_notes_open(struct server *s);
/* Tells them an asynchronous event of the port. */
void port_note(struct server *s, uint32_t row, enum ib_event event);

/* ---- tie.c: where the cables of Ethernet ports lead ---- */

/* Tells the programs of its host the state of an Ethernet port, which has changed. */
void tie_tell(struct server *s, uint32_t row);
/* What is at the other end of the port's cable hears that the port was taken down or up. */
void tie_settle_peer(struct server *s, uint32_t row);

/* ---- requests.c ---- */

/* Answers one valid request. */
void request_answer(struct server *s, struct conn *c, struct msg *m);
