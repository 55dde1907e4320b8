/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What most tests begin with: two connected sides, of which the local one has the key with
 * signatures, and the six ways in which data goes through it.
 */
#pragma once

#include "endpoint_proxy.h"
#include "reference.h"

enum report_style { REPORTS_MANUAL, REPORTS_HARDWARE };

/* As the command line says. */
struct options {
	const char *device;
	int gid_index;
	bool two_processes;
	enum report_style reports;
	uint64_t seed;
	uint64_t cases;
};

extern struct options options;

#define OPTION_LETTERS "d:g:2r:s:"
/* Takes one of these letters from the command line; false: it is none, or its argument is none. */
bool option_take(int letter, const char *arg);

struct connected_pair {
	struct endpoint_proxy local;
	struct endpoint_proxy remote;
};

struct setup {
	bool pipelining;
	bool own_cqs;
	enum ibv_mtu mtu; /* 0: 1024 */
	unsigned max_send_wr;
	unsigned inline_bytes;
	unsigned cqe_bytes;
};

/* setup NULL: the usual. */
void pair_open(struct connected_pair *s, const struct setup *setup);
/* The two halves of it, for those that open several: processes come before devices. */
void pair_begin(struct connected_pair *s);
void pair_connect(struct connected_pair *s, const struct setup *setup);
/* With key 0, which has signatures. */
void pair_open_signed(struct connected_pair *s, const struct setup *setup);
void pair_close(struct connected_pair *s);

/* Who uses the local side's key, and how. */
enum route {
	ROUTE_SEND,    /* local sends from it */
	ROUTE_WRITE,   /* local writes from it */
	ROUTE_READ_BY, /* remote reads it */
	ROUTE_RECEIVE, /* local receives into it */
	ROUTE_WRITTEN, /* remote writes it */
	ROUTE_READ,    /* local reads into it */
	ROUTES
};

const char *route_name(enum route r);
/* Memory is the input. */
static inline bool route_gathers(enum route r)
{
	return r <= ROUTE_READ_BY;
}

/* Local memory that keys usually cover, and remote memory that has the wire's bytes. */
#define LOCAL_AT  4096u
#define REMOTE_AT 8192u
#define ROOM	  (ORDER_MEMORY - 16384u)

/* Moves bytes of the wire between the local key, from that offset, and remote memory at REMOTE_AT;
 * done when the local side knows that it is done. */
void transfer_at(struct connected_pair *s, enum route r, int key, uint64_t offset, uint32_t bytes);
void transfer(struct connected_pair *s, enum route r, int key, uint32_t bytes);

/* A key of the local side with block signatures, and what covers bytes of local memory at
 * LOCAL_AT. */
void signature_key(struct connected_pair *s, int key);
struct key_conf signature_conf(const struct domain *mem, const struct domain *wire,
			       uint32_t memory_bytes, uint8_t check_mask);
#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* Recognisable contents: before a test, and around what it may write. */
#define CANARY 0xc5
void fill_canary(struct endpoint_proxy *p);
void fill_random(uint8_t *at, size_t bytes, uint64_t seed);
/* All of the side's memory is canary but for these bytes. */
void expect_only(struct endpoint_proxy *p, uint32_t at, const void *want, size_t bytes);

/* What mlx5dv_mkey_check must say about a block. */
struct expected_error {
	enum mlx5dv_mkey_err_type type;
	uint64_t calculated; /* from the data, or configured */
	uint64_t found;	     /* in the signature */
	uint32_t block;
	uint32_t unit; /* bytes of a block and its signature */
};

void expect_error(struct endpoint_proxy *p, int key, struct expected_error want);
