/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A view of the fabric for somebody who only looks at it: the memory that the daemon shares, mapped for
 * reading.  Its owner takes no slot and keeps no connection.
 */
#pragma once

#include <stdint.h>

#include "fabric/client/segments.h"
#include "fabric/protocol.h"

struct fabric_view {
	struct client_segments
		segments; /* no slot or traffic of our own; rows of the host's ports */
	uint32_t host;	  /* index of this process's host */
};

/* Opens a view of this process's fabric, from its environment; starts the daemon if need be.  0 or a
 * negative errno: -ENODEV if the process is on no fabric, or as link_open. */
int fabric_view_open(struct fabric_view *v) must_check;
void fabric_view_close(struct fabric_view *v);

/* Reads all ids of the communication manager (fabric/cm.h) of the fabric in that directory, NULL: of
 * the process's own; the caller frees the list.  0 or a negative errno. */
int fabric_cm_ids(const char *dir, struct msg_cm_id_reply **ids, uint32_t *n) must_check;
