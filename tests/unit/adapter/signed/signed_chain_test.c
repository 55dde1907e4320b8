// SPDX-License-Identifier: BSD-2-Clause
/*
 * Random chains of keys under one transaction signature, against a plain CRC of all their data: in
 * memory, on the wire or both, made and checked, begun by the seed or by SET_PSV, in requests that
 * end anywhere, of which one may be the signature alone; on loopback, through a channel, and on a
 * port that goes down and up, so that requests are sent again.  signed_chain_test [cases [seed]].
 */
#include <string.h>

#include "adapter/memory/psv.h"
#include "base/hazard.h"
#include "signed_pair.h"

enum { KEYS = 4, PIECES = 3, CRC = 4, LONGEST = 6000, PLAIN_AT = SIGNED_PAIR_BYTES / 2 };
enum { BY_SEND, BY_WRITE, BY_READ, WAYS };

struct chain {
	struct signed_pair *pair;
	struct rng rng;
	uint64_t seed;
	struct mkey *key[2][KEYS]; /* of both sides */
	bool gather;
	int way;
	unsigned owner, requester;
	unsigned keys;
	uint32_t bytes[KEYS]; /* of data */
	bool on[SIG_SIDES];   /* who has the signature */
	bool by_psv;	      /* the first key begins with what SET_PSV wrote */
	bool signs;	      /* the last key has the signature */
	uint32_t start;
	bool ones;
	bool damaged; /* the signature of the input */
	uint32_t sum; /* of all data, not inverted */
	unsigned requests;
	uint8_t data[KEYS * LONGEST];
};

#define CHAIN_HOLDS(c, cond)                                                                       \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "chain with seed %#llx\n", (unsigned long long)(c)->seed); \
			CHECK(cond);                                                               \
		}                                                                                  \
	} while (0)

static uint32_t plain_crc32c(uint32_t reg, const uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		reg ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			reg = reg >> 1 ^ (reg & 1 ? 0x82f63b78 : 0);
	}
	return reg;
}

static bool chance(struct chain *c, unsigned percent)
{
	return rng_below(&c->rng, 100) < percent;
}

static bool is_input(const struct chain *c, enum sig_side side)
{
	return (side == SIG_MEMORY) == c->gather;
}

/* Bytes of a key's stream on one side. */
static uint32_t stream_bytes(const struct chain *c, enum sig_side side, unsigned key)
{
	return c->bytes[key] + (c->on[side] && c->signs && key == c->keys - 1 ? CRC : 0);
}

static uint32_t all_bytes(const struct chain *c, enum sig_side side)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < c->keys; i++)
		n += stream_bytes(c, side, i);
	return n;
}

/* All streams of one side, one behind the other, as they should be. */
static void put_streams(const struct chain *c, enum sig_side side, uint8_t *to)
{
	uint32_t n = all_bytes(c, side), crc = ~c->sum;

	memcpy(to, c->data, n);
	if (!c->on[side] || !c->signs)
		return;
	for (unsigned i = 0; i < CRC; i++)
		to[n - CRC + i] = (uint8_t)(crc >> 8 * i);
	if (c->damaged && is_input(c, side))
		to[n - 1] ^= 0x40;
}

static void draw_data(struct chain *c)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < c->keys; i++)
		n += c->bytes[i];
	for (uint32_t i = 0; i < n; i++)
		c->data[i] = (uint8_t)rng_next(&c->rng);
	c->sum = plain_crc32c(c->start, c->data, n);
}

static void draw_chain(struct chain *c)
{
	static const uint32_t longest[] = {8, 300, LONGEST};

	c->gather = chance(c, 50);
	c->way = (int)rng_below(&c->rng, WAYS);
	/* data goes from side 0 to side 1 */
	c->requester = c->way == BY_READ;
	c->owner = !c->gather;
	c->keys = 1 + (unsigned)rng_below(&c->rng, KEYS);
	for (unsigned i = 0; i < c->keys; i++)
		c->bytes[i] = 1 + (uint32_t)rng_below(&c->rng, longest[rng_below(&c->rng, 3)]);
	c->on[SIG_WIRE] = chance(c, 60);
	c->on[SIG_MEMORY] = !c->on[SIG_WIRE] || chance(c, 30);
	c->signs = chance(c, 85);
	c->by_psv = chance(c, 30);
	c->ones = chance(c, 50);
	c->start = c->by_psv ? (uint32_t)rng_next(&c->rng) : c->ones ? UINT32_MAX : 0;
	c->damaged = c->signs && c->on[c->gather ? SIG_MEMORY : SIG_WIRE] && chance(c, 30);
	draw_data(c);
}

/* ---- keys ---- */

static void sign_keys(struct chain *c)
{
	struct signed_pair_side *s = &c->pair->side[c->owner];
	uint64_t at = 0;

	for (unsigned i = 0; i < c->keys; i++) {
		uint32_t n = stream_bytes(c, SIG_MEMORY, i);
		uint32_t cut = n > 1 ? 1 + (uint32_t)rng_below(&c->rng, n) : n;
		const struct umr_klm e[2] = {signed_pair_klm(c->pair, c->owner, at, cut),
					     signed_pair_klm(c->pair, c->owner, at + cut, n - cut)};
		struct sig_config config = {.check_mask = 0xff, .data_bytes = c->bytes[i]};

		for (int side = 0; side < SIG_SIDES; side++)
			if (c->on[side])
				config.side[side] = (struct sig_domain){
					.type = SIG_CRC32C,
					.block = c->bytes[i],
					.seed_ones = c->ones,
					.transaction = true,
					.first = !i && !c->by_psv,
					.last = c->signs && i == c->keys - 1,
				};
		CHAIN_HOLDS(c, sig_config_check(&config) == SIG_ACCEPTED);
		s->skey = mkey_key(c->key[c->owner][i]);
		signed_pair_sign(c->pair, c->owner, &config, e, n == cut ? 1 : 2, n);
		at += n;
	}
}

/* Both have a value of no chain, or the one that this chain begins with. */
static void set_psvs(struct chain *c)
{
	struct signed_pair_side *s = &c->pair->side[c->owner];

	hazard_enter();
	for (int i = 0; i < SIG_SIDES; i++)
		CHAIN_HOLDS(c, psv_set(signed_pair_adapter(c->pair, c->owner),
				       psv_number(s->psv[i]), s->q.pdn,
				       (uint64_t)(c->by_psv ? c->start : 0xbadbadbad) << 32));
	hazard_leave();
}

static void check_psvs(struct chain *c)
{
	for (int i = 0; i < SIG_SIDES; i++) {
		uint64_t value;
		bool error;

		psv_query(c->pair->side[c->owner].psv[i], &value, &error);
		CHAIN_HOLDS(c, !c->on[i] || value == (uint64_t)c->sum << 32);
		CHAIN_HOLDS(c, error == (c->damaged && is_input(c, (enum sig_side)i)));
	}
}

/* ---- requests ---- */

static void post(struct chain *c, uint32_t key, uint64_t off, uint64_t plain, uint32_t n)
{
	static const uint8_t op[] = {WQE_OP_SEND, WQE_OP_RDMA_WRITE, WQE_OP_RDMA_READ};
	struct signed_pair_side *me = &c->pair->side[c->requester];
	struct signed_pair_side *peer = &c->pair->side[!c->requester];
	bool mine = c->requester == c->owner;
	uint8_t *at = c->pair->side[!c->owner].memory + PLAIN_AT + plain;
	uint64_t here = mine ? off : (uintptr_t)at, there = mine ? (uintptr_t)at : off;
	struct device_wqe w;

	if (c->way == BY_SEND)
		device_recv(&peer->q, (void *)(uintptr_t)there, n, mine ? peer->lkey : key);
	device_wqe_begin(&me->q, &w, op[c->way], WQE_CTRL_CE_ALWAYS, 0);
	if (c->way != BY_SEND)
		device_wqe_raddr(&w, there, mine ? peer->lkey : key);
	device_wqe_data(&w, (void *)(uintptr_t)here, n, mine ? key : me->lkey);
	device_wqe_end(&w);
	c->requests++;
}

/* Each key's stream of the wire in one request or a few. */
static void post_all(struct chain *c)
{
	uint64_t plain = 0;

	c->requests = 0;
	for (unsigned i = 0; i < c->keys; i++) {
		uint32_t n = stream_bytes(c, SIG_WIRE, i), at = 0;

		for (unsigned k = 0; at < n; k++) {
			uint32_t part = n - at;

			if (k < PIECES - 1 && n - at > CRC && n > c->bytes[i] && chance(c, 30))
				part = c->bytes[i] > at ? c->bytes[i] - at : part;
			else if (k < PIECES - 1 && chance(c, 40))
				part = 1 + (uint32_t)rng_below(&c->rng, part);
			post(c, mkey_key(c->key[c->owner][i]), at, plain, part);
			at += part;
			plain += part;
		}
	}
}

static void finish(struct chain *c, bool bad_line)
{
	struct signed_pair *pair = c->pair;
	unsigned done[2] = {0}, errors = 0;
	uint32_t crc = ~c->sum;
	const struct sig_error want = {
		.kind = SIG_BAD_GUARD,
		.side = c->gather ? SIG_MEMORY : SIG_WIRE,
		.type = SIG_CRC32C,
		.transaction = true,
		.unit = c->bytes[c->keys - 1] + CRC,
		.found = (uint64_t)__builtin_bswap32(crc ^ 0x40000000) << 32,
		.computed = (uint64_t)__builtin_bswap32(crc) << 32,
	};
	uint64_t spins = 0;

	while (done[c->requester] < c->requests || errors < c->damaged ||
	       (c->way == BY_SEND && done[!c->requester] < c->requests)) {
		for (unsigned i = 0; i < 2; i++) {
			const struct cqe64 *cqe = device_cq_poll(&pair->side[i].q.cq);

			if (cqe && cqe_op(cqe) == CQE_OP_SIG_ERR) {
				CHAIN_HOLDS(c, c->damaged && i == c->owner && !errors);
				check_sig_err(pair, i, cqe, &want, SIG_REPORT_MANUAL);
				errors++;
			} else if (cqe) {
				CHAIN_HOLDS(c, cqe_op(cqe) == CQE_OP_REQ ||
						       cqe_op(cqe) == CQE_OP_RESP_SEND);
				done[i]++;
			}
		}
		if (bad_line)
			subnet_set_state(pair->device.subnet, 1,
					 chance(c, 90) ? IB_PORT_ACTIVE : IB_PORT_DOWN);
		signed_pair_progress(pair);
		CHAIN_HOLDS(c, ++spins < 50000000);
	}
	if (bad_line)
		subnet_set_state(pair->device.subnet, 1, IB_PORT_ACTIVE);
	CHAIN_HOLDS(c, idle(pair));
}

/* Once more over other data, with the keys as they are. */
static void run_chain(struct chain *c)
{
	static uint8_t want[KEYS * LONGEST + CRC];
	enum sig_side input = c->gather ? SIG_MEMORY : SIG_WIRE, output = (enum sig_side) !input;
	struct signed_pair_side *owner = &c->pair->side[c->owner];
	uint8_t *plain = c->pair->side[!c->owner].memory + PLAIN_AT;
	uint8_t *from = c->gather ? owner->memory : plain, *to = c->gather ? plain : owner->memory;
	bool bad_line = c->pair->two_processes && chance(c, 50);

	memset(to, 0xee, KEYS * LONGEST);
	put_streams(c, input, from);
	set_psvs(c);
	post_all(c);
	finish(c, bad_line);
	put_streams(c, output, want);
	CHAIN_HOLDS(c, !memcmp(to, want, all_bytes(c, output)) && to[all_bytes(c, output)] == 0xee);
	check_psvs(c);
}

static void test_chain(struct chain *c)
{
	static const enum ib_mtu mtus[] = {IB_MTU_256, IB_MTU_512, IB_MTU_1024, IB_MTU_4096};

	draw_chain(c);
	signed_pair_connect(c->pair, mtus[rng_below(&c->rng, array_size(mtus))]);
	sign_keys(c);
	run_chain(c);
	if (c->damaged)
		return;
	draw_data(c);
	run_chain(c);
}

/* Lets what one side has to do happen, and nothing of the other. */
static void progress_alone(struct signed_pair *t, unsigned side)
{
	(void)wire_process_progress(t->process[side].host);
	(void)adapter_progress(t->device.adapter[side], NULL);
}

/*
 * The packets of the first key get lost, and those of the second do not: when the first key's are sent
 * again, the second one has begun already.
 */
static void lost_first(struct chain *c, int way)
{
	struct signed_pair *t = c->pair;
	uint8_t *plain = t->side[1].memory + PLAIN_AT;
	static uint8_t want[KEYS * LONGEST + CRC];

	*c = (struct chain){.pair = t,
			    .rng = c->rng,
			    .gather = true,
			    .way = way,
			    .requester = way == BY_READ,
			    .keys = 2,
			    .bytes = {700, 900},
			    .on[SIG_WIRE] = true,
			    .signs = true,
			    .ones = true,
			    .start = UINT32_MAX,
			    .key = {{c->key[0][0], c->key[0][1]}, {c->key[1][0], c->key[1][1]}}};
	draw_data(c);
	signed_pair_connect(t, IB_MTU_1024);
	sign_keys(c);
	set_psvs(c);
	memset(plain, 0xee, KEYS * LONGEST);
	put_streams(c, SIG_MEMORY, t->side[0].memory);
	if (way == BY_READ) {
		post(c, mkey_key(c->key[0][0]), 0, 0, 700);
		progress_alone(t, 1);
	}
	subnet_set_state(t->device.subnet, 1, IB_PORT_DOWN);
	if (way != BY_READ)
		post(c, mkey_key(c->key[0][0]), 0, 0, 700);
	progress_alone(t, 0);
	subnet_set_state(t->device.subnet, 1, IB_PORT_ACTIVE);
	post(c, mkey_key(c->key[0][1]), 0, 700, 900 + CRC);
	finish(c, false);
	put_streams(c, SIG_WIRE, want);
	CHAIN_HOLDS(c, !memcmp(plain, want, 1600 + CRC));
	check_psvs(c);
}

int main(int argc, char **argv)
{
	static struct signed_pair pair[3];
	static struct chain c;
	uint64_t cases = argc > 1 ? strtoull(argv[1], NULL, 0) : 600;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x636861696e;
	struct mkey *key[array_size(pair)][2][KEYS];

	printf("seed %#llx\n", (unsigned long long)seed);
	signed_pair_up(&pair[0], false);
	signed_pair_up(&pair[1], true);
	signed_pair_up_exposed(&pair[2]);
	for (unsigned p = 0; p < array_size(pair); p++)
		for (unsigned i = 0; i < 2 * KEYS; i++)
			key[p][i / KEYS][i % KEYS] = signed_pair_key(&pair[p], i / KEYS);
	c.pair = &pair[1];
	c.rng.state = seed | 1;
	memcpy(c.key, key[1], sizeof(c.key));
	for (int way = 0; way < WAYS; way++)
		lost_first(&c, way);
	for (uint64_t i = 0; i < cases; i++) {
		unsigned p = i % array_size(pair);

		c.seed = seed;
		c.rng.state = seed | 1ull << 63;
		c.pair = &pair[p];
		memcpy(c.key, key[p], sizeof(c.key));
		test_chain(&c);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
	}
	for (unsigned p = 0; p < array_size(pair); p++) {
		for (unsigned i = 0; i < 2 * KEYS; i++)
			mkey_destroy(signed_pair_adapter(&pair[p], i / KEYS),
				     key[p][i / KEYS][i % KEYS]);
		signed_pair_down(&pair[p]);
	}
	return 0;
}
