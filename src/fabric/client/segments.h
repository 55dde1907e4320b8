/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that the daemon shares with its clients, as the reply to MSG_HELLO hands it out. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "fabric/protocol.h"
#include "registry/registry.h"
#include "subnet/subnet.h"

struct client_segments {
	const struct registry *registry;
	struct subnet subnet;
	size_t subnet_bytes;
	struct slot *slots;	 /* REGISTRY_SLOTS of them */
	struct traffic *traffic; /* our own; NULL: we only look */
	uint16_t slot;		 /* our own */
	uint32_t nports;
	uint32_t rows[SLOT_PORTS]; /* rows of our host's ports */
};

/* Maps the memory that the reply names, after it checks all that the reply says.  0 or a negative
 * errno: then nothing is mapped. */
int client_segments_map(struct client_segments *s, const struct msg_hello_reply *r,
			const int fds[MSG_MAX_FDS]) must_check;
/* The same for somebody who has no slot and only reads, from what the daemon says of itself and of a
 * host. */
int client_segments_map_to_look(struct client_segments *s, const struct msg_info_reply *info,
				const struct msg_host_reply *host,
				const int fds[MSG_MAX_FDS]) must_check;
/* Unmaps what is mapped. */
void client_segments_unmap(struct client_segments *s);
