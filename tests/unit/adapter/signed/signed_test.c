// SPDX-License-Identifier: BSD-2-Clause
/*
 * Random transfers through keys with signatures against the model: each operation in both
 * directions, on loopback and through a channel, with random cuts of everything that can be cut,
 * and on a port that goes down and up.  signed_test [cases [seed]].
 */
#include <string.h>

#include "signed_pair.h"

/* What the memory's stream does not cover. */
enum { GAP = 0xa5, PLAIN_AT = SIGNED_PAIR_BYTES / 2, MARGIN = 64 };

enum { BY_SEND, BY_WRITE, BY_READ, WAYS };

/*
 * The key of the signed side; the other side has the wire's stream at PLAIN_AT.  requester: which
 * side posts.
 */
struct act {
	struct signed_pair *pair;
	struct sig_case *s;
	int way;
	unsigned owner; /* of the signed key */
	unsigned requester;
	uint64_t mem_bytes;
	struct umr_klm entry[SIGNED_PAIR_ENTRIES];
	uint32_t entries;
	uint64_t place[SIGNED_PAIR_ENTRIES]; /* of each in the region */
	/* the requests: so much of the wire's stream each */
	uint32_t piece[4];
	uint32_t pieces;
};

/* ---- the signed side's memory ---- */

static void cut_memory(struct act *a)
{
	struct sig_case *s = a->s;
	uint64_t longest[] = {a->mem_bytes + 1, 2000, 300, a->mem_bytes / 300 + 9};
	uint64_t most = longest[rng_below(&s->rng, array_size(longest))];
	uint64_t left = a->mem_bytes;
	uint64_t at = rng_below(&s->rng, 64);

	a->entries = 0;
	while (left) {
		uint64_t n = 1 + rng_below(&s->rng, most);

		if (n > left || a->entries == SIGNED_PAIR_ENTRIES - 1)
			n = left;
		a->place[a->entries] = at;
		a->entry[a->entries++] = signed_pair_klm(a->pair, a->owner, at, (uint32_t)n);
		at += n + (maybe(s, 70) ? 1 + rng_below(&s->rng, 30) : 0);
		left -= n;
	}
	CHECK(at < PLAIN_AT);
}

static void fill_memory(struct act *a, const uint8_t *stream)
{
	uint8_t *memory = a->pair->side[a->owner].memory;

	memset(memory, GAP, PLAIN_AT);
	for (uint32_t i = 0; stream && i < a->entries; i++) {
		uint32_t n = be32_get(a->entry[i].byte_count);

		memcpy(memory + a->place[i], stream, n);
		stream += n;
	}
}

/* The stream is there and nothing else was touched. */
static void check_memory(struct act *a, const uint8_t *stream)
{
	const uint8_t *memory = a->pair->side[a->owner].memory;
	uint64_t at = 0;

	for (uint32_t i = 0; i < a->entries; i++) {
		uint32_t n = be32_get(a->entry[i].byte_count);

		for (; at < a->place[i]; at++)
			HOLDS(a->s, memory[at] == GAP);
		HOLDS(a->s, !memcmp(memory + at, stream, n));
		stream += n;
		at += n;
	}
	for (; at < PLAIN_AT; at++)
		HOLDS(a->s, memory[at] == GAP);
}

/* ---- requests ---- */

static void cut_requests(struct act *a)
{
	uint64_t left = a->s->wire;

	a->pieces = 0;
	while (left && a->pieces < 3 && maybe(a->s, 40)) {
		a->piece[a->pieces] = 1 + (uint32_t)rng_below(&a->s->rng, left);
		left -= a->piece[a->pieces++];
	}
	if (left)
		a->piece[a->pieces++] = (uint32_t)left;
}

/* The list of one request under the signed key: one entry or several that follow each other. */
static void signed_list(struct act *a, struct device_wqe *w, uint64_t off, uint32_t n)
{
	while (n) {
		uint32_t part = maybe(a->s, 30) ? 1 + (uint32_t)rng_below(&a->s->rng, n) : n;

		if (w->at > 20 * WQE_UNIT)
			part = n;
		device_wqe_data(w, (void *)(uintptr_t)off, part, a->pair->side[a->owner].skey);
		off += part;
		n -= part;
	}
}

static void post_request(struct act *a, uint64_t off, uint32_t n)
{
	static const uint8_t op[] = {WQE_OP_SEND, WQE_OP_RDMA_WRITE, WQE_OP_RDMA_READ};
	struct signed_pair_side *me = &a->pair->side[a->requester];
	struct signed_pair_side *peer = &a->pair->side[!a->requester];
	bool mine = a->requester == a->owner;
	uint8_t *plain = a->pair->side[!a->owner].memory + PLAIN_AT + off;
	uint8_t *peer_plain = peer->memory + PLAIN_AT + off;
	struct device_wqe w;

	if (a->way == BY_SEND)
		device_recv(&peer->q, mine ? (void *)peer_plain : (void *)(uintptr_t)off, n,
			    mine ? peer->lkey : peer->skey);
	device_wqe_begin(&me->q, &w, op[a->way], WQE_CTRL_CE_ALWAYS, 0);
	if (a->way != BY_SEND)
		device_wqe_raddr(&w, mine ? (uintptr_t)peer_plain : off,
				 mine ? peer->lkey : peer->skey);
	if (mine)
		signed_list(a, &w, off, n);
	else
		device_wqe_data(&w, plain, n, me->lkey);
	device_wqe_end(&w);
}

/* ---- completions ---- */

struct port_account {
	unsigned done[2]; /* completions of each side */
	unsigned signature_errors;
};

static void take_cqe(struct act *a, struct port_account *t, unsigned side, const struct cqe64 *cqe,
		     const struct sig_error *want)
{
	switch (cqe_op(cqe)) {
	case CQE_OP_SIG_ERR:
		HOLDS(a->s, want && side == a->owner && !t->signature_errors);
		check_sig_err(a->pair, side, cqe, want, SIG_REPORT_MANUAL);
		t->signature_errors++;
		break;
	case CQE_OP_REQ:
		HOLDS(a->s, side == a->requester);
		t->done[side]++;
		break;
	case CQE_OP_RESP_SEND:
		HOLDS(a->s, side != a->requester && a->way == BY_SEND);
		t->done[side]++;
		break;
	default:
		fprintf(stderr, "side %u, operation %d: error completion, syndrome 0x%x\n", side,
			a->way, ((const struct cqe64_err *)cqe)->syndrome);
		HOLDS(a->s, !"an error completion");
	}
	/* An error is told before the last completion of those that it may belong to. */
	if (t->done[a->owner] == a->pieces && (a->owner == a->requester || a->way == BY_SEND))
		HOLDS(a->s, t->signature_errors == !!want);
}

/* Polls until all is done; on a bad line the port of the channel's end goes down and up. */
static void finish_act(struct act *a, const struct sig_error *want, bool bad_line)
{
	struct signed_pair *pair = a->pair;
	unsigned expected[2];
	struct port_account t = {0};
	uint64_t spins = 0;

	expected[a->requester] = a->pieces;
	expected[!a->requester] = a->way == BY_SEND ? a->pieces : 0;
	while (t.done[0] < expected[0] || t.done[1] < expected[1] || t.signature_errors < !!want) {
		for (unsigned i = 0; i < 2; i++) {
			const struct cqe64 *cqe = device_cq_poll(&pair->side[i].q.cq);

			if (cqe)
				take_cqe(a, &t, i, cqe, want);
		}
		if (bad_line)
			subnet_set_state(pair->device.subnet, 1,
					 maybe(a->s, 90) ? IB_PORT_ACTIVE : IB_PORT_DOWN);
		signed_pair_progress(pair);
		HOLDS(a->s, ++spins < 50000000);
	}
	subnet_set_state(pair->device.subnet, 1, IB_PORT_ACTIVE);
	signed_pair_progress(pair);
	HOLDS(a->s, !device_cq_poll(&pair->side[0].q.cq) && !device_cq_poll(&pair->side[1].q.cq));
}

/* The first error, as the device knows it. */
static bool first_error(const struct sig_case *s, struct sig_error *e)
{
	const struct model_error *m = &s->model.error[0];

	if (!s->model.errors)
		return false;
	*e = (struct sig_error){
		.kind = m->kind,
		.side = s->dir == SIG_GATHER ? SIG_MEMORY : SIG_WIRE,
		.type = s->plan.in.type,
		.block = m->block,
		.unit = s->plan.in.unit,
		.found = signature_word(m->found),
		.computed = signature_word(m->computed),
	};
	return true;
}

static void test_act(struct signed_pair *pair, struct sig_case *s, int way)
{
	static const enum ib_mtu mtus[] = {IB_MTU_256, IB_MTU_512, IB_MTU_1024, IB_MTU_4096};
	static struct act a;
	bool gather = s->dir == SIG_GATHER;
	bool bad_line = pair->two_processes && maybe(s, 30);
	struct sig_error want;
	bool bad = first_error(s, &want);
	uint8_t *plain;
	uint64_t off = 0;

	a = (struct act){.pair = pair, .s = s, .way = way};
	/* data goes from side 0 to side 1 */
	a.requester = way == BY_READ;
	a.owner = !gather;
	a.mem_bytes = gather ? s->in_bytes : s->out_bytes;
	plain = pair->side[!a.owner].memory + PLAIN_AT;
	cut_memory(&a);
	cut_requests(&a);
	if (!a.pieces)
		return;
	signed_pair_connect(pair, mtus[rng_below(&s->rng, array_size(mtus))]);
	signed_pair_sign(pair, a.owner, &s->config, a.entry, a.entries, a.mem_bytes);
	fill_memory(&a, gather ? s->in : NULL);
	memset(plain - MARGIN, GAP, s->wire + 2 * MARGIN);
	if (!gather)
		memcpy(plain, s->in, s->wire);
	for (uint32_t i = 0; i < a.pieces; i++) {
		post_request(&a, off, a.piece[i]);
		off += a.piece[i];
	}
	finish_act(&a, bad ? &want : NULL, bad_line);
	check_memory(&a, gather ? s->in : s->want);
	HOLDS(s, !memcmp(plain, gather ? s->want : s->in, s->wire));
	for (unsigned i = 0; i < MARGIN; i++)
		HOLDS(s, plain[-1 - (int)i] == GAP && plain[s->wire + i] == GAP);
}

int main(int argc, char **argv)
{
	static struct signed_pair pair[2];
	static struct sig_case s;
	uint64_t cases = argc > 1 ? strtoull(argv[1], NULL, 0) : 1500;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x646576;
	uint64_t errors = 0;

	printf("seed %#llx\n", (unsigned long long)seed);
	signed_pair_up(&pair[0], false);
	signed_pair_up(&pair[1], true);
	for (uint64_t i = 0; i < cases; i++) {
		s.seed = seed;
		s.rng.state = seed | 1ull << 63;
		random_scene(&s);
		test_act(&pair[i & 1], &s, (int)rng_below(&s.rng, WAYS));
		errors += s.model.errors;
		seed = seed * 6364136223846793005u + 1442695040888963407u;
	}
	signed_pair_down(&pair[1]);
	signed_pair_down(&pair[0]);
	printf("%llu cases, %llu errors in them\n", (unsigned long long)cases,
	       (unsigned long long)errors);
	/* A test that never finds anything tests nothing. */
	CHECK(cases < 1000 || errors > 100);
	return 0;
}
