/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What client and target say to each other.
 *
 * Over TCP, once per connection:
 *
 *	client                                        target
 *	struct hello: wishes, address of its QP  -->
 *	                                        <--   struct welcome: what it gets, geometry,
 *address
 *
 * Over the queue pair, for each request:
 *
 *	struct request: offset, length, key      -->  (SEND)
 *	                     the data           <-->  (RDMA WRITE or RDMA READ by the target)
 *	                                        <--   struct response (SEND)
 *
 * All numbers are big-endian on the wire.  The functions below convert; what a decoder returns
 * has been checked only where its comment says so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dif.h"

#define PROTO_DEFAULT_PORT 18650u
#define PROTO_DEPTH_MAX	   128u	 /* requests under way on a connection */
#define PROTO_BLOCKS_MAX   1024u /* blocks in a request */

/* Where a queue pair is. */
struct proto_address {
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t mtu;	    /* enum ibv_mtu */
	uint8_t link_layer; /* IBV_LINK_LAYER_... */
	uint8_t gid[16];
};

struct proto_hello {
	bool pipelined;	     /* wants responses posted along with their data */
	uint32_t depth;	     /* requests under way, 1 to PROTO_DEPTH_MAX */
	uint32_t max_blocks; /* in a request, 1 to PROTO_BLOCKS_MAX */
	struct proto_address address;
};

struct proto_welcome {
	bool accepted;
	char reason[128]; /* if not accepted */
	bool pipelined;	  /* false also if the target cannot */
	uint64_t blocks;
	struct dif_format format;
	struct proto_address address;
};

/* Offset and length count data, without protection information. */
enum proto_operation { PROTO_READ = 1, PROTO_WRITE = 2 };

struct proto_request {
	uint8_t operation; /* any value */
	uint32_t tag;	   /* comes back in the response */
	uint64_t offset;
	uint32_t length;
	uint32_t rkey; /* zero-based: the transfer begins at address 0 */
};

enum proto_status {
	PROTO_OK,
	PROTO_BAD_BLOCK, /* see error */
	PROTO_UNALIGNED, /* offset or length is no multiple of the block size, or length 0 */
	PROTO_TOO_LONG,	 /* more than max_blocks */
	PROTO_OUT_OF_RANGE,
	PROTO_UNKNOWN_OPERATION,
	PROTO_READ_ONLY,
	PROTO_MEDIUM_ERROR, /* the backing file cannot be read or written */
	PROTO_STATUSES
};

struct proto_response {
	uint32_t tag;
	enum proto_status status;
	struct dif_error error;
};

#define PROTO_HELLO_BYTES    52u
#define PROTO_WELCOME_BYTES  184u
#define PROTO_REQUEST_BYTES  24u
#define PROTO_RESPONSE_BYTES 32u

const char *proto_status_name(enum proto_status status);

void proto_put_hello(uint8_t to[PROTO_HELLO_BYTES], const struct proto_hello *h);
void proto_put_welcome(uint8_t to[PROTO_WELCOME_BYTES], const struct proto_welcome *w);
void proto_put_request(uint8_t to[PROTO_REQUEST_BYTES], const struct proto_request *r);
void proto_put_response(uint8_t to[PROTO_RESPONSE_BYTES], const struct proto_response *r);

/* False: not this protocol, or numbers out of their ranges. */
bool proto_get_hello(const uint8_t from[PROTO_HELLO_BYTES], struct proto_hello *h);
bool proto_get_welcome(const uint8_t from[PROTO_WELCOME_BYTES], struct proto_welcome *w);
bool proto_get_response(const uint8_t from[PROTO_RESPONSE_BYTES], struct proto_response *r);
/* Any request: the target answers what is wrong with it. */
void proto_get_request(const uint8_t from[PROTO_REQUEST_BYTES], struct proto_request *r);
