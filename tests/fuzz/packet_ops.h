/* SPDX-License-Identifier: BSD-2-Clause */
/* What the bytes of an input of the packet target mean. */
#pragma once

enum op {
	OP_PACKET, /* a record made by record_pack, some bytes changed */
	OP_RAW,	   /* bytes into the channel's memory */
	OP_DELIVER,
	OP_SEND, /* our own request */
	OP_RECV,
	OP_PROGRESS,
	OP_TAKE, /* the peer consumes what we sent */
	OP_CURSOR,
	OP_UNPACK, /* a record, alone in a block of its own size */
	OP_PEEK,   /* a ring, likewise */
	OP_COUNT,
};

/* Of an input's first byte: there is a key with signatures, what the next byte says. */
#define KINDS_SIGNED 32u
/* Of what names a key: it is that. */
#define WHICH_SIGNED 32u
