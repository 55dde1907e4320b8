/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steering table entries of the format of ConnectX-6 Dx and later (steering_format_version 1 and
 * 2): 64 bytes in device memory, which programs write themselves.  An entry says what a frame must
 * look like, what happens to a frame that does, and where matching and other frames go next.
 */
#pragma once

#include "prm/field.h"

#define STE_BYTES     64u
#define STE_TAG_BYTES 16u
#define STE_MASK_AT   0x20u /* byte */
#define STE_TAG_AT    0x30u /* byte */
/* An entry with a definer has no mask, and its tag lies here. */
#define STE_MATCH_TAG_AT    0x20u /* byte */
#define STE_MATCH_TAG_BYTES 32u

enum ste_format {
	STE_BWC_BYTE = 0x0,
	STE_BWC_DW = 0x1,
	STE_MASK_AND_MATCH_BYTE = 0x2,
	STE_MASK_AND_MATCH_DW = 0x3,
	STE_MATCH = 0x4,
};

#define STE_FORMAT	PRM_FIELD(0x000, 8)
#define STE_COUNTER	PRM_FIELD(0x008, 24)
#define STE_DEFINER	PRM_FIELD(0x030, 8) /* with the format: enum ste_lookup */
#define STE_MISS_39_32	PRM_FIELD(0x038, 8)
#define STE_MISS_31_6	PRM_FIELD(0x040, 26)
#define STE_POLARITY	PRM_FIELD(0x05b, 1)
#define STE_NEXT_LOOKUP PRM_FIELD(0x070, 8)
#define STE_NEXT_39_32	PRM_FIELD(0x078, 8)  /* upper bits of the next table's base */
#define STE_NEXT_31_5	PRM_FIELD(0x080, 27) /* lower bits; the lowest set one counts entries */
#define STE_HASH_TYPE	PRM_FIELD(0x09b, 2)
#define STE_BYTE_MASK	PRM_FIELD(0x0a0, 16) /* bytes of the tag that the next table hashes */
#define STE_NEXT_FORMAT PRM_FIELD(0x0b0, 1)
#define STE_ACTIONS_AT	0x18u /* byte; the actions reach to the mask */
/* STE_MATCH entries have neither hash nor mask; their actions lie here. */
#define STE_MATCH_ACTIONS_AT 0x14u

/* Formats of definers, and the first number that a program's own definer gets. */
enum ste_definer_format { STE_DEFINER_ETHERNET = 0 };
#define STE_DEFINER_FIRST 0x10u

/* What the tag consists of: the entry's format, and its definer. */
enum ste_lookup {
	STE_L2_TUNNEL = 0x0002, /* inside the tunnel, and the tunnel's number */
	STE_L2_DST = 0x0003,
	STE_L2_DST_I = 0x0004, /* _I: inside a tunnel */
	STE_L2_SRC = 0x0005,
	STE_L2_SRC_I = 0x0006,
	STE_IPV4_5_TUPLE = 0x0007,
	STE_IPV4_5_TUPLE_I = 0x0008,
	STE_L4 = 0x0009,
	STE_L4_I = 0x000a,
	STE_L2_SRC_DST = 0x000b,
	STE_L2_SRC_DST_I = 0x000c,
	STE_IPV4_MISC = 0x000d,
	STE_TUNNEL_WORDS = 0x000e,
	STE_IPV4_MISC_I = 0x000f,
	STE_NO_MATTER = 0x000f, /* libraries put it where the device does not look */
	STE_SRC_QP_GVMI = 0x0104,
	STE_IPV6_DST = 0x0107,
	STE_IPV6_DST_I = 0x0108,
	STE_IPV6_SRC = 0x0109,
	STE_IPV6_SRC_I = 0x010a,
	STE_GRE = 0x010d,
	STE_GENERAL_PURPOSE = 0x010e,
	STE_REGISTERS_0 = 0x010f,
	STE_REGISTERS_1 = 0x0110,
	STE_L4_MISC = 0x0113,
	STE_L4_MISC_I = 0x0114,
	STE_TUNNEL_HEADER = 0x0117,
};

/* Values of fields in tags. */
enum { STE_L3_IPV4 = 1, STE_L3_IPV6 = 2, STE_L4_TCP = 1, STE_L4_UDP = 2, STE_VLAN_C = 2 };

/* The first byte of an action.  An action takes one or two words of 32 bits. */
enum ste_action {
	STE_ACT_NONE = 0x00,
	STE_ACT_COPY = 0x05,
	STE_ACT_SET = 0x06,
	STE_ACT_ADD = 0x07,
	STE_ACT_REMOVE_BY_SIZE = 0x08,
	STE_ACT_REMOVE_HEADERS = 0x09,
	STE_ACT_INSERT_INLINE = 0x0a,
	STE_ACT_INSERT_POINTER = 0x0b,
	STE_ACT_FLOW_TAG = 0x0c,
	STE_ACT_ACCELERATED_LIST = 0x0e,
	STE_ACT_MODIFY_LIST = 0x0f,
	STE_ACT_ASO = 0x12,
};

#define STE_ACTION_ID	PRM_FIELD(0x00, 8)
#define STE_FLOW_TAG	PRM_FIELD(0x08, 24)
#define STE_LIST_LENGTH PRM_FIELD(0x08, 8)
#define STE_LIST_INDEX	PRM_FIELD(0x10, 16) /* in units of STE_LIST_ALIGN */
#define STE_LIST_ALIGN	64u
#define STE_LIST_BYTES	8u /* of an action in a list */

/* Insertion and removal, with offsets and sizes in units of 2 bytes. */
#define STE_START_ANCHOR  PRM_FIELD(0x0a, 6)
#define STE_INSERT_OFFSET PRM_FIELD(0x10, 7)
#define STE_INSERT_SIZE	  PRM_FIELD(0x17, 6)
#define STE_INSERT_HOW	  PRM_FIELD(0x1d, 3)  /* enum ste_insert; for headers that a number names */
#define STE_INSERT_DATA	  PRM_FIELD(0x20, 32) /* the data, or that number */
#define STE_REMOVE_OFFSET PRM_FIELD(0x12, 7)
#define STE_REMOVE_SIZE	  PRM_FIELD(0x1a, 6)
#define STE_END_ANCHOR	  PRM_FIELD(0x12, 6)
#define STE_REMOVE_DECAP  PRM_FIELD(0x1c, 1)

enum ste_insert { STE_INSERT_PLAIN = 0, STE_INSERT_ENCAP = 1, STE_INSERT_ESP = 2 };

enum ste_anchor {
	STE_ANCHOR_START = 0x00,
	STE_ANCHOR_VLAN = 0x02,
	STE_ANCHOR_IP = 0x07,
	STE_ANCHOR_INNER_MAC = 0x13,
	STE_ANCHOR_INNER_IP = 0x19,
};

/* Set, add and copy.  Shifts count from 0x20, and a length of 0 means 32 bits. */
#define STE_MODIFY_FIELD  PRM_FIELD(0x08, 8) /* enum ste_word */
#define STE_MODIFY_SHIFT  PRM_FIELD(0x12, 6)
#define STE_MODIFY_LENGTH PRM_FIELD(0x1a, 6)
#define STE_MODIFY_DATA	  PRM_FIELD(0x20, 32)
#define STE_COPY_FIELD	  PRM_FIELD(0x28, 8)
#define STE_COPY_SHIFT	  PRM_FIELD(0x32, 6)
#define STE_SHIFT_BASE	  0x20u

/* The words of a frame that actions can change. */
enum ste_word {
	STE_WORD_DMAC_47_16 = 0x00,
	STE_WORD_DMAC_TYPE = 0x01, /* dmac 31:16, ethertype 15:0 */
	STE_WORD_VLAN = 0x02,	   /* tag 15:0 */
	STE_WORD_SMAC_47_16 = 0x08,
	STE_WORD_SMAC_15_0 = 0x09, /* smac 31:16 */
	STE_WORD_L3 = 0x0e,	   /* dscp and ecn 23:16, ttl 15:8 */
	STE_WORD_PORTS = 0x18,	   /* source 31:16, destination 15:0 */
	STE_WORD_TCP_FLAGS = 0x19, /* 24:16 */
	STE_WORD_IPV4_SRC = 0x40,
	STE_WORD_IPV4_DST = 0x41,
	STE_WORD_IPV6_DST = 0x44, /* and the three that follow */
	STE_WORD_IPV6_SRC = 0x4c,
	STE_WORD_TCP_SEQ = 0x5e,
	STE_WORD_TCP_ACK = 0x5f,
	STE_WORD_REG_B = 0x7b,
	STE_WORD_REG_A = 0x7c,
	/* C4, C5, C2, C3, C0, C1, one after the other */
	STE_WORD_REGS_C_V1 = 0x8c,
	STE_WORD_REGS_C_V2 = 0x90,
};
