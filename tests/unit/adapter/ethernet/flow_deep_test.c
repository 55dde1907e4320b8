// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rules that look behind the outer headers, on random frames: tunnels (VXLAN, GRE with each of its options,
 * IP in IP), label stacks at each of their places, ESP.  Whoever puts a frame together notes what its fields
 * are, so the notes know nothing of how frames are taken apart.
 */
#include <stdlib.h>
#include <string.h>

#include "adapter/ethernet/flow.h"
#include "check.h"

#define FRAMES 20000u
#define ROOM   512u

enum { MPLS = 0x8847, BRIDGED = 0x6558, IPV4 = FRAME_TYPE_IPV4, IPV6 = FRAME_TYPE_IPV6 };

/* A frame under construction, and what its fields are. */
struct made {
	uint8_t bytes[ROOM];
	uint32_t len;
	struct flow_key outer;
	struct flow_deep deep;
};

static uint32_t random32(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

static bool coin(void)
{
	return random32() & 1;
}

/* Appends n random bytes of few values, so that rules for one frame fit others, too. */
static uint8_t *put(struct made *m, uint32_t n)
{
	uint8_t *at = m->bytes + m->len;

	for (uint32_t i = 0; i < n; i++)
		at[i] = (uint8_t)(random32() % 3);
	m->len += n;
	CHECK(m->len <= ROOM);
	return at;
}

static void put16(struct made *m, uint32_t v)
{
	frame_put16(put(m, 2), v);
}

static void put_ethernet(struct made *m, struct flow_key *key, uint32_t type)
{
	memcpy(key->dst_mac, put(m, 6), 6);
	memcpy(key->src_mac, put(m, 6), 6);
	if (coin()) {
		put16(m, FRAME_TYPE_VLAN);
		memcpy(key->vlan_tag, put(m, 2), 2);
		key->vlan = 1;
	}
	put16(m, type);
	frame_put16(key->ether_type, type);
}

/* Returns where the length stands, which put_end fills in. */
static uint32_t put_ip(struct made *m, struct flow_key *key, uint32_t type, uint8_t proto)
{
	uint8_t *ip = put(m, type == IPV4 ? 20 : 40);

	key->ip_proto = proto;
	key->ip_version = type == IPV4 ? 4 : 6;
	if (type == IPV4) {
		ip[0] = 0x45;
		ip[6] = ip[7] = 0;
		ip[9] = proto;
		key->ip_tos = ip[1];
		key->ip_ttl = ip[8];
		memcpy(key->src_ip, ip + 12, 4);
		memcpy(key->dst_ip, ip + 16, 4);
		return (uint32_t)(ip - m->bytes);
	}
	ip[0] = 0x60;
	ip[1] = 0;
	ip[6] = proto;
	key->ip_ttl = ip[7];
	memcpy(key->flow_label + 2, ip + 2, 2);
	memcpy(key->src_ip, ip + 8, 16);
	memcpy(key->dst_ip, ip + 24, 16);
	return (uint32_t)(ip - m->bytes);
}

static void put_end(struct made *m, uint32_t ip)
{
	if (m->bytes[ip] == 0x45)
		frame_put16(m->bytes + ip + 2, m->len - ip);
	else
		frame_put16(m->bytes + ip + 4, m->len - ip - 40);
}

/* port 0: any that no tunnel has. */
static void put_udp(struct made *m, struct flow_key *key, uint32_t port)
{
	uint8_t *udp = put(m, 8);

	if (port)
		frame_put16(udp + 2, port);
	memcpy(key->src_port, udp, 2);
	memcpy(key->dst_port, udp + 2, 2);
	key->l4_proto = IP_PROTO_UDP;
}

static void put_datagram(struct made *m, struct flow_key *key, uint32_t type)
{
	uint32_t ip = put_ip(m, key, type, IP_PROTO_UDP);

	put_udp(m, key, 0);
	put(m, 10);
	put_end(m, ip);
}

/* What is in a tunnel that carries frames. */
static void put_inner_frame(struct made *m)
{
	static const uint32_t types[] = {IPV4, IPV6, MPLS, 0x88b5};
	uint32_t type = types[random32() % 4];

	put_ethernet(m, &m->deep.inner, type);
	if (type == MPLS)
		memcpy(m->deep.mpls_inner, put(m, 4), 4);
	else if (type != 0x88b5)
		put_datagram(m, &m->deep.inner, type);
	put(m, 20);
}

static void put_vxlan(struct made *m, uint32_t type)
{
	uint32_t ip = put_ip(m, &m->outer, type, IP_PROTO_UDP);

	put_udp(m, &m->outer, 4789);
	put(m, 4);
	memcpy(m->deep.vni + 1, put(m, 3), 3);
	put(m, 1);
	put_inner_frame(m);
	put_end(m, ip);
}

static void put_gre(struct made *m, uint32_t type)
{
	static const uint32_t inside[] = {BRIDGED, IPV4, IPV6, MPLS, 0x1234};
	uint32_t ip = put_ip(m, &m->outer, type, IP_PROTO_GRE), what = inside[random32() % 5];
	uint8_t *h = put(m, 4);
	uint8_t flags = (uint8_t)(random32() & 0xb0); /* checksum, key, sequence number */

	h[0] = flags;
	h[1] = 0;
	frame_put16(h + 2, what);
	frame_put16(m->deep.gre_protocol, what);
	if (flags & 0x80)
		put(m, 4);
	if (flags & 0x20)
		memcpy(m->deep.gre_key, put(m, 4), 4);
	if (flags & 0x10)
		put(m, 4);
	if (what == BRIDGED) {
		put_inner_frame(m);
	} else if (what == MPLS) {
		memcpy(m->deep.mpls_over_gre, put(m, 4), 4);
	} else if (what != 0x1234) {
		frame_put16(m->deep.inner.ether_type, what);
		put_datagram(m, &m->deep.inner, what);
	}
	put(m, 20);
	put_end(m, ip);
}

static void put_others(struct made *m, uint32_t type)
{
	uint32_t ip;

	switch (random32() % 4) {
	case 0:
		ip = put_ip(m, &m->outer, type, IP_PROTO_UDP);
		put_udp(m, &m->outer, 6635);
		memcpy(m->deep.mpls_over_udp, put(m, 4), 4);
		break;
	case 1:
		ip = put_ip(m, &m->outer, type, 50);
		memcpy(m->deep.esp_spi, put(m, 4), 4);
		break;
	case 2:
		ip = put_ip(m, &m->outer, type, 4);
		frame_put16(m->deep.inner.ether_type, IPV4);
		put_datagram(m, &m->deep.inner, IPV4);
		break;
	default:
		put_datagram(m, &m->outer, type);
		return;
	}
	put(m, 20);
	put_end(m, ip);
}

static void make(struct made *m)
{
	uint32_t type = coin() ? IPV4 : IPV6;

	*m = (struct made){0};
	if (random32() % 8 == 0) {
		put_ethernet(m, &m->outer, MPLS + (random32() & 1));
		memcpy(m->deep.mpls, put(m, 4), 4);
		put(m, 20);
		return;
	}
	put_ethernet(m, &m->outer, type);
	switch (random32() % 3) {
	case 0:
		put_vxlan(m, type);
		break;
	case 1:
		put_gre(m, type);
		break;
	default:
		put_others(m, type);
		break;
	}
}

static void expect_deep(const struct made *m, const struct flow_deep *got)
{
	for (size_t i = 0; i < sizeof(*got); i++)
		if (((const uint8_t *)got)[i] != ((const uint8_t *)&m->deep)[i])
			printf("byte %zu: 0x%02x, not 0x%02x\n", i, ((const uint8_t *)got)[i],
			       ((const uint8_t *)&m->deep)[i]);
	CHECK(!memcmp(got, &m->deep, sizeof(*got)));
}

static void test_fields(void)
{
	for (unsigned i = 0; i < FRAMES; i++) {
		struct frame_layout at;
		struct flow_deep got;
		struct flow_key key;
		struct made m;

		make(&m);
		CHECK(frame_parse(m.bytes, min_u32(m.len, FRAME_HEADERS_MAX), m.len, &key, &at));
		CHECK(!memcmp(&key, &m.outer, sizeof(key)));
		flow_deep_read(m.bytes, m.len, &key, &got);
		expect_deep(&m, &got);
	}
}

/* Frames that are cut off anywhere: nothing behind the end is read, which ASan would tell. */
static void test_cut_off(void)
{
	for (unsigned i = 0; i < FRAMES / 4; i++) {
		struct frame_layout at;
		struct flow_deep got;
		struct flow_key key;
		struct made m;
		uint8_t *copy;
		uint32_t n;

		make(&m);
		n = FRAME_MIN + random32() % (m.len - FRAME_MIN);
		copy = malloc(n);
		CHECK(copy);
		memcpy(copy, m.bytes, n);
		if (frame_parse(copy, min_u32(n, FRAME_HEADERS_MAX), n, &key, &at))
			flow_deep_read(copy, n, &key, &got);
		free(copy);
	}
}

/* ---- rules ---- */

#define RULES 40u

static void note_action(void *user, const struct flow_action *action)
{
	uint64_t *got = user;

	*got |= UINT64_C(1) << action->tag;
}

/* A rule that looks at a few bytes anywhere, and wants what a frame has there. */
static void make_rule(const struct made *m, uint32_t i, struct flow_attr *a)
{
	uint8_t *deep = (uint8_t *)&a->deep_mask, *outer = (uint8_t *)&a->mask;

	*a = (struct flow_attr){.priority = 0, .tag = i, .go_on = true};
	for (unsigned n = random32() % 4; n; n--)
		deep[random32() % sizeof(a->deep_mask)] = 0xff;
	/* most bytes of a frame's fields are zero, so look at those that are not */
	for (unsigned tries = 0; tries < 100; tries++) {
		uint32_t at = random32() % sizeof(m->deep);

		if (((const uint8_t *)&m->deep)[at]) {
			deep[at] = 0xff;
			break;
		}
	}
	if (coin())
		outer[random32() % sizeof(a->mask)] = 0xff;
	a->value = m->outer;
	a->deep_value = m->deep;
}

static bool model_matches(const struct flow_attr *a, const struct made *m)
{
	uint64_t diff = 0;

	for (unsigned i = 0; i < FLOW_KEY_WORDS; i++)
		diff |= (a->value.word[i] ^ m->outer.word[i]) & a->mask.word[i];
	for (unsigned i = 0; i < FLOW_DEEP_WORDS; i++)
		diff |= (a->deep_value.word[i] ^ m->deep.word[i]) & a->deep_mask.word[i];
	return !diff;
}

static void test_rules(void)
{
	static struct flow_attr attr[RULES];
	struct flow *flow[RULES];
	struct steering s = {0};
	unsigned hits = 0;

	steering_init(&s);
	for (uint32_t i = 0; i < RULES; i++) {
		struct made m;

		do {
			make(&m);
			make_rule(&m, i, &attr[i]);
		} while (steering_add(&s, &attr[i], &flow[i]));
	}
	for (unsigned i = 0; i < FRAMES; i++) {
		uint64_t got = 0, want = 0;
		struct made m;

		make(&m);
		steering_find(&s, &(struct steering_frame){&m.outer, m.bytes, m.len}, note_action,
			      &got);
		for (uint32_t r = 0; r < RULES; r++)
			want |= (uint64_t)model_matches(&attr[r], &m) << r;
		CHECK(got == want);
		hits += !!got;
	}
	CHECK(hits > FRAMES / 100);
	for (uint32_t i = 0; i < RULES; i++)
		steering_remove(&s, flow[i]);
	steering_release(&s);
}

int main(void)
{
	test_fields();
	test_cut_off();
	test_rules();
	return 0;
}
