/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the signature engine must do, said as plainly as possible: whole arrays instead of streams,
 * CRCs bit by bit, signatures as bytes.  It shares the engine's description of a configuration and
 * nothing else.
 */
#pragma once

#include "adapter/sig/sig.h"

#define MODEL_ERRORS 64

struct model_error {
	enum sig_error_kind kind;
	uint64_t block;
	uint8_t found[8];
	uint8_t computed[8];
};

struct model_result {
	uint64_t memory_bytes;
	uint64_t out_bytes;
	uint32_t errors;
	struct model_error error[MODEL_ERRORS];
};

/* Of the data of one block; the number of bytes. */
uint32_t model_signature(const struct sig_domain *d, uint64_t block, const uint8_t *data,
			 uint64_t n, uint8_t out[8]);

/* How much of memory a transfer of so many bytes on the wire touches. */
uint64_t model_memory_bytes(const struct sig_config *c, enum sig_direction dir, uint64_t wire);
/* How much data is in there. */
uint64_t model_data_bytes(const struct sig_config *c, uint64_t wire);

/* A transfer of so many bytes on the wire, from the beginning of the key.  in is all of the input
 * that it reads. */
void model_transfer(const struct sig_config *c, enum sig_direction dir, uint64_t wire,
		    const uint8_t *in, uint8_t *out, struct model_result *r);
