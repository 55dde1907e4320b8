/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages and their bytes; see protocol.h. */
#include "protocol.h"

#include <endian.h>
#include <string.h>

#define MAGIC	0x44494653u /* "DIFS" */
#define VERSION 1u

struct address_bytes {
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t mtu, link_layer;
	uint8_t gid[16];
};

struct hello_bytes {
	uint32_t magic, version;
	uint32_t pipelined;
	uint32_t depth, max_blocks;
	struct address_bytes address;
	uint32_t reserved;
};

struct welcome_bytes {
	uint32_t magic, version;
	uint8_t accepted, pipelined;
	uint16_t app_tag;
	uint32_t block_size;
	uint64_t blocks;
	struct address_bytes address;
	uint32_t reserved;
	char reason[128];
};

struct request_bytes {
	uint64_t offset;
	uint32_t length, rkey, tag;
	uint8_t operation, reserved[3];
};

struct response_bytes {
	uint32_t tag;
	uint8_t status, part, reserved[2];
	uint64_t block, expected, actual;
};

_Static_assert(sizeof(struct hello_bytes) == PROTO_HELLO_BYTES, "no holes");
_Static_assert(sizeof(struct welcome_bytes) == PROTO_WELCOME_BYTES, "no holes");
_Static_assert(sizeof(struct request_bytes) == PROTO_REQUEST_BYTES, "no holes");
_Static_assert(sizeof(struct response_bytes) == PROTO_RESPONSE_BYTES, "no holes");

const char *proto_status_name(enum proto_status status)
{
	static const char *const names[PROTO_STATUSES] = {
		[PROTO_OK] = "good",
		[PROTO_BAD_BLOCK] = "bad block",
		[PROTO_UNALIGNED] = "not whole blocks",
		[PROTO_TOO_LONG] = "longer than agreed",
		[PROTO_OUT_OF_RANGE] = "beyond the end of the store",
		[PROTO_UNKNOWN_OPERATION] = "unknown operation",
		[PROTO_READ_ONLY] = "the store is read-only",
		[PROTO_MEDIUM_ERROR] = "the backing file failed",
	};

	return (unsigned)status < PROTO_STATUSES ? names[status] : "unknown status";
}

static struct address_bytes put_address(const struct proto_address *a)
{
	struct address_bytes b = {
		.qpn = htobe32(a->qpn),
		.psn = htobe32(a->psn),
		.lid = htobe16(a->lid),
		.mtu = a->mtu,
		.link_layer = a->link_layer,
	};

	memcpy(b.gid, a->gid, sizeof(b.gid));
	return b;
}

/* What a QP takes from it is checked by the QP. */
static struct proto_address get_address(const struct address_bytes *b)
{
	struct proto_address a = {
		.qpn = be32toh(b->qpn),
		.psn = be32toh(b->psn),
		.lid = be16toh(b->lid),
		.mtu = b->mtu,
		.link_layer = b->link_layer,
	};

	memcpy(a.gid, b->gid, sizeof(a.gid));
	return a;
}

void proto_put_hello(uint8_t to[PROTO_HELLO_BYTES], const struct proto_hello *h)
{
	struct hello_bytes b = {
		.magic = htobe32(MAGIC),
		.version = htobe32(VERSION),
		.pipelined = htobe32(h->pipelined),
		.depth = htobe32(h->depth),
		.max_blocks = htobe32(h->max_blocks),
		.address = put_address(&h->address),
	};

	memcpy(to, &b, sizeof(b));
}

bool proto_get_hello(const uint8_t from[PROTO_HELLO_BYTES], struct proto_hello *h)
{
	struct hello_bytes b;

	memcpy(&b, from, sizeof(b));
	*h = (struct proto_hello){
		.pipelined = b.pipelined != 0,
		.depth = be32toh(b.depth),
		.max_blocks = be32toh(b.max_blocks),
		.address = get_address(&b.address),
	};
	return be32toh(b.magic) == MAGIC && be32toh(b.version) == VERSION && h->depth > 0 &&
	       h->depth <= PROTO_DEPTH_MAX && h->max_blocks > 0 &&
	       h->max_blocks <= PROTO_BLOCKS_MAX;
}

void proto_put_welcome(uint8_t to[PROTO_WELCOME_BYTES], const struct proto_welcome *w)
{
	struct welcome_bytes b = {
		.magic = htobe32(MAGIC),
		.version = htobe32(VERSION),
		.accepted = w->accepted,
		.pipelined = w->pipelined,
		.app_tag = htobe16(w->format.app_tag),
		.block_size = htobe32(w->format.block_size),
		.blocks = htobe64(w->blocks),
		.address = put_address(&w->address),
	};

	memcpy(b.reason, w->reason, sizeof(b.reason));
	memcpy(to, &b, sizeof(b));
}

bool proto_get_welcome(const uint8_t from[PROTO_WELCOME_BYTES], struct proto_welcome *w)
{
	struct welcome_bytes b;

	memcpy(&b, from, sizeof(b));
	*w = (struct proto_welcome){
		.accepted = b.accepted != 0,
		.pipelined = b.pipelined != 0,
		.blocks = be64toh(b.blocks),
		.format = {.block_size = be32toh(b.block_size), .app_tag = be16toh(b.app_tag)},
		.address = get_address(&b.address),
	};
	memcpy(w->reason, b.reason, sizeof(w->reason));
	w->reason[sizeof(w->reason) - 1] = '\0';
	if (be32toh(b.magic) != MAGIC || be32toh(b.version) != VERSION)
		return false;
	return !w->accepted || w->format.block_size == 512 || w->format.block_size == 4096;
}

void proto_put_request(uint8_t to[PROTO_REQUEST_BYTES], const struct proto_request *r)
{
	struct request_bytes b = {
		.offset = htobe64(r->offset),
		.length = htobe32(r->length),
		.rkey = htobe32(r->rkey),
		.tag = htobe32(r->tag),
		.operation = r->operation,
	};

	memcpy(to, &b, sizeof(b));
}

void proto_get_request(const uint8_t from[PROTO_REQUEST_BYTES], struct proto_request *r)
{
	struct request_bytes b;

	memcpy(&b, from, sizeof(b));
	*r = (struct proto_request){
		.operation = b.operation,
		.tag = be32toh(b.tag),
		.offset = be64toh(b.offset),
		.length = be32toh(b.length),
		.rkey = be32toh(b.rkey),
	};
}

void proto_put_response(uint8_t to[PROTO_RESPONSE_BYTES], const struct proto_response *r)
{
	struct response_bytes b = {
		.tag = htobe32(r->tag),
		.status = (uint8_t)r->status,
		.part = (uint8_t)r->error.part,
		.block = htobe64(r->error.block),
		.expected = htobe64(r->error.expected),
		.actual = htobe64(r->error.actual),
	};

	memcpy(to, &b, sizeof(b));
}

bool proto_get_response(const uint8_t from[PROTO_RESPONSE_BYTES], struct proto_response *r)
{
	struct response_bytes b;

	memcpy(&b, from, sizeof(b));
	*r = (struct proto_response){
		.tag = be32toh(b.tag),
		.status = (enum proto_status)b.status,
		.error = {.part = (enum dif_part)b.part,
			  .block = be64toh(b.block),
			  .expected = be64toh(b.expected),
			  .actual = be64toh(b.actual)},
	};
	return b.status < PROTO_STATUSES && b.part < DIF_PARTS;
}
