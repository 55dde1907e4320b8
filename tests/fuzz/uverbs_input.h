/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The language of the uverbs target's inputs, which the target reads and its seeds are written in.
 *
 * Addresses never come from the input itself: it names one of PLACES, which are good, bad and
 * borderline.  A block of bytes (a struct of the ABI) is given as
 *
 *      u16 length, u8 given, u8 patches;  "given" bytes, the rest is zero;
 *      per patch: u8 offset / 4, u8 kind | number << 2
 */
#pragma once

#include "fuzz.h"

enum op {
	OP_IOCTL,
	OP_RAW_IOCTL, /* any header and attributes */
	OP_COMMAND,   /* write(2), legacy */
	OP_EX_COMMAND,
	OP_BELLS,
	OP_STORE, /* bytes into the program's memory */
	OP_CLOSE_FD,
	OP_READ_EVENT,
	OP_PORT_EVENT,
	OP_COUNT,
};

/* How an attribute of an ioctl is given. */
enum attr_kind {
	KIND_DATA,   /* u8 length, u64 */
	KIND_BLOCK,  /* a block, behind a pointer if longer than 8 */
	KIND_OUT,    /* u16 length, at a place of its own */
	KIND_HANDLE, /* u8 */
	KIND_FD,     /* u8: which of the event descriptors */
	KIND_PLACE,  /* u8 place, u16 length */
	KIND_COUNT,
};

/* What a patch puts into a block. */
enum patch_kind { PATCH_PLACE, PATCH_FD, PATCH_OUT, PATCH_WORD /* u32 follows */ };

/* Objects and methods, attributes: bit 7 of one byte stands for 0x1000. */
#define IDS_DRIVER 0x80u

/* Places: number & 7 is the area, the rest how far in; see place() in uverbs_fuzz.c. */
enum area {
	AREA_DATA,
	AREA_RING0,
	AREA_RING1,
	AREA_RING2,
	AREA_RECORDS,
	AREA_READ_ONLY,
	AREA_NONE
};
