// SPDX-License-Identifier: BSD-2-Clause
/* See wakeup_fifo.h.  This file calls the kernel directly: the functions of the C library are interposed,
 * and in some of them a thread may be cancelled. */
#include "wire/wakeup_fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/futex.h"
#include "base/spin.h"

/* A thread looks so often whether another one has done with the fifo. */
#define FIFO_TRIES 256u
/* So many FIFOs of peers stay open; each takes one of the descriptors that the program may have. */
#define PEER_FIFOS 32u

/* The file's number selects the entry. */
static struct peer_fifo {
	struct spin lock;
	struct hidden at;
	uint64_t locked; /* the number of a FIFO that cannot be opened */
} peer_fifos[PEER_FIFOS];

static void fd_close(int fd)
{
	syscall(SYS_close, fd);
}

static void fd_write(int fd)
{
	static const char byte;
	long n;

	/* If the FIFO is full, the bytes that are in it wake the peer. */
	do
		n = syscall(SYS_write, fd, &byte, sizeof(byte));
	while (n < 0 && errno == EINTR);
}

/* ---- who is woken ---- */

/* One descriptor is both ends, so a peer that writes always finds a reader. */
static int fifo_open(void)
{
	int ends[2], fd;

	if (syscall(SYS_pipe2, ends, O_CLOEXEC) < 0)
		return -1;
	fd = descriptor_reopen(0, ends[0], O_RDWR | O_NONBLOCK);
	fd_close(ends[0]);
	fd_close(ends[1]);
	return fd;
}

bool wakeup_fifo_open(struct slot *own, struct hidden *fifo)
{
	if (likely(hidden_ours(fifo)))
		return true;
	*fifo = hidden_keep(fifo_open());
	if (!hidden_ours(fifo))
		return false;
	atomic_store(&own->wakeup_id, fifo->id);
	atomic_store(&own->wakeup_fd_plus_1, fifo->fd + 1);
	return true;
}

void wakeup_fifo_drain(const struct hidden *fifo)
{
	char bytes[256];

	if (hidden_ours(fifo))
		(void)syscall(SYS_read, fifo->fd, bytes, sizeof(bytes));
}

void wakeup_fifo_close(struct slot *own, struct hidden *fifo)
{
	atomic_store(&own->wakeup_fd_plus_1, 0);
	hidden_close(fifo);
}

/* ---- who wakes ---- */

/* The peer or its descriptor may have gone, and something else may have the number: checks that the
 * file is the right FIFO. */
static int peer_open(const struct slot *peer, uint64_t id)
{
	int fd = atomic_load(&peer->wakeup_fd_plus_1) - 1, there, ret = -1;
	struct stat st;

	there = fd < 0 ? -1 : descriptor_reopen(peer->pid, fd, O_PATH);
	if (there < 0)
		return -1;
	if (hidden_id(there) == id && !syscall(SYS_fstat, there, &st) && S_ISFIFO(st.st_mode))
		ret = descriptor_reopen(0, there, O_RDWR | O_NONBLOCK);
	fd_close(there);
	return ret;
}

static bool peer_fifo_write(struct peer_fifo *d, struct slot *peer, uint64_t id)
{
	if (unlikely(d->at.id != id || !hidden_ours(&d->at))) {
		if (d->locked == id)
			return false;
		hidden_close(&d->at);
		d->at = hidden_keep(peer_open(peer, id));
		if (d->at.id != id) {
			hidden_close(&d->at);
			d->locked = id;
			return false;
		}
	}
	fd_write(d->at.fd);
	return true;
}

/*
 * Another thread may be writing there, which takes a call or two of the kernel; or this thread
 * itself is, if we are in a handler.  In that case, and if the other thread has no processor, we
 * give up, and the peer's engine finds what we have sent.
 */
static bool peer_fifo_take(struct peer_fifo *d)
{
	for (unsigned n = 0; n < FIFO_TRIES; n++) {
		if (spin_try(&d->lock))
			return true;
		cpu_relax();
	}
	return false;
}

static void waiter_wake_at(struct slot *peer)
{
	uint64_t id = atomic_load(&peer->wakeup_id);
	struct peer_fifo *d = &peer_fifos[id % PEER_FIFOS];
	int saved_errno = errno;
	bool written;

	if (!peer_fifo_take(d))
		return;
	written = peer_fifo_write(d, peer, id);
	spin_unlock(&d->lock);
	if (!written)
		atomic_store_explicit(&peer->wakeups_failed, 1, memory_order_relaxed);
	errno = saved_errno;
}

void waiter_wake(struct slot *peer)
{
	/* One sender wakes the thread; if that sender is stopped in between, the peer's engine finds
	 * what lies there. */
	uint32_t waiter = atomic_exchange(&peer->waiter, 0);

	if (waiter & SLOT_WAITS_AT_WORD)
		futex_wake_all(&peer->waiter, FUTEX_OF_ALL);
	else if (waiter)
		waiter_wake_at(peer);
}

void wakeup_fifos_close(void)
{
	for (unsigned i = 0; i < PEER_FIFOS; i++) {
		if (!peer_fifo_take(&peer_fifos[i]))
			continue;
		hidden_close(&peer_fifos[i].at);
		peer_fifos[i].locked = 0;
		spin_unlock(&peer_fifos[i].lock);
	}
}

void wakeup_fifo_fork_child(void)
{
	/* All hidden descriptors are closed together, so these are closed.  The locks may be held
	 * by threads that the child does not have. */
	for (unsigned i = 0; i < PEER_FIFOS; i++)
		peer_fifos[i] = (struct peer_fifo){.at = HIDDEN_NONE};
}
