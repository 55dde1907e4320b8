/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows: how device code reaches memory of the host.  A window belongs to a protection domain; a
 * thread sets one with a key of that domain, and then reaches the memory of the key.
 *
 * Device code runs in the process whose memory it reaches, so an address of the window is an
 * address of the host plus what the key adds, which is 0 for most keys.  A key of several pieces of
 * memory has no such addresses, and serves only copies.  Checked code asks at each access whether
 * window and key still allow it; unchecked code asks nobody.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dpa/door.h"

#define DPA_WINDOWS 1024u /* windows of one process */

struct dpa_process;
struct dpa_thread;
struct dpa_trail;

/* The keys of a device. */
struct dpa_keys {
	/*
	 * Finds a key.  False: there is no such key.  *linear: its memory is in one piece, so *base
	 * added to addresses of the key gives those of this process; memory of other keys can only
	 * be copied.
	 */
	bool (*find)(void *device, uint32_t key, uint32_t pdn, bool *linear, uint64_t *base);
	/* Tells whether the key, a linear one, allows the access. */
	bool (*allows)(void *device, uint32_t key, uint32_t pdn, uint64_t haddr, uint64_t bytes,
		       bool write);
	/* Copies between memory of the key and memory of this process; false: it is not allowed, or
	 * not there. */
	bool (*copy)(void *device, uint32_t key, uint32_t pdn, uint64_t haddr, void *mine,
		     uint64_t bytes, bool write);
};

struct dpa_window {
	_Atomic(uint32_t) serial; /* 0: there is no window */
	const struct dpa_keys *keys;
	void *device;
	uint32_t pdn;
};

/* The window that a thread has set. */
struct dpa_window_slot {
	struct dpa_window *window; /* NULL: none */
	uint32_t serial;	   /* serial that the window had then */
	uint32_t key;
	bool linear;
	uint64_t base;
};

/* Returns the number of the new window, or -ENOSPC. */
int dpa_window_add(struct dpa_process *p, const struct dpa_keys *keys, void *device, uint32_t pdn);
/* Threads that have set it reach nothing through it any more. */
void dpa_window_remove(struct dpa_process *p, uint32_t id);

/* ---- for the door: these check slots and addresses; false: it is not possible ---- */

bool dpa_window_config(struct dpa_thread *t, uint32_t slot, uint32_t id, uint32_t key);
bool dpa_window_key(struct dpa_thread *t, uint32_t slot, uint32_t key);
bool dpa_window_acquire(struct dpa_thread *t, uint32_t slot, uint64_t haddr, uint64_t *daddr);
struct dpa_window_access {
	uint64_t addr, bytes;
	bool write;
};

/* Tells whether the thread may do it; then it does it next.  The trail is for reports. */
bool dpa_window_access(struct dpa_thread *t, const struct dpa_window_access *a,
		       const struct dpa_trail *trail);
/* 'mine' lies in the region. */
bool dpa_window_copy(struct dpa_thread *t, uint32_t slot, bool to_host, uint64_t haddr, void *mine,
		     uint64_t bytes);
/* Resets all windows of the thread. */
void dpa_windows_forget(struct dpa_thread *t);
