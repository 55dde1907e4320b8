/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring and its records against a producer that writes nonsense: every wrong length and cursor
 * is refused, and no read goes past a record (the memory ends at an unmapped page).
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "wire/short_send.h"
#include "wire/record.h"
#include "check.h"
#include "ring_ends.h"

/* Random lengths through many turns of the ring; each record holds its number. */
static void test_turns(void)
{
	struct rng rng = {5};
	uint64_t sent = 0, got = 0;
	unsigned full = 0, told = 0;

	fresh_ring();
	while (got < 50000) {
		uint32_t bytes = 64 * (uint32_t)(1 + rng_below(&rng, SIZE / 4 / 64));
		const void *in;
		void *out;
		uint32_t len;

		for (unsigned n = (unsigned)rng_below(&rng, 12); n--;) {
			int rc = ring_reserve(&tx, bytes, &out);

			if (rc) {
				CHECK(rc == -ENOSPC);
				full++;
				break;
			}
			CHECK(!*(uint32_t *)out);
			memset((char *)out + 4, (int)sent | 1, bytes - 4);
			((unsigned char *)out)[4] = ((unsigned char *)out)[bytes - 1] =
				(unsigned char)sent;
			CHECK(got != sent || !ring_peek(&rx, &in, &len));
			if (rng_below(&rng, 10) == 0)
				continue; /* changed our mind: nothing to be seen */
			ring_commit(&tx, bytes);
			sent++;
		}
		for (unsigned n = (unsigned)rng_below(&rng, 12);
		     n-- && ring_peek(&rx, &in, &len);) {
			CHECK(got < sent);
			CHECK(((const unsigned char *)in)[4] == (unsigned char)got);
			CHECK(((const unsigned char *)in)[len - 1] == (unsigned char)got);
			ring_next(&rx, len);
			got++;
		}
		told += give_back();
		CHECK(got <= sent);
	}
	CHECK(full > 100 && told > 100);
}

struct visit {
	uint32_t next; /* number of the record that must come */
	unsigned seen;
};

static void visit_one(void *arg, void *record, uint32_t bytes)
{
	const uint32_t *words = record;
	struct visit *v = arg;

	CHECK(words[0] == bytes && words[1] == v->next++);
	v->seen++;
}

/* The producer sees again exactly those that the consumer has not returned, in order. */
static void test_visits(void)
{
	struct rng rng = {6};
	uint32_t sent = 0, got = 0, returned = 0;

	fresh_ring();
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t bytes = 64 * (uint32_t)(1 + rng_below(&rng, SIZE / 4 / 64)), len;
		struct visit v = {.next = returned};
		const void *in;
		void *out;

		if (!ring_reserve(&tx, bytes, &out) && rng_below(&rng, 10)) {
			((uint32_t *)out)[1] = sent++;
			ring_commit(&tx, bytes);
		}
		if (rng_below(&rng, 2) && ring_peek(&rx, &in, &len)) {
			CHECK(((const uint32_t *)in)[1] == got++);
			ring_next(&rx, len);
		}
		ring_each_unread(&tx, visit_one, &v);
		CHECK(v.next == sent && v.seen == sent - returned);
		if (rng_below(&rng, 3) == 0) {
			(void)give_back();
			returned = got;
		}
	}
}

static void visit_within(void *arg, void *record, uint32_t bytes)
{
	const unsigned char *at = record;

	(void)arg;
	CHECK(bytes && at >= data && bytes <= SIZE && at + bytes <= data + SIZE);
	memset(record, 1, 8); /* as who overwrites what comes after it */
}

/* The consumer has written over the records and its cursor: nothing outside the ring is visited. */
static void visits_of_noise(void)
{
	struct rng rng = {7};
	void *out;

	for (unsigned i = 0; i < 20000; i++) {
		fresh_ring();
		for (unsigned n = 1 + (unsigned)rng_below(&rng, 8); n--;) {
			CHECK(!ring_reserve(&tx, SIZE / 16, &out));
			ring_commit(&tx, SIZE / 16);
		}
		for (unsigned n = (unsigned)rng_below(&rng, 20); n--;) {
			uint32_t len = rng_below(&rng, 2) ? 64 * (uint32_t)rng_below(&rng, 2000)
							  : (uint32_t)rng_next(&rng);

			memcpy(data + 64 * rng_below(&rng, SIZE / 64), &len, sizeof(len));
		}
		atomic_store(&shared.tail,
			     rng_below(&rng, 2) ? 64 * rng_below(&rng, SIZE / 64) : rng_next(&rng));
		ring_each_unread(&tx, visit_within, NULL);
	}
}

/*
 * A record of another length than the one before at the same place, and one that was given up in
 * between: what lies behind is old, and no record.
 */
static void nothing_behind(void)
{
	static const uint32_t lengths[] = {64, 128, 192, 256, 320, 1024};
	const void *in;
	uint32_t len;
	void *out;

	for (size_t i = 0; i < array_size(lengths) * array_size(lengths); i++) {
		uint32_t old = lengths[i / array_size(lengths)], now = lengths[i % 6];

		fresh_ring();
		memset(data + 64, 0x40, SIZE - 64); /* each line says that a record is there */
		CHECK(!ring_reserve(&tx, old, &out));
		memset((char *)out + 4, 0x40, old - 4);
		CHECK(!ring_reserve(&tx, now, &out));
		ring_commit(&tx, now);
		CHECK(ring_peek(&rx, &in, &len) == 1 && len == now);
		ring_next(&rx, len);
		CHECK(!ring_has_news(&rx) && !ring_peek(&rx, &in, &len));
		CHECK(!ring_reserve(&tx, old, &out));
		memset((char *)out + 4, 0x40, old - 4);
		CHECK(!ring_peek(&rx, &in, &len));
		CHECK(!ring_reserve(&tx, 64, &out));
		ring_commit(&tx, 64);
		CHECK(ring_peek(&rx, &in, &len) == 1 && len == 64);
		ring_next(&rx, len);
		CHECK(!ring_peek(&rx, &in, &len));
	}
}

static void bad_lengths(void)
{
	static const uint32_t lengths[] = {RING_TURN, 2,	 63,	     65,
					   SIZE - 63, SIZE + 64, 0x7fffffc0, UINT32_MAX};
	const void *in;
	uint32_t len;
	void *out;

	for (size_t i = 0; i < array_size(lengths); i++) {
		fresh_ring();
		CHECK(!ring_reserve(&tx, 64, &out));
		ring_commit(&tx, 64);
		*(uint32_t *)out = lengths[i];
		CHECK(ring_peek(&rx, &in, &len) == -EPROTO);
	}
	/* Past the end of the ring. */
	fresh_ring();
	CHECK(!ring_reserve(&tx, SIZE / 2, &out));
	ring_commit(&tx, SIZE / 2);
	CHECK(ring_peek(&rx, &in, &len) == 1);
	ring_next(&rx, len);
	CHECK(!ring_reserve(&tx, 64, &out));
	ring_commit(&tx, 64);
	*(uint32_t *)out = SIZE / 2 + 64;
	CHECK(ring_peek(&rx, &in, &len) == -EPROTO);
	/* Back to the beginning, where nothing has been stored. */
	*(uint32_t *)out = RING_TURN;
	*(uint32_t *)(void *)data = 0;
	CHECK(ring_peek(&rx, &in, &len) == -EPROTO);
}

static void bad_cursors(void)
{
	static const uint64_t heads[] = {1, 63, SIZE + 64, UINT64_MAX, UINT64_MAX - 63};
	void *out;

	for (size_t i = 0; i < array_size(heads); i++) {
		fresh_ring();
		atomic_store(&shared.head, heads[i]);
		CHECK(ring_open_consumer(&rx, &shared, data, SIZE) == -EPROTO);
		CHECK(ring_open_producer(&tx, &shared, data, SIZE) == -EPROTO);
	}
	/* A consumer that claims to have read more than was sent, or takes back what it read. */
	for (size_t i = 0; i < array_size(heads); i++) {
		fresh_ring();
		while (!ring_reserve(&tx, 64, &out))
			ring_commit(&tx, 64);
		atomic_store(&shared.tail, heads[i]);
		CHECK(ring_reserve(&tx, 64, &out) == -EPROTO);
	}
	CHECK(ring_open_producer(&tx, &shared, data, SIZE - 64) == -EINVAL);
	CHECK(ring_open_producer(&tx, &shared, data, SIZE + 1) == -EINVAL);
}

static struct path path = {.src_port = 1, .dst_port = 2, .slid = 3, .dlid = 4, .sl = 5};

#define SAME(a, b, field) CHECK((a)->field == (b)->field)

static struct pkt_foreign sender;

static void check_same(const struct pkt *a, const struct pkt *b)
{
	SAME(a, b, opcode);
	SAME(a, b, solicited);
	SAME(a, b, ack_req);
	SAME(a, b, aeth);
	SAME(a, b, pkey);
	SAME(a, b, migreq_clear);
	SAME(a, b, dqpn);
	SAME(a, b, sqpn);
	SAME(a, b, qkey);
	SAME(a, b, psn);
	SAME(a, b, npkts);
	SAME(a, b, msn);
	SAME(a, b, imm);
	SAME(a, b, srqn);
	SAME(a, b, va);
	SAME(a, b, rkey);
	SAME(a, b, dma_len);
	SAME(a, b, swap_add);
	SAME(a, b, compare);
	SAME(a, b, atomic_orig);
	SAME(a, b, payload_len);
	SAME(a, b, path->src_port);
	SAME(a, b, path->dst_port);
	SAME(a, b, path->slid);
	SAME(a, b, path->dlid);
	SAME(a, b, path->sl);
	SAME(a, b, path->path_bits);
	SAME(a, b, path->hop_limit);
	SAME(a, b, path->traffic_class);
	SAME(a, b, path->flow_label);
	SAME(a, b, path->grh);
	SAME(a, b, path->roce_v1);
	CHECK(!memcmp(&a->path->sgid, &b->path->sgid, sizeof(union ib_gid)));
	CHECK(!memcmp(&a->path->dgid, &b->path->dgid, sizeof(union ib_gid)));
}

/* What is in a packet does not decide which parts its record has: the operation does. */
static void records_by_operation(void)
{
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		static struct record_pkt out;
		const struct bth_props *p = bth_props_of((uint8_t)opcode);
		struct path way = {.sgid.half[0] = 1, .dgid.half[1] = 2, .hop_limit = 3};
		struct pkt none = {.opcode = (uint8_t)opcode, .npkts = 1, .path = &way};
		struct pkt full = none;
		const struct bth_transport_props *t = bth_transport_props_of((uint8_t)opcode);
		uint32_t bytes = record_bytes(&none, false), parts = 48;

		parts += t->deth || (t->xrceth && p->request) ? 8 : 0;
		parts += p->reth || p->atomic_eth ? 16 : 0;
		parts += p->atomic_eth ? 16 : 0;
		parts += p->atomic_ack ? 8 : 0;
		parts += pkt_has_dc(&none) ? 24 : 0;
		full.va = full.swap_add = full.compare = full.atomic_orig = UINT64_MAX;
		full.rkey = full.dma_len = UINT32_MAX;
		CHECK(bytes == record_bytes(&full, false));
		CHECK(bytes == align_up(parts, 64));
		(void)record_pack(data, &full, false);
		CHECK(!record_unpack(data, bytes, NULL, &out));
		CHECK(out.pkt.va == (p->reth || p->atomic_eth ? UINT64_MAX : 0));
		CHECK(out.pkt.compare == (p->atomic_eth ? UINT64_MAX : 0));
		CHECK(out.pkt.atomic_orig == (p->atomic_ack ? UINT64_MAX : 0));
		/* But an atomic that its sender has executed says what the memory held. */
		full.executed = p->atomic_eth;
		(void)record_pack(data, &full, false);
		CHECK(!record_unpack(data, record_bytes(&full, false), NULL, &out));
		CHECK(out.pkt.executed == p->atomic_eth);
		CHECK(out.pkt.atomic_orig == (p->atomic_eth || p->atomic_ack ? UINT64_MAX : 0));
		CHECK(!out.path.sgid.half[0] && !out.path.hop_limit);
		/* The peer cuts it short. */
		if (bytes > 64)
			CHECK(record_unpack(data, 64, 0, &out) == -EPROTO);
	}
}

/* SENDs that share a record: each is unpacked by itself, and none beyond the record's end. */
static void shared_records(void)
{
	struct pkt p = {.opcode = BTH_RC | BTH_SEND_ONLY,
			.psn = IB_PSN_MASK,
			.path = &path,
			.payload_len = 9};
	struct record_base *base = (void *)data;
	static struct record_pkt out;
	uint8_t *payload = record_pack(data, &p, false);
	uint32_t bytes = 128;

	base->npkts = 1;
	base->parts = 5; /* 48 + 4 * 16 + 9 */
	for (uint32_t i = 0; i < 5; i++) {
		CHECK(!record_unpack_part(data, bytes, i, NULL, &out));
		CHECK(out.parts == 5 && out.pkt.nruns == 1 && out.runs[0].len == 9);
		CHECK(out.runs[0].addr == payload + 16 * (size_t)i);
		CHECK(out.pkt.psn == psn_add(IB_PSN_MASK, i));
	}
	CHECK(record_unpack_part(data, bytes, 5, NULL, &out) == -EPROTO);
	CHECK(record_unpack_part(data, 64, 1, NULL, &out) == -EPROTO);
	base->parts = 6;
	CHECK(record_unpack_part(data, bytes, 5, NULL, &out) == -EPROTO);
	base->parts = UINT8_MAX;
	base->payload_len = UINT32_MAX;
	for (uint32_t i = 0; i < UINT8_MAX; i++)
		CHECK(record_unpack_part(data, bytes, i, NULL, &out) == -EPROTO);
	/* Of other kinds there is one in a record. */
	p.opcode = BTH_RC | BTH_WRITE_ONLY;
	(void)record_pack(data, &p, false);
	base->npkts = 1;
	CHECK(record_unpack_part(data, bytes, 1, NULL, &out) == -EPROTO);
	base->parts = 2;
	CHECK(record_unpack(data, bytes, NULL, &out) == -EPROTO);
}

/* Only on a reliable connection there is an acknowledgement in front of a SEND. */
static void acknowledged_sends(void)
{
	static struct record_pkt out;
	struct short_send b;
	uint32_t port;

	for (unsigned reliable = 0; reliable < 2; reliable++) {
		struct pkt p = {.opcode = (uint8_t)((reliable ? BTH_RC : BTH_UC) | BTH_SEND_ONLY),
				.path = &path};
		struct record_base *base = (void *)data;

		(void)record_pack(data, &p, false);
		base->flags = RECORD_ACK;
		CHECK(short_send_read(data, 64, &b, &port) == reliable);
		CHECK(record_unpack(data, 64, NULL, &out) == (reliable ? 0 : -EPROTO));
	}
}

/* A word of data and what it takes to deliver it move from one processor to the other together. */
static void short_records(void)
{
	static const uint8_t opcodes[] = {BTH_RC | BTH_SEND_ONLY_IMM, BTH_UC | BTH_SEND_ONLY,
					  BTH_UD | BTH_SEND_ONLY, BTH_XRC | BTH_SEND_ONLY_IMM};

	for (unsigned i = 0; i < array_size(opcodes); i++) {
		struct pkt p = {.opcode = opcodes[i], .path = &path, .payload_len = 8};

		CHECK(record_bytes(&p, false) == RING_ALIGN);
	}
	/* So does the answer to an atomic. */
	CHECK(record_bytes(&(struct pkt){.opcode = BTH_RC | BTH_ATOMIC_ACK, .path = &path},
			   false) == RING_ALIGN);
}

/* Field by field through a record, with every combination of the optional parts. */
static void records_round_trip(void)
{
	static const uint8_t opcodes[] = {BTH_SEND_ONLY, BTH_WRITE_ONLY_IMM, BTH_ATOMIC_ACK,
					  BTH_COMPARE_SWAP};
	static const uint8_t transports[] = {BTH_RC, BTH_UD, BTH_XRC};
	static struct record_pkt out;
	unsigned char buf[4096];
	struct run runs[2] = {{buf, 1000}, {buf + 2000, 3000}};

	for (unsigned parts = 0; parts < 96; parts++) {
		uint8_t opcode = transports[parts / 32] | opcodes[parts >> 1 & 3];
		const struct bth_transport_props *t = bth_transport_props_of(opcode);
		bool answer = bth_props_of(opcode)->aeth;
		struct path way = path;
		bool has_address = parts & 2; /* WRITE and COMPARE_SWAP */
		struct pkt in = {
			.opcode = opcode,
			.solicited = parts & 1,
			.ack_req = true,
			.aeth = 6,
			.pkey = 7,
			.dqpn = 8,
			.sqpn = 9,
			.qkey = t->deth ? 10 : 0,
			.psn = 11,
			.npkts = 12,
			.msn = answer ? 13 : 0,
			.imm = answer ? 0 : 14,
			.srqn = t->xrceth && !answer ? 15 : 0,
			.va = has_address ? 16 : 0,
			.rkey = has_address ? 17 : 0,
			.dma_len = has_address ? 18 : 0,
			.swap_add = (parts & 6) == 6 ? 19 : 0,
			.compare = (parts & 6) == 6 ? 20 : 0,
			.migreq_clear = parts & 1,
			.executed = parts & 4,
			.atomic_orig = parts & 4 ? 21 : 0,
			.path = &way,
			.payload_len = 4000,
			.nruns = 2,
			.runs = runs,
		};
		bool by_reference = parts & 16;
		uint32_t bytes = record_bytes(&in, by_reference);

		if (parts & 8) {
			way.grh = way.roce_v1 = true;
			way.hop_limit = 22;
			way.traffic_class = 23;
			way.flow_label = 24;
			way.path_bits = 25;
			way.sgid.half[0] = 26;
			way.dgid.half[1] = 27;
			bytes = record_bytes(&in, by_reference);
		}
		CHECK(bytes % 64 == 0 && bytes <= SIZE);
		CHECK(record_pack(data, &in, by_reference) <= (void *)(data + bytes));
		CHECK(!record_unpack(data, bytes, &sender, &out));
		CHECK(out.pkt.foreign == (by_reference ? &sender : NULL));
		CHECK(out.pkt.nruns == (by_reference ? 2 : 1));
		if (by_reference)
			CHECK(!memcmp(out.runs, runs, sizeof(runs)));
		else
			CHECK(out.runs[0].len == 4000 &&
			      (unsigned char *)out.runs[0].addr + 4000 <= data + bytes);
		check_same(&in, &out.pkt);
		/* By reference, but reading was not agreed on. */
		CHECK(record_unpack(data, bytes, NULL, &out) == (by_reference ? -EPROTO : 0));
	}
}

static bool is_read(const struct pkt *p)
{
	return pkt_props(p)->read && pkt_props(p)->request;
}

/* A READ that offers the places of its answer, and an answer that is in them: neither has a payload
 * that goes along. */
static void records_of_places(void)
{
	static struct record_pkt out;
	const struct run runs[2] = {{(void *)0x1000, 4096}, {(void *)0x7000, 5000}};
	const uint32_t keys[2] = {0x100, 0x200};
	const struct path way = {.src_port = 1, .dst_port = 2};
	struct pkt read = {.opcode = BTH_RC | BTH_READ_REQUEST,
			   .ack_req = true,
			   .npkts = 9,
			   .va = 0x12345,
			   .rkey = 0x300,
			   .dma_len = 9096,
			   .path = &way,
			   .nruns = 2,
			   .runs = runs,
			   .run_keys = keys};
	struct pkt answer = {.opcode = BTH_RC | BTH_READ_RESP_ONLY,
			     .npkts = 9,
			     .path = &way,
			     .payload_len = 9096,
			     .placed = true};
	uint32_t bytes = record_bytes(&read, true);

	(void)record_pack(data, &read, true);
	CHECK(!record_unpack(data, bytes, &sender, &out));
	CHECK(out.pkt.foreign == &sender && out.pkt.nruns == 2 && out.pkt.dma_len == 9096);
	CHECK(out.pkt.withdrawn && !memcmp(out.runs, runs, sizeof(runs)));
	/* an offer that cannot be taken */
	CHECK(!record_unpack(data, bytes, NULL, &out));
	CHECK(!out.pkt.foreign && !out.pkt.nruns && out.pkt.dma_len == 9096);
	/* places of another size than the answer's */
	read.dma_len++;
	(void)record_pack(data, &read, true);
	CHECK(record_unpack(data, bytes, &sender, &out) == -EPROTO);
	read.dma_len -= 2;
	(void)record_pack(data, &read, true);
	CHECK(record_unpack(data, bytes, &sender, &out) == -EPROTO);

	bytes = record_bytes(&answer, false);
	CHECK(bytes <= 2 * RING_ALIGN);
	(void)record_pack(data, &answer, false);
	CHECK(!record_unpack(data, bytes, &sender, &out));
	CHECK(out.pkt.placed && !out.pkt.nruns && out.pkt.payload_len == 9096);
	answer.opcode = BTH_RC | BTH_SEND_ONLY;
	bytes = record_bytes(&answer, false);
	(void)record_pack(data, &answer, false);
	CHECK(record_unpack(data, bytes, &sender, &out) == -EPROTO);
}

/* Random bytes at the end of the memory: unpacked or refused, never a read beyond. */
static void records_of_noise(void)
{
	static struct record_pkt out;
	struct rng rng = {9};
	unsigned good = 0, bad = 0;

	for (int i = 0; i < 200000; i++) {
		uint32_t bytes = 64 * (uint32_t)(1 + rng_below(&rng, 24));
		unsigned char *p = data + SIZE - bytes;
		uint64_t sum = 0;

		for (uint32_t k = 0; k < bytes; k += 8) {
			uint64_t v = rng_below(&rng, 3) ? rng_below(&rng, 2048) : rng_next(&rng);

			memcpy(p + k, &v, 8);
		}
		if (record_unpack(p, bytes, rng_below(&rng, 2) ? &sender : NULL, &out)) {
			bad++;
			continue;
		}
		good++;
		CHECK(out.pkt.nruns <= RUNS_MAX);
		for (uint32_t k = 0; k < out.pkt.nruns; k++)
			sum += out.pkt.runs[k].len;
		if (out.pkt.placed || (is_read(&out.pkt) && out.pkt.withdrawn && !out.pkt.foreign))
			CHECK(!sum && !out.pkt.nruns);
		else
			CHECK(sum == (is_read(&out.pkt) && out.pkt.foreign ? out.pkt.dma_len
									   : out.pkt.payload_len));
		if (out.pkt.nruns && !out.pkt.foreign)
			CHECK((unsigned char *)out.runs[0].addr >= p &&
			      (unsigned char *)out.runs[0].addr + sum <= p + bytes);
	}
	CHECK(good > 1000 && bad > 1000);
}

int main(void)
{
	data = mmap(NULL, SIZE + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(data != MAP_FAILED && !munmap(data + SIZE, 4096));
	test_turns();
	test_visits();
	visits_of_noise();
	nothing_behind();
	bad_lengths();
	bad_cursors();
	records_by_operation();
	short_records();
	shared_records();
	acknowledged_sends();
	records_round_trip();
	records_of_places();
	records_of_noise();
	return 0;
}
