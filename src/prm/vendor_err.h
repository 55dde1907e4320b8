/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vendor error syndromes: what a CQE in error says beyond its syndrome, and programs print as
 * vendor_err.  NVIDIA publishes no list.  The table holds what NVIDIA's source code and public
 * threads and measurements say, with the place of each.  softhca writes a value that was measured
 * or on which several places agree, else 0.
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

/* Some syndromes have several values. */
#define VENDOR_ERR_NO_ANSWER_PLACE 0x33 /* LOCAL_PROT: the answer may not be written there */
#define VENDOR_ERR_NO_KEY	   0x52 /* LOCAL_PROT: there is no such key */
#define VENDOR_ERR_RANGE	   0x53 /* LOCAL_PROT: behind the end of the region */
#define VENDOR_ERR_FIRST_FLUSH	   0xf5 /* WR_FLUSH: no request has failed before */

extern const struct vendor_err vendor_errs[];
extern const size_t vendor_errs_count;

/* The value for a syndrome in a CQE of this opcode (CQE_OP_REQ_ERR, CQE_OP_RESP_ERR); 0: not
 * known. */
uint8_t vendor_err_of(uint8_t opcode, uint8_t syndrome);
