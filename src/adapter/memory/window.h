/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows (IBTA 10.6.7): keys for remote access to a part of a memory region, which work
 * requests bind and invalidate.  As on cards, the process may also name them in its own lists.
 *
 * A bound window holds its region, which nobody can deregister or change meanwhile.  So the window
 * keeps the memory's address itself, and a remote access takes one look-up.  The contents change on
 * the data path, which cannot wait for readers.  So a sequence number guards them, the
 * window counts its users, and the key table publishes a meaning that is no region.
 */
#pragma once

#include "adapter/memory/mkey.h"

extern const struct mkey_ops window_ops;

/* A bind, as the work request says it. */
struct window_bind {
	uint32_t key; /* names the window; its variant is ignored */
	uint32_t pdn; /* the binding QP's */
	uint32_t qpn;
	enum window_type type;
	uint8_t variant; /* of the new key */
	uint32_t access;
	uint64_t iova; /* address of the first byte, as the window's users see it */
	uint64_t length;
	uint32_t mr_key; /* the region, and the range's place in it */
	uint64_t mr_va;
};

/*
 * False: the bind is refused, a log line says why, and nothing has changed.  Otherwise nobody is in
 * an access by the former contents when they return.  All of these run in a reader, without a
 * responder's lock.
 */
bool window_bind(struct adapter *a, const struct window_bind *b) must_check;
/* Unbinds a type 1 window, by a bind of no bytes. */
bool window_unbind(struct adapter *a, uint32_t key, uint32_t pdn) must_check;
