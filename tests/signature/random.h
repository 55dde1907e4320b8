/* SPDX-License-Identifier: BSD-2-Clause */
/* A random transfer through a key with signatures, and what the model says about it. */
#pragma once

#include "connected_pair.h"
#include "sig_model.h"

#define RANDOM_STAGES 4
#define RANDOM_BYTES  (48u * 1024)

struct random_case {
	uint64_t seed;
	unsigned pair; /* of several, which differ in their MTU */
	enum route route;
	enum sig_direction dir;
	struct key_conf conf;	  /* as the library wants it */
	struct sig_config config; /* the same, as the model wants it */
	uint32_t wire;
	uint32_t split;	       /* bytes of the first of two accesses; all: one access */
	uint64_t parted_block; /* its signature comes in two parts */
	uint32_t in_bytes;
	uint32_t memory_bytes;
	struct model_result model;
	uint8_t in[RANDOM_BYTES];
	uint8_t want[RANDOM_BYTES];
	uint8_t local_image[ORDER_MEMORY]; /* all of local memory, before */
	uint8_t remote_image[ORDER_MEMORY];
};

void random_make(struct random_case *c, uint64_t seed);
/* Puts the bytes of the key's memory where the layout says. */
void random_place(const struct random_case *c, uint8_t *image, const uint8_t *bytes, uint32_t n);
void random_describe(const struct random_case *c, char *out, size_t room);
uint32_t sig_size(enum sig_type t);
