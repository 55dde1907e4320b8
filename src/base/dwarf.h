/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of DWARF 2 to 5 (dwarfstd.org), in 32-bit format with addresses of 8 bytes. */
#pragma once

#include <stdint.h>

#define DWARF_ADDRESS_BYTES 8u

/* The forms of attributes that code here asks for by name. */
enum {
	FORM_ADDR = 0x01,
	FORM_BLOCK2 = 0x03,
	FORM_BLOCK4,
	FORM_DATA2,
	FORM_DATA4,
	FORM_DATA8,
	FORM_STRING,
	FORM_BLOCK,
	FORM_BLOCK1,
	FORM_DATA1,
	FORM_STRP = 0x0e,
	FORM_UDATA,
	FORM_REF_ADDR,
	FORM_INDIRECT = 0x16,
	FORM_EXPRLOC = 0x18,
	FORM_DATA16 = 0x1e,
	FORM_LINE_STRP,
	FORM_IMPLICIT_CONST = 0x21,
	FORMS = 0x2d,
};

/* Sizes of forms that no number of bytes says: the value itself says where it ends, or we do not
 * know the form. */
#define FORM_LEB     0xfeu
#define FORM_UNKNOWN 0xffu

/* How many bytes a form has, or FORM_LEB or FORM_UNKNOWN. */
static inline unsigned dwarf_form_bytes(uint64_t form)
{
	static const uint8_t bytes[FORMS] = {
		[0x00] = FORM_UNKNOWN,
		[0x01] = 8,
		[0x02] = FORM_UNKNOWN,
		[0x03] = FORM_UNKNOWN,
		[0x04] = FORM_UNKNOWN,
		[0x05] = 2,
		[0x06] = 4,
		[0x07] = 8,
		[0x08] = FORM_UNKNOWN,
		[0x09] = FORM_UNKNOWN,
		[0x0a] = FORM_UNKNOWN,
		[0x0b] = 1,
		[0x0c] = 1,
		[0x0d] = FORM_LEB,
		[0x0e] = 4,
		[0x0f] = FORM_LEB,
		[0x10] = FORM_UNKNOWN,
		[0x11] = 1,
		[0x12] = 2,
		[0x13] = 4,
		[0x14] = 8,
		[0x15] = FORM_LEB,
		[0x16] = FORM_UNKNOWN,
		[0x17] = 4,
		[0x18] = FORM_UNKNOWN,
		[0x19] = 0,
		[0x1a] = FORM_LEB,
		[0x1b] = FORM_LEB,
		[0x1c] = 4,
		[0x1d] = 4,
		[0x1e] = 16,
		[0x1f] = 4,
		[0x20] = 8,
		[0x21] = 0,
		[0x22] = FORM_LEB,
		[0x23] = FORM_LEB,
		[0x24] = 8,
		[0x25] = 1,
		[0x26] = 2,
		[0x27] = 3,
		[0x28] = 4,
		[0x29] = 1,
		[0x2a] = 2,
		[0x2b] = 3,
		[0x2c] = 4,
	};

	return form < FORMS ? bytes[form] : FORM_UNKNOWN;
}

/* Opcodes of line number programs, standard and extended. */
enum {
	LNS_COPY = 1,
	LNS_ADVANCE_PC,
	LNS_ADVANCE_LINE,
	LNS_SET_FILE,
	LNS_CONST_ADD_PC = 8,
	LNS_FIXED_ADVANCE_PC
};
enum { LNE_END_SEQUENCE = 1, LNE_SET_ADDRESS };
