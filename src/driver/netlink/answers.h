/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that answer a request, as they are made: netlink headers with their attributes. */
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Libraries read with buffers of a page (libmnl), and cut off what is longer. */
#define ANSWER_DATAGRAM_BYTES 3500u

struct answers {
	uint8_t *bytes;
	size_t used, room;
	bool failed;	 /* there was no memory: what was to be added is not there */
	uint32_t portid; /* of the socket */
};

/* Begins a message that answers that request.  Returns where it begins. */
size_t answer_begin(struct answers *a, const struct nlmsghdr *request, uint16_t type,
		    uint16_t flags);
void answer_end(struct answers *a, size_t begin);
/* Takes back all that was added from there on. */
void answer_cut(struct answers *a, size_t at);
/* How many bytes have been added from there on. */
static inline size_t answer_bytes(const struct answers *a, size_t from)
{
	return a->used - from;
}

/* Each adds an attribute to the message that was begun last. */
void answer_u8(struct answers *a, uint16_t type, uint8_t value);
void answer_u32(struct answers *a, uint16_t type, uint32_t value);
void answer_u64(struct answers *a, uint16_t type, uint64_t value);
void answer_string(struct answers *a, uint16_t type, const char *value);
void answer_binary(struct answers *a, uint16_t type, const void *value, size_t n);
/* Begins an attribute with attributes in it.  Returns where it begins, for answer_nest_end. */
size_t answer_nest(struct answers *a, uint16_t type);
void answer_nest_end(struct answers *a, size_t begin);

/* Adds the message that ends a dump, with the error that ended it or 0. */
void answer_done(struct answers *a, const struct nlmsghdr *request, int error);
/* Adds the message that tells of an error (0: of success); whole: the failed request is repeated in
 * it. */
void answer_ack(struct answers *a, const struct nlmsghdr *request, int error, bool whole);

/* How many bytes, from a message's beginning on, make the next datagram: one message, or several of
 * one dump.  0: there is none. */
size_t answers_datagram(const struct answers *a, size_t from) must_check;
