// SPDX-License-Identifier: BSD-2-Clause
/* See knock.h.  This file calls the kernel directly: the functions of the C library are interposed,
 * and in some of them a thread may be cancelled. */
#include "wire/knock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/futex.h"
#include "base/spin.h"

/* A thread looks so often whether another one has done with the door. */
#define KNOCK_TRIES 256u
/* So many FIFOs of peers stay open; each takes one of the descriptors that the program may have. */
#define KNOCK_DOORS 32u

/* The file's number selects the entry. */
static struct knock_door {
	struct spin lock;
	struct hidden at;
	uint64_t locked; /* the number of a FIFO that cannot be opened */
} doors[KNOCK_DOORS];

static void fd_close(int fd)
{
	syscall(SYS_close, fd);
}

static void fd_knock(int fd)
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

bool knock_ready(struct slot *own, struct hidden *door)
{
	if (likely(hidden_ours(door)))
		return true;
	*door = hidden_keep(fifo_open());
	if (!hidden_ours(door))
		return false;
	atomic_store(&own->knock_id, door->id);
	atomic_store(&own->knock_fd_plus_1, door->fd + 1);
	return true;
}

void knock_heard(const struct hidden *door)
{
	char bytes[256];

	if (hidden_ours(door))
		(void)syscall(SYS_read, door->fd, bytes, sizeof(bytes));
}

void knock_close(struct slot *own, struct hidden *door)
{
	atomic_store(&own->knock_fd_plus_1, 0);
	hidden_close(door);
}

/* ---- who wakes ---- */

/* The peer or its descriptor may have gone, and something else may have the number: checks that the
 * file is the right FIFO. */
static int peer_open(const struct slot *peer, uint64_t id)
{
	int fd = atomic_load(&peer->knock_fd_plus_1) - 1, there, ret = -1;
	struct stat st;

	there = fd < 0 ? -1 : descriptor_reopen(peer->pid, fd, O_PATH);
	if (there < 0)
		return -1;
	if (hidden_id(there) == id && !syscall(SYS_fstat, there, &st) && S_ISFIFO(st.st_mode))
		ret = descriptor_reopen(0, there, O_RDWR | O_NONBLOCK);
	fd_close(there);
	return ret;
}

static bool door_knock(struct knock_door *d, struct slot *peer, uint64_t id)
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
	fd_knock(d->at.fd);
	return true;
}

/*
 * Another thread may be knocking there, which takes a call or two of the kernel; or this thread
 * itself is, if we are in a handler.  In that case, and if the other thread has no processor, we
 * give up, and the peer's engine finds what we have sent.
 */
static bool door_take(struct knock_door *d)
{
	for (unsigned n = 0; n < KNOCK_TRIES; n++) {
		if (spin_try(&d->lock))
			return true;
		cpu_relax();
	}
	return false;
}

static void knock_at(struct slot *peer)
{
	uint64_t id = atomic_load(&peer->knock_id);
	struct knock_door *d = &doors[id % KNOCK_DOORS];
	int saved_errno = errno;
	bool knocked;

	if (!door_take(d))
		return;
	knocked = door_knock(d, peer, id);
	spin_unlock(&d->lock);
	if (!knocked)
		atomic_store_explicit(&peer->knocks_in_vain, 1, memory_order_relaxed);
	errno = saved_errno;
}

void knock_waiter(struct slot *peer)
{
	/* One sender wakes the thread; if that sender is stopped in between, the peer's engine finds
	 * what lies there. */
	uint32_t waiter = atomic_exchange(&peer->waiter, 0);

	if (waiter & SLOT_WAITS_AT_WORD)
		futex_wake_all(&peer->waiter, FUTEX_OF_ALL);
	else if (waiter)
		knock_at(peer);
}

void knock_forget_all(void)
{
	for (unsigned i = 0; i < KNOCK_DOORS; i++) {
		if (!door_take(&doors[i]))
			continue;
		hidden_close(&doors[i].at);
		doors[i].locked = 0;
		spin_unlock(&doors[i].lock);
	}
}

void knock_fork_child(void)
{
	/* All hidden descriptors are closed together, so these are closed.  The locks may be held
	 * by threads that the child does not have. */
	for (unsigned i = 0; i < KNOCK_DOORS; i++)
		doors[i] = (struct knock_door){.at = HIDDEN_NONE};
}
