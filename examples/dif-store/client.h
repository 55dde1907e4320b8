/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of dif-store-client.  Each returns the program's exit status: 0, 1 for bad blocks or
 * refused requests, 3 when the connection fails. */
#pragma once

#include "initiator.h"

enum { CLIENT_GOOD, CLIENT_BAD, CLIENT_USAGE, CLIENT_LOST };

struct client_options {
	struct initiator_options connection;
	uint64_t block, count; /* count 0: to the end of the store */
	const char *file;      /* what to write, or where to put what was read; may be NULL */
	uint64_t seed;
	bool seed_given;
	bool software; /* check in software as well */
	/* write: damage on purpose */
	bool damage;
	enum dif_part damage_part;
	uint64_t damage_block, damage_bit;
	bool damage_block_given;
	/* raw */
	uint64_t operation, offset, length;
	/* bench */
	uint64_t milliseconds;
};

int client_read(const struct client_options *o);
int client_verify(const struct client_options *o);
int client_write(const struct client_options *o);
int client_raw(const struct client_options *o);
int client_bench(const struct client_options *o);

/* Whether the first block asked for is one of the store's; complains if not. */
bool client_block_exists(const struct initiator *i, const struct client_options *o);
/* Prints what is wrong with an outcome; whether anything is. */
bool client_report(const struct initiator *i, const struct flight *f);
