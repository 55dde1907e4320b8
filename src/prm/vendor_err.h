/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vendor error syndromes: what a CQE in error says beyond its syndrome, and programs print as
 * vendor_err.  NVIDIA publishes no list.  The table holds what NVIDIA's source code and public
 * threads say, with the place of each.  softhca writes a value if several places agree on it, else
 * 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct vendor_err {
	uint8_t value;
	uint8_t syndrome; /* the enum cqe_syndrome that it comes with */
	uint8_t opcode;	  /* enum cqe_opcode of the CQEs into which softhca writes it; 0: none */
	const char *text;
	const char *source;
};

extern const struct vendor_err vendor_errs[];
extern const size_t vendor_errs_count;

/* The value for a syndrome in a CQE of this opcode (CQE_OP_REQ_ERR, CQE_OP_RESP_ERR); 0: not
 * known. */
uint8_t vendor_err_of(uint8_t opcode, uint8_t syndrome);
