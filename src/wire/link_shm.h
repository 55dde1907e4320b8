/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link to the other processes of this machine: a channel in shared memory for each of them, and
 * the memory that they open to this process (exposure/expose.h).
 *
 * Channels are type-stable (see channel.h).  A thread holds the control lock for a short time and
 * never across a callback: the thread that answers open_channel's request may be the very one that
 * calls link_shm_add or link_shm_drop.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/spin.h"
#include "exposure/expose.h"
#include "wire/channel.h"
#include "wire/inbox.h"
#include "wire/link.h"

/*
 * The receiver looks into channels that carried something lately at each progress, without waiting
 * for a bit in the inbox.  There are as many of these hot channels as cost less to look at than the
 * bits would cost to set and clear.
 */
#define LINK_SHM_HOT 4u
/* A hot channel that was found empty so often in a row gives up its place to another. */
#define LINK_SHM_HOT_PATIENCE 1024u

struct link_shm {
	struct link link;
	const struct wire_process_attr *attr;
	struct slot *slot; /* our own */
	struct spin rx_lock;
	/* under rx_lock */
	struct inbox_kept kept;
	uint16_t hot[LINK_SHM_HOT]; /* peers */
	uint32_t hot_idle[LINK_SHM_HOT];
	_Atomic(uint32_t) nhot;
	_Atomic(struct channel *) channels[REGISTRY_SLOTS];
	_Atomic(bool) opening[REGISTRY_SLOTS];
	_Atomic(uint64_t)
		retry_at[REGISTRY_SLOTS]; /* ns; nobody tries to open the channel before */

	pthread_mutex_t control;
	_Atomic(struct remote *)
		remotes[REGISTRY_SLOTS]; /* mapped under control, read by readers */
	struct remote *dead_remotes;
	struct channel *dying; /* unpublished; the next thread that drains tears them down */
	_Atomic(bool) any_dying;
	struct channel *spare;
};

/* Opens the link in zeroed memory.  The caller keeps attr. */
void link_shm_open(struct link_shm *l, const struct wire_process_attr *attr);
void link_shm_close(struct link_shm *l);
/* These do what wire_process_add_channel and wire_process_drop_channel do.  For one peer the caller
 * calls them in the order in which the daemon tells of the peer. */
int link_shm_add(struct link_shm *l, uint16_t peer, int fd, size_t bytes, int side);
void link_shm_drop(struct link_shm *l, uint16_t peer);
/* Opens the channel to another slot if there is none; false: that is not possible now. */
bool link_shm_connect(struct link_shm *l, uint16_t peer);
/* Frees remotes that nobody can find and no reader uses any more. */
void link_shm_free_remotes(struct remote *f);
/* Returns what the process in that slot opens to us, if it lives and we have mapped that.  The
 * caller is a reader. */
struct remote *remote_at(const struct link_shm *l, uint16_t peer);
/* Maps what the process in that slot opens to us, unless we have tried that before. */
void remote_find(struct link_shm *l, uint16_t peer);
/* Operations of the link; see link_shm_receive.c. */
bool link_shm_drain(struct link *link);
void link_shm_catch_up(struct link *link);
bool link_shm_unheard(struct link *link, uint32_t to);
