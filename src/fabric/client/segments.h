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
	struct traffic *traffic; /* our own */
	uint16_t slot;		 /* our own */
	uint32_t nports;
	uint32_t rows[SLOT_PORTS]; /* of the ports of our host */
};

/* Maps what the reply names, after a check of all that it says.  0 or negative errno: then nothing
 * is mapped. */
int client_segments_map(struct client_segments *s, const struct msg_hello_reply *r,
			const int fds[MSG_MAX_FDS]) must_check;
/* What is not mapped is left out. */
void client_segments_unmap(struct client_segments *s);
