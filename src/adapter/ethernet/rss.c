// SPDX-License-Identifier: BSD-2-Clause
/* See rss.h.  The hash is that of Microsoft's RSS specification. */
#include "adapter/ethernet/rss.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prm/wqe.h"

#define IPV4_FIELDS (RSS_SRC_IPV4 | RSS_DST_IPV4)
#define IPV6_FIELDS (RSS_SRC_IPV6 | RSS_DST_IPV6)
#define TCP_FIELDS  (RSS_SRC_PORT_TCP | RSS_DST_PORT_TCP)
#define UDP_FIELDS  (RSS_SRC_PORT_UDP | RSS_DST_PORT_UDP)

/* The 32 bits of the key that begin at bit. */
static uint32_t rss_window(const uint8_t key[RSS_KEY_BYTES], uint32_t bit)
{
	uint64_t v = 0;

	for (uint32_t i = 0; i < 5; i++)
		v = v << 8 | (bit / 8 + i < RSS_KEY_BYTES ? key[bit / 8 + i] : 0);
	return (uint32_t)(v >> (8 - bit % 8));
}

void toeplitz_prepare(struct toeplitz *t, const uint8_t key[RSS_KEY_BYTES])
{
	for (uint32_t nibble = 0; nibble < RSS_INPUT_MAX * 2; nibble++)
		for (uint32_t v = 0; v < 16; v++) {
			uint32_t h = 0;

			for (uint32_t bit = 0; bit < 4; bit++)
				if (v & 8u >> bit)
					h ^= rss_window(key, nibble * 4 + bit);
			t->table[nibble][v] = h;
		}
}

uint32_t toeplitz_hash(const struct toeplitz *t, const uint8_t *input, uint32_t n)
{
	uint32_t h = 0;

	for (uint32_t i = 0; i < min_u32(n, RSS_INPUT_MAX); i++)
		h ^= t->table[2 * i][input[i] >> 4] ^ t->table[2 * i + 1][input[i] & 0xf];
	return h;
}

bool rss_attr_ok(const struct rss_attr *attr)
{
	uint32_t f = attr->fields;

	if (attr->log_size > ADAPTER_MAX_LOG_IND_TBL || f & ~(uint32_t)RSS_ALL_FIELDS)
		return false;
	/* There is one hash, so it is for one kind of packet. */
	if ((f & IPV4_FIELDS && f & IPV6_FIELDS) || (f & TCP_FIELDS && f & UDP_FIELDS))
		return false;
	/* Without a hash nothing chooses among several queues. */
	return f || !attr->log_size;
}

struct rss *rss_create(const struct rss_attr *attr)
{
	size_t n = (size_t)1 << attr->log_size;
	struct rss *rss = calloc(1, sizeof(*rss) + n * sizeof(rss->wq[0]));

	if (!rss)
		return NULL;
	rss->fields = attr->fields;
	rss->log_size = attr->log_size;
	toeplitz_prepare(&rss->toeplitz, attr->key);
	memcpy(rss->wq, attr->wqs, n * sizeof(rss->wq[0]));
	return rss;
}

int rss_make(const struct rss_attr *attr, struct rss **out)
{
	if (!rss_attr_ok(attr))
		return -EINVAL;
	*out = rss_create(attr);
	return *out ? 0 : -ENOMEM;
}

void rss_discard(struct rss *rss)
{
	free(rss);
}

struct input {
	uint8_t bytes[RSS_INPUT_MAX];
	uint32_t n;
};

static void rss_append(struct input *in, const uint8_t *field, uint32_t n)
{
	memcpy(in->bytes + in->n, field, n);
	in->n += n;
}

/* Collects the chosen fields; false if the frame lacks them. */
static bool rss_collect(uint32_t fields, const struct flow_key *key, struct input *in,
			uint8_t *type)
{
	uint32_t l3 = fields & (IPV4_FIELDS | IPV6_FIELDS);
	uint32_t l4 = fields & (TCP_FIELDS | UDP_FIELDS);
	bool v4 = l3 & IPV4_FIELDS;

	if (l3) {
		uint32_t n = v4 ? 4 : 16;

		if (key->ip_version != (v4 ? 4 : 6))
			return false;
		if (l3 & (RSS_SRC_IPV4 | RSS_SRC_IPV6))
			rss_append(in, key->src_ip, n);
		if (l3 & (RSS_DST_IPV4 | RSS_DST_IPV6))
			rss_append(in, key->dst_ip, n);
		*type |= v4 ? CQE_RSS_IPV4 : CQE_RSS_IPV6;
	}
	if (l4) {
		bool tcp = l4 & TCP_FIELDS;

		if (key->l4_proto != (tcp ? IP_PROTO_TCP : IP_PROTO_UDP))
			return false;
		if (l4 & (RSS_SRC_PORT_TCP | RSS_SRC_PORT_UDP))
			rss_append(in, key->src_port, 2);
		if (l4 & (RSS_DST_PORT_TCP | RSS_DST_PORT_UDP))
			rss_append(in, key->dst_port, 2);
		*type |= (uint8_t)((tcp ? CQE_RSS_L4_TCP : CQE_RSS_L4_UDP) << CQE_RSS_L4_SHIFT);
	}
	return in->n;
}

struct wq *rss_choose(const struct rss *rss, const struct flow_key *key, uint32_t *hash,
		      uint8_t *type)
{
	struct input in = {.n = 0};

	*hash = 0;
	*type = 0;
	if (rss_collect(rss->fields, key, &in, type))
		*hash = toeplitz_hash(&rss->toeplitz, in.bytes, in.n);
	else
		*type = 0;
	return rss->wq[*hash & ((1u << rss->log_size) - 1)];
}
