/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive side scaling: a Toeplitz hash over chosen header fields picks the work queue of a frame
 * from an indirection table.
 */
#pragma once

#include "adapter/adapter.h"
#include "adapter/frame/frame.h"

/* The most bytes that the hash takes: two IPv6 addresses and two ports. */
#define RSS_INPUT_MAX 36u

/* For each nibble of the input, the exclusive-or of the key's windows under the nibble's set
 * bits. */
struct toeplitz {
	uint32_t table[RSS_INPUT_MAX * 2][16];
};

struct rss {
	uint32_t fields; /* enum rss_field */
	uint32_t log_size;
	struct toeplitz toeplitz;
	struct wq *wq[]; /* the indirection table */
};

void toeplitz_prepare(struct toeplitz *t, const uint8_t key[RSS_KEY_BYTES]);
uint32_t toeplitz_hash(const struct toeplitz *t, const uint8_t *input, uint32_t n);

/* NULL: there is no memory, or the attributes make no sense (rss_attr_ok is false). */
struct rss *rss_create(const struct rss_attr *attr);
bool rss_attr_ok(const struct rss_attr *attr) must_check;
/* The queue of a frame; *hash and *type (rss_hash_type of the CQE) say how it was chosen. */
struct wq *rss_choose(const struct rss *rss, const struct flow_key *key, uint32_t *hash,
		      uint8_t *type);
