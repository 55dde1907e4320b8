/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames, steering and RSS without a device: parsing, checksums, segmentation; rules against a
 * linear model on random frames; Toeplitz against the vectors of Microsoft's RSS specification.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "adapter/ethernet/flow.h"
#include "adapter/frame/frame.h"
#include "adapter/ethernet/rss.h"
#include "check.h"

/* ---- Toeplitz ---- */

static const uint8_t ms_key[RSS_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct {
	const char *dst, *src;
	uint16_t dport, sport;
	uint32_t l3, l4;
} vectors[] = {
	{"161.142.100.80", "66.9.149.187", 1766, 2794, 0x323e8fc2, 0x51ccc178},
	{"65.69.140.83", "199.92.111.2", 4739, 14230, 0xd718262a, 0xc626b0ea},
	{"12.22.207.184", "24.19.198.95", 38024, 12898, 0xd2d0a5de, 0x5c2b394a},
	{"209.142.163.6", "38.27.205.30", 2217, 48228, 0x82989176, 0xafc7327f},
	{"202.188.127.2", "153.39.163.191", 1303, 44251, 0x5d1809c5, 0x10e828a2},
	{"3ffe:2501:200:3::1", "3ffe:2501:200:1fff::7", 1766, 2794, 0x2cc18cd5, 0x40207d3d},
	{"ff02::1", "3ffe:501:8::260:97ff:fe40:efab", 4739, 14230, 0x0f0c461c, 0xdde51bbf},
	{"fe80::200:f8ff:fe21:67cf", "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 38024, 44251,
	 0x4b61e985, 0x02d1feef},
};

static void toeplitz_vectors(void)
{
	struct rss *rss;
	struct wq *wqs[16];

	for (uintptr_t i = 0; i < 16; i++)
		wqs[i] = (struct wq *)(i + 1);
	for (size_t i = 0; i < array_size(vectors); i++) {
		bool v6 = strchr(vectors[i].dst, ':');
		uint32_t l3 = v6 ? RSS_SRC_IPV6 | RSS_DST_IPV6 : RSS_SRC_IPV4 | RSS_DST_IPV4;
		struct rss_attr attr = {.fields = l3, .log_size = 4, .wqs = wqs};
		struct flow_key key = {.ip_version = v6 ? 6 : 4, .l4_proto = IP_PROTO_TCP};
		uint32_t hash;
		uint8_t type;

		memcpy(attr.key, ms_key, sizeof(ms_key));
		CHECK(inet_pton(v6 ? AF_INET6 : AF_INET, vectors[i].dst, key.dst_ip) == 1);
		CHECK(inet_pton(v6 ? AF_INET6 : AF_INET, vectors[i].src, key.src_ip) == 1);
		key.dst_port[0] = (uint8_t)(vectors[i].dport >> 8);
		key.dst_port[1] = (uint8_t)vectors[i].dport;
		key.src_port[0] = (uint8_t)(vectors[i].sport >> 8);
		key.src_port[1] = (uint8_t)vectors[i].sport;

		CHECK(rss_attr_ok(&attr) && (rss = rss_create(&attr)));
		CHECK(rss_choose(rss, &key, &hash, &type) == wqs[vectors[i].l3 & 15]);
		CHECK(hash == vectors[i].l3 && type);
		free(rss);

		attr.fields |= RSS_SRC_PORT_TCP | RSS_DST_PORT_TCP;
		CHECK(rss_attr_ok(&attr) && (rss = rss_create(&attr)));
		CHECK(rss_choose(rss, &key, &hash, &type) == wqs[vectors[i].l4 & 15]);
		CHECK(hash == vectors[i].l4);
		/* another protocol than the chosen one is not hashed */
		key.l4_proto = IP_PROTO_UDP;
		CHECK(rss_choose(rss, &key, &hash, &type) == wqs[0] && !hash && !type);
		free(rss);
	}
	CHECK(!rss_attr_ok(&(struct rss_attr){.fields = RSS_SRC_IPV4 | RSS_SRC_IPV6}));
	CHECK(!rss_attr_ok(&(struct rss_attr){.fields = RSS_SRC_PORT_TCP | RSS_SRC_PORT_UDP}));
	CHECK(!rss_attr_ok(&(struct rss_attr){.log_size = 1}));
	CHECK(!rss_attr_ok(&(struct rss_attr){.fields = 1, .log_size = 30}));
}

/* ---- frames ---- */

/* A frame of headers and n payload bytes; returns its length. */
static uint32_t build_frame(uint8_t *f, bool vlan, bool v6, bool tcp, uint32_t n)
{
	uint32_t l4 = tcp ? 20 : 8, at = 12, ip;

	memset(f, 0, FRAME_MAX);
	memcpy(f, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02", 12);
	if (vlan) {
		memcpy(f + at, "\x81\x00\x2a\xbc", 4);
		at += 4;
	}
	memcpy(f + at, v6 ? "\x86\xdd" : "\x08\x00", 2);
	ip = at += 2;
	if (v6) {
		f[ip] = 0x60;
		f[ip + 4] = (uint8_t)((l4 + n) >> 8);
		f[ip + 5] = (uint8_t)(l4 + n);
		f[ip + 6] = tcp ? 6 : 17;
		f[ip + 7] = 64;
		memset(f + ip + 8, 0x11, 16);
		memset(f + ip + 24, 0x22, 16);
		at += 40;
	} else {
		f[ip] = 0x45;
		f[ip + 2] = (uint8_t)((20 + l4 + n) >> 8);
		f[ip + 3] = (uint8_t)(20 + l4 + n);
		f[ip + 8] = 64;
		f[ip + 9] = tcp ? 6 : 17;
		memcpy(f + ip + 12, "\x0a\x00\x00\x01\x0a\x00\x00\x02", 8);
		at += 20;
	}
	memcpy(f + at, "\x12\x34\x56\x78", 4);
	if (tcp)
		f[at + 12] = 0x50;
	else
		f[at + 5] = (uint8_t)(8 + n);
	at += l4;
	for (uint32_t i = 0; i < n; i++)
		f[at + i] = (uint8_t)(i * 7);
	return at + n;
}

static void test_parsing(void)
{
	uint8_t f[FRAME_MAX];
	struct frame_layout at;
	struct flow_key key;

	for (unsigned kind = 0; kind < 8; kind++) {
		bool vlan = kind & 1, v6 = kind & 2, tcp = kind & 4;
		uint32_t n = build_frame(f, vlan, v6, tcp, 33);

		CHECK(frame_parse(f, n, n, &key, &at));
		CHECK(key.vlan == vlan && key.ip_version == (v6 ? 6 : 4));
		CHECK(key.l4_proto == (tcp ? 6 : 17) && key.src_port[0] == 0x12);
		CHECK(at.l3 == 14u + (vlan ? 4 : 0) && at.l3_end == n);
		CHECK(!frame_l3_checksum_ok(f, &at));
		frame_fill_l3_checksum(f, &at);
		CHECK(frame_l3_checksum_ok(f, &at) == !v6);
		frame_fill_l4_checksum(f, n, &key, &at);
		CHECK(frame_l4_checksum_ok(f, n, &key, &at));
		f[n - 1] ^= 1;
		CHECK(!frame_l4_checksum_ok(f, n, &key, &at));
		/* cut off anywhere: absent headers, never a read beyond (run under ASan) */
		for (uint32_t cut = 0; cut <= n; cut++) {
			uint8_t *exact = malloc(cut ? cut : 1);

			memcpy(exact, f, cut);
			CHECK(frame_parse(exact, cut, cut, &key, &at) == (cut >= FRAME_MIN));
			CHECK(at.l3_end <= cut || !at.l3);
			if (cut >= FRAME_MIN && frame_l4_checksum_ok(exact, cut, &key, &at))
				CHECK(at.l3_end <= cut);
			free(exact);
		}
	}
	/* a fragment behind the first has no ports */
	build_frame(f, false, false, false, 8);
	f[14 + 7] = 1;
	CHECK(frame_parse(f, 50, 50, &key, &at) && !key.l4_proto && !at.l4);
	/* the known header of RFC 1071 texts */
	memcpy(f + 14,
	       "\x45\x00\x00\x73\x00\x00\x40\x00\x40\x11\x00\x00\xc0\xa8\x00\x01\xc0\xa8\x00\xc7",
	       20);
	CHECK(frame_parse(f, 64, 14 + 0x73, &key, &at));
	frame_fill_l3_checksum(f, &at);
	CHECK(f[24] == 0xb8 && f[25] == 0x61);
}

static void test_segmentation(void)
{
	uint8_t f[FRAME_MAX];
	uint32_t n = build_frame(f, false, false, true, 100);

	f[14 + 20 + 13] = 0x80 | 0x08 | 0x01; /* CWR, PSH, FIN */
	f[14 + 20 + 7] = 10;		      /* sequence number */
	CHECK(frame_segment(f, n, 54, 3, 300, false));
	CHECK(f[14 + 5] == 3 && f[14 + 20 + 6] == 1 && f[14 + 20 + 7] == 54);
	CHECK(f[14 + 20 + 13] == 0 && (f[16] << 8 | f[17]) == (int)n - 14);
	n = build_frame(f, true, true, true, 100);
	f[18 + 40 + 13] = 0x80 | 0x08;
	CHECK(frame_segment(f, n, 78, 0, 0, true));
	CHECK(f[18 + 40 + 13] == 0x88 && (f[22] << 8 | f[23]) == 120);
	n = build_frame(f, false, false, false, 100);
	CHECK(!frame_segment(f, n, 54, 0, 0, true));
	n = build_frame(f, false, false, true, 100);
	for (uint32_t header = 0; header < 54; header++)
		CHECK(!frame_segment(f, n, header, 0, 0, true));
}

/* ---- steering against a linear model ---- */

#define RULES 300u

struct model_rule {
	struct flow_attr attr;
	struct flow *flow;
};

static struct model_rule rules[RULES];
static uint32_t nrules;

static void random_bits(struct rng *rng, uint8_t *field, size_t n)
{
	for (size_t i = 0; i < n; i++)
		field[i] = (uint8_t)rng_below(rng, 2);
}

/* Few values per field, so that rules and frames meet. */
static void random_key(struct rng *rng, struct flow_key *key)
{
	*key = (struct flow_key){0};
	random_bits(rng, key->dst_mac, 1);
	random_bits(rng, key->src_mac + 5, 1);
	random_bits(rng, key->src_ip + 3, 1);
	random_bits(rng, key->dst_port + 1, 1);
	random_bits(rng, &key->vlan, 1);
}

static const struct flow_key masks[] = {
	{.dst_mac = {0xff}},
	{.dst_mac = {0xff}, .src_mac = {[5] = 0xff}},
	{.src_ip = {[3] = 0xff}, .dst_port = {[1] = 0xff}},
	{.vlan = 0xff},
	{.reserved = 0},
};

static bool same_masked(const struct flow_key *a, const struct flow_key *b,
			const struct flow_key *mask)
{
	for (unsigned i = 0; i < FLOW_KEY_WORDS; i++)
		if ((a->word[i] ^ b->word[i]) & mask->word[i])
			return false;
	return true;
}

static uint32_t order_of(const struct flow_attr *a)
{
	return a->type != FLOW_NORMAL ? 1000 : a->priority * 2 + !a->go_on;
}

static bool rule_takes(const struct flow_attr *a, const struct flow_key *key)
{
	switch (a->type) {
	case FLOW_ALL_DEFAULT:
		return true;
	case FLOW_MC_DEFAULT:
		return key->dst_mac[0] & 1;
	default:
		return same_masked(&a->value, key, &a->mask);
	}
}

struct got {
	bool qp[8];
	unsigned n;
};

static void note_action(void *user, const struct flow_action *action)
{
	struct got *got = user;
	uintptr_t qp = (uintptr_t)action->qp;

	CHECK(qp < 8 && !got->qp[qp]);
	got->qp[qp] = true;
	got->n++;
}

/*
 * Which rules of one order overlap is left open by the specification; the model therefore accepts
 * any group of equal rules of the best order, and demands all of that group.
 */
static void compare_actions(struct steering *s, const struct flow_key *key)
{
	struct got got = {0}, all = {0};
	uint32_t best = UINT32_MAX;
	bool fits = false, any = false;

	steering_find(s, &(struct steering_frame){.key = key}, note_action, &got);
	for (uint32_t order = 0; order <= 1000 && best == UINT32_MAX; order++) {
		bool hit = false;

		for (uint32_t i = 0; i < nrules; i++) {
			const struct flow_attr *a = &rules[i].attr;

			if (order_of(a) != order || !rule_takes(a, key))
				continue;
			hit = any = true;
			if (a->go_on)
				all.qp[(uintptr_t)a->qp] = true;
		}
		if (hit && (order & 1 || order == 1000))
			best = order;
	}
	CHECK(any == !!got.n);
	/* all who leave the frame to others, before the best order, have it */
	for (unsigned q = 0; q < 8; q++)
		CHECK(!all.qp[q] || got.qp[q]);
	if (best == UINT32_MAX)
		return;
	for (uint32_t i = 0; i < nrules && !fits; i++) {
		struct got want = all;

		if (order_of(&rules[i].attr) != best || !rule_takes(&rules[i].attr, key))
			continue;
		for (uint32_t j = 0; j < nrules; j++)
			if (order_of(&rules[j].attr) == best &&
			    (best == 1000 ||
			     same_masked(&rules[i].attr.mask, &rules[j].attr.mask,
					 &(struct flow_key){.word = {~0ull, ~0ull, ~0ull, ~0ull,
								     ~0ull, ~0ull, ~0ull,
								     ~0ull}})) &&
			    rule_takes(&rules[j].attr, key))
				want.qp[(uintptr_t)rules[j].attr.qp] = true;
		fits = !memcmp(want.qp, got.qp, sizeof(want.qp));
	}
	CHECK(fits);
}

static void against_model(void)
{
	struct rng rng = {7};
	struct steering s = {0};

	steering_init(&s);
	for (unsigned round = 0; round < 20000; round++) {
		struct flow_key key;

		if (nrules && (nrules == RULES || rng_below(&rng, 3) == 0)) {
			uint32_t i = (uint32_t)rng_below(&rng, nrules);

			steering_remove(&s, rules[i].flow);
			rules[i] = rules[--nrules];
		} else if (rng_below(&rng, 3) == 0 && nrules < 40) {
			struct model_rule *r = &rules[nrules];
			bool leftover = rng_below(&rng, 12) == 0;

			r->attr = (struct flow_attr){
				.type = leftover ? FLOW_ALL_DEFAULT + rng_below(&rng, 2)
						 : FLOW_NORMAL,
				.priority = (uint32_t)rng_below(&rng, 3),
				.mask = masks[rng_below(&rng, array_size(masks))],
				/* a queue belongs to one order, so that each is named once */
				.qp = (struct qp *)(uintptr_t)(1 + rng_below(&rng, 3)),
			};
			random_key(&rng, &r->attr.value);
			CHECK(!steering_add(&s, &r->attr, &r->flow));
			nrules++;
		}
		random_key(&rng, &key);
		compare_actions(&s, &key);
	}
	while (nrules)
		steering_remove(&s, rules[--nrules].flow);
	CHECK(!atomic_load(&s.layers));
	steering_release(&s);
}

static void going_on_and_conflicts(void)
{
	struct steering s = {0};
	struct flow_attr first = {.mask = masks[0], .qp = (struct qp *)1, .go_on = true};
	struct flow_attr second = {.mask = masks[0], .qp = (struct qp *)2};
	struct flow_attr drop = {.mask = masks[0]}, tagged = second, late = second;
	const struct flow_key key = {0};
	struct flow *a, *b, *c, *d;
	struct got got = {0};

	steering_init(&s);
	tagged.tag = 5;
	late.priority = 1;
	late.qp = (struct qp *)3;
	CHECK(!steering_add(&s, &late, &d));
	CHECK(!steering_add(&s, &second, &b));
	CHECK(!steering_add(&s, &first, &a));
	CHECK(steering_add(&s, &drop, &c) == -EEXIST);
	CHECK(steering_add(&s, &tagged, &c) == -EEXIST);
	/* the same rule twice delivers once */
	CHECK(!steering_add(&s, &second, &c));
	steering_find(&s, &(struct steering_frame){.key = &key}, note_action, &got);
	CHECK(got.n == 2 && got.qp[1] && got.qp[2]);
	steering_remove(&s, b);
	got = (struct got){0};
	steering_find(&s, &(struct steering_frame){.key = &key}, note_action, &got);
	CHECK(got.n == 2);
	steering_remove(&s, c);
	got = (struct got){0};
	steering_find(&s, &(struct steering_frame){.key = &key}, note_action, &got);
	CHECK(got.n == 2 && got.qp[3]);
	steering_remove(&s, a);
	steering_remove(&s, d);
	steering_release(&s);
}

int main(void)
{
	toeplitz_vectors();
	test_parsing();
	test_segmentation();
	going_on_and_conflicts();
	against_model();
	return 0;
}
