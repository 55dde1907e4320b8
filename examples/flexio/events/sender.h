/* SPDX-License-Identifier: BSD-2-Clause */
/* The other end: a program of plain verbs, which knows nothing of a DPA. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

/* What the two ends tell each other through a stream socket, in network byte order. */
struct place {
	uint32_t qpn;
	uint32_t lid;
};

/* What the sender says when all has been received. */
struct account {
	uint64_t messages;
	uint64_t bytes;
	uint64_t sum; /* of all bytes */
};

/* The first device with an InfiniBand port 1, and its LID.  Ends the program if there is none. */
struct ibv_context *open_infiniband(uint16_t *lid);
/* All of it, or the program ends. */
void say(int socket, const void *what, size_t bytes);
void hear(int socket, void *what, size_t bytes);
/* Connects to whom it hears of, sends the messages, and says what it has sent. */
void send_messages(int socket, unsigned int messages);
