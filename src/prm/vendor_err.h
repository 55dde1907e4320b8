/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vendor error syndromes: what a CQE in error says beyond its syndrome, and programs print as
 * vendor_err.  NVIDIA publishes no list.  The table holds what source code of NVIDIA's and threads
 * in public say, with the place; softhca writes those on which several places agree, else 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct vendor_err {
	uint8_t value;
	uint8_t syndrome; /* enum cqe_syndrome that it comes with */
	uint8_t opcode;	  /* enum cqe_opcode of the CQEs that softhca writes it to; 0: none */
	const char *text;
	const char *source;
};

extern const struct vendor_err vendor_errs[];
extern const size_t vendor_errs_count;

/* What a CQE of this opcode (CQE_OP_REQ_ERR, CQE_OP_RESP_ERR) carries with a syndrome; 0: not known. */
uint8_t vendor_err_of(uint8_t opcode, uint8_t syndrome);
