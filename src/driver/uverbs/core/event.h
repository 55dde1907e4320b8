/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels: the descriptors from which a program reads completion events (the user handle of
 * a CQ, 8 bytes) and asynchronous events (16 bytes).  The program holds the read end of a pipe, so
 * that read, poll and fcntl need no help of ours.
 *
 * Writers run as upcalls of the adapter and never block: what the pipe cannot take waits in a
 * list.  Destroying an object takes back its undelivered events, because libibverbs waits until the
 * program has acknowledged exactly as many as destroy reports.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "driver/file/cdev_file.h"
#include "prm/eqe.h"
#include "prm/ib.h"

struct uchannel;
struct ufile;
struct uobj;

enum uchannel_kind {
	UCHANNEL_COMP,
	UCHANNEL_ASYNC,
	UCHANNEL_DEVX,	     /* a cookie and an event queue entry */
	UCHANNEL_DEVX_BRIEF, /* a cookie alone */
};

/* Returns the descriptor for the program, O_CLOEXEC, which any thread may close at once.  If out is
 * not NULL, the caller gets a reference in *out (cdev_put).  -EMFILE or -ENOMEM: there is no
 * channel. */
int uchannel_create(struct ufile *file, enum uchannel_kind kind, struct uchannel **out) must_check;
/* Returns the channel that fd names, with a reference; -EBADF if this file has no such channel. */
int uchannel_find(struct ufile *file, enum uchannel_kind kind, int64_t fd,
		  struct uchannel **out) must_check;
struct cdev_file *uchannel_cdev(struct uchannel *c);

/* Upcalls.  They count *count up, under the channel's lock, if they delivered the event. */
void uchannel_post_comp(struct uchannel *c, uint64_t cq_handle, uint32_t *count);
void uchannel_post_async(struct uchannel *c, uint64_t element, enum ib_event event,
			 uint32_t *count);
void uchannel_post_devx(struct uchannel *c, uint64_t cookie, const uint8_t eqe[EQE_BYTES]);
/* Takes back the events named element that the program has not read.  The owner calls this when
 * nothing posts them any more.  Returns how many it took back. */
uint32_t uchannel_purge(struct uchannel *c, uint64_t element);

/*
 * A program has armed a CQ of the channel: will one of its threads wait for the event by a function
 * that comes here (read, poll), and drive the device then, so that the engine need not?  The last
 * wait says so.
 */
bool uchannel_is_stood_for(struct uchannel *c);

/* Tell whether this process has an open channel of completions, and whether fd is one. */
bool uchannel_any_completions(void);
bool uchannel_has_completions(int fd);
/*
 * The program is about to read from fd.  If that is a channel of completions and the thread's last
 * wait was short, looks for the next event without a system call (drive_look).  True: it has come.
 */
bool uchannel_event_comes(int fd) must_check;

/* Tells whether events wait in the list of some channel, so that uchannel_flush is worth a call. */
bool uchannel_overflowed(void);
void uchannel_flush(struct uchannel *c);

/* Closes the descriptor of a channel that the program never learns of. */
void uchannel_drop_fd(int fd);

/* A port of the fabric changed (process_on_port_event). */
void uverbs_event_port(uint32_t port_row, enum ib_event event);

/* True if the program has a channel on which it hears of such events of the port. */
bool uverbs_event_is_heard(uint32_t port_row) must_check;
/* The device with that row of port 1 as a whole has an event. */
void uverbs_event_device(uint32_t port_row, enum ib_event event);

/* Hears of port events in another way than through channels of kind UCHANNEL_ASYNC. */
struct uport_listener {
	struct uport_listener *next;
	uint32_t port_row; /* row of port 1 */
	uint32_t nports;
	void (*event)(struct uport_listener *l, uint32_t number, enum ib_event event);
};

void uport_listen(struct uport_listener *l);
void uport_unlisten(struct uport_listener *l);

void uverbs_event_fork_lock(void);
void uverbs_event_fork_unlock(void);
void uverbs_event_fork_child(void);
