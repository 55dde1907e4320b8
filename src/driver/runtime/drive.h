/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of the program that drive the device while they are inside softhca: in a poll that finds
 * nothing, in the handler of a doorbell's fault, and around a wait for a completion channel.
 *
 * A thread that waits for a completion channel registers in its slot (slot->waiter), so that a peer
 * that has sent something wakes this thread, which takes the packet itself and finds its event.
 * Otherwise the peer would wake the engine, and the engine the thread.  One thread at a time is
 * registered.  It sleeps in one of two ways:
 *
 *   at a FIFO     in poll, select or epoll, as one more descriptor (wire/wakeup_fifo.h)
 *   at the word   in read of a completion channel: slot->waiter is a futex.  The kernel restarts
 *                 that wait after a handler, or ends it with EINTR, as it does with a read.
 *
 * The thread holds nothing while it sleeps, so it may be cancelled there, or a handler may jump away.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct process;

/* ---- polls and doorbells ---- */

/* A thread of the program has polled and found nothing, so it drives.  True: it has done something. */
bool drive_poll(struct process *p);
/* A thread that is not the program's asks whether it has to poll, because no others have polled
 * since it last asked or polled.  *polls belongs to that thread, and is 0 at first. */
bool drive_wants_poller(struct process *p, uint32_t *polls);
bool drive_poll_for_it(struct process *p, uint32_t *polls);
/* Doorbells have been served in the handler of a fault: a member of struct doorbell_engine. */
bool drive_after_fault(void *user);
/* A thread of the program is about to wait for an event.  by_read: of a channel that the program
 * reads, or waits for, by functions that come here. */
void drive_before_wait(struct process *p, bool by_read);

/* ---- waits ---- */

enum { DRIVE_ALL_CHANNELS = 0 };

/* The events of completion channels that a thread knows of: of those whose addresses fall on one row
 * of a hash, or of all. */
struct drive_mark {
	unsigned row;
	uint32_t events;
};

/* How many events a row has had. */
uint32_t drive_events(unsigned row);
struct drive_mark drive_mark(const void *channel);
/* A thread has made an event of the channel, or closes it. */
void drive_note_event(const void *channel);

#define DRIVE_ASK (-2)
/*
 * Before a wait for descriptors.  Returns the further descriptor for which the thread has to wait
 * until it is readable, or -1: the thread has to wait as it would without us; or DRIVE_ASK: there is
 * an event of some channel, so the thread asks the kernel first, and calls this again if there is
 * nothing for it.  'known' is how many events of all channels there had been before the thread last
 * asked the kernel (drive_events).  In both calls the caller has signals held back (base/thread.h),
 * because a handler that jumps away must not leave locks of the device behind.
 */
int drive_wait_begin(uint32_t known) must_check;
/* The thread has waited; woken: that descriptor is readable.  Does the work that has come. */
void drive_wait_end(bool woken);
/* drive_waits: did the calling thread wait in this way when it waited last?  drive_was_told: and
 * is this the first time that the thread asks since then? */
bool drive_waits(void);
bool drive_was_told(void);

/*
 * The calling thread is about to read from fd, which blocks until has_event(fd); it was not true
 * after the mark of the channel was made.  Returns 0 if there is an event, or if the thread has to
 * wait as usual; -EINTR where read would return it.  The caller holds cancellation off; cancel is
 * what cancel_restore needs to allow it.
 */
int drive_read(int fd, bool (*has_event)(int fd), struct drive_mark mark,
	       const int *cancel) must_check;
/*
 * The same without a system call, for a few microseconds, where the thread's last wait was as short.
 * True: *made, which whoever makes an event increments, is no longer what is known.  The caller holds
 * cancellation off.
 */
bool drive_look(const _Atomic(uint32_t) *made, uint32_t known) must_check;
/* pthread_cancel has asked a thread of the program to end; it may be in drive_read. */
void drive_cancelled(void);

/* ---- beginning and end ---- */

/* On return no thread is inside; process_current() is NULL by then. */
void drive_stop(struct process *p);
void drive_fork_child(void);
