// SPDX-License-Identifier: BSD-2-Clause
/*
 * Seeds of the wqe target: each request on each kind of queue pair, and requests to the very last
 * byte of a region or window, and one byte too far.
 */
#include <string.h>

#include "fuzz_device.h"
#include "prm/bsf.h"
#include "prm/wqe.h"
#include "wqe_input.h"

struct place {
	uint8_t which;
	uint16_t off;
};

struct layout {
	struct place local, remote, bound, recv;
	uint16_t bound_len, recv_len;
};

struct request {
	uint8_t opcode, parts;
	uint16_t len;
};

/* The window that the requests bind. */
#define WINDOW (FUZZ_MRS + 1)

static const struct layout plain = {
	.local = {0, 0},
	.remote = {0, 4096},
	.bound = {PLACE_FROM_END, 4096},
	.recv = {0, 4096},
	.bound_len = 4096,
	.recv_len = 300,
};

static void put_op(struct seed *s, unsigned qp, enum op op)
{
	put_u8(s, qp * OP_COUNT + op);
}

static void put_place(struct seed *s, struct place p)
{
	put_u8(s, p.which);
	put_u16(s, p.off);
}

static void put_data(struct seed *s, struct place p, uint32_t len)
{
	put_place(s, p);
	put_u16(s, len);
}

static void put_begin_with(struct seed *s, uint32_t kinds, uint32_t third)
{
	put_u8(s, kinds);
	put_u8(s, third);
	for (unsigned i = 0; i < FUZZ_QPS; i++) {
		put_u8(s, 0x44); /* reads and atomics at a time */
		put_u8(s, 0x0f);
		put_u8(s, i);
		put_u8(s, 0);
	}
}

static void put_begin(struct seed *s, uint32_t kinds)
{
	put_begin_with(s, kinds, FUZZ_UD);
}

static void put_receives(struct seed *s, const struct layout *l)
{
	const struct place more = {0, 8192};

	put_op(s, 1, OP_RECV);
	put_u8(s, 2);
	put_data(s, l->recv, l->recv_len);
	put_data(s, more, 4096);
	put_op(s, 1, OP_SRQ_RECV);
	put_u16(s, 0);
	put_u8(s, 2);
	put_data(s, l->recv, l->recv_len);
	put_data(s, more, 4096);
}

static void put_request(struct seed *s, unsigned dev, unsigned kind, const struct request *r,
			const struct layout *l)
{
	/* A window of type 2 is for requests to the one that bound it. */
	unsigned from = r->opcode == WQE_OP_UMR;
	bool by_value = kind & FUZZ_BY_VALUE;
	unsigned base = kind % FUZZ_KINDS;
	bool ud = base == FUZZ_UD || base == FUZZ_UD_SRQ || (base == FUZZ_RAW && !dev);
	uint8_t parts = r->parts | (ud || base == FUZZ_DC ? PART_AV : 0);
	bool two = r->opcode == WQE_OP_MMO || r->opcode == WQE_OP_LOCAL_MMO ||
		   r->opcode == WQE_OP_ENHANCED_MPSW;

	put_receives(s, l);
	put_op(s, from, OP_SEND);
	put_u8(s, r->opcode);
	put_u8(s, WQE_CTRL_CE_ALWAYS);
	put_u8(s, parts | (two ? 2 : 1) << 5);
	put_u8(s, WINDOW);
	if (base == FUZZ_XRC)
		put_u8(s, 0);
	if (base == FUZZ_RAW && dev) {
		put_u8(s, r->opcode == WQE_OP_ENHANCED_MPSW ? 0 : 54);
		put_u8(s, WQE_ETH_L3_CSUM | WQE_ETH_L4_CSUM);
		put_u16(s, 536);
		put_u8(s, 0);
	}
	if (r->opcode == WQE_OP_UMR) {
		put_u8(s, UMR_INLINE);
		put_u8(s, 1); /* type 2 */
		put_place(s, l->bound);
		put_u16(s, l->bound_len);
		put_u8(s, MKEY_CTX_ACCESS_LOCAL_WRITE | MKEY_CTX_ACCESS_REMOTE_READ |
				  MKEY_CTX_ACCESS_REMOTE_WRITE);
	}
	if (r->opcode == WQE_OP_MMO)
		put_u8(s, 0);
	if (r->opcode == WQE_OP_WAIT || r->opcode == WQE_OP_SEND_EN) {
		put_u8(s, r->opcode == WQE_OP_WAIT ? r->len : 0x10);
		put_u8(s, WQE_WAIT_EQUAL);
		if (r->opcode == WQE_OP_WAIT && r->len) {
			put_place(s, l->remote);
			put_u16(s, 0);
		} else {
			put_u8(s, 1);
			if (r->opcode == WQE_OP_WAIT)
				put_u8(s, 0);
		}
	}
	if (r->opcode == WQE_OP_LOCAL_MMO) {
		put_u8(s, 1);
		put_u8(s, 0);
	}
	if (parts & PART_AV)
		put_u8(s, ud ? 0x41 : 0x01); /* the second one, or a group */
	if (parts & PART_RADDR)
		put_place(s, l->remote);
	if (parts & PART_ATOMIC) {
		put_u16(s, 1);
		put_u16(s, 2);
	}
	put_data(s, l->local, r->len);
	if (two)
		put_data(s, l->remote, r->len);
	put_op(s, from, OP_BELL);
	if (by_value)
		put_u8(s, 0);
	put_op(s, 0, OP_PROGRESS);
}

/* The first that fails ends all. */
static void put_requests(struct seed *s, unsigned dev, unsigned kind, const struct request *list,
			 unsigned n, const struct layout *l, const char *name)
{
	char file[64];

	put_begin(s, dev << 7 | kind);
	/* all frames and all of the first group to the second */
	put_op(s, 1, OP_FLOW);
	put_u32(s, FLOW_ALL_DEFAULT << 2);
	put_op(s, 1, OP_GROUP);
	put_u8(s, 8);
	for (unsigned i = 0; i < n; i++)
		put_request(s, dev, kind, &list[i], l);
	snprintf(file, sizeof(file), "%s-%u-%u-%x", name, dev, kind, list->opcode);
	put_end(s, file);
}

static void each_request(struct seed *s, unsigned dev, unsigned kind)
{
	static const struct request good[] = {
		{WQE_OP_SEND, 0, 100},
		{WQE_OP_SEND_IMM, 0, 4000},
		{WQE_OP_RDMA_WRITE, PART_RADDR, 5000},
	};
	static const struct request of_window[] = {
		{WQE_OP_UMR, 0, 64},
		{WQE_OP_RDMA_WRITE_IMM, PART_RADDR, 8},
		{WQE_OP_SEND_INVAL, 0, 10},
	};
	static const struct request alone[] = {
		{WQE_OP_RDMA_READ, PART_RADDR, 5000},
		{WQE_OP_ATOMIC_FA, PART_RADDR | PART_ATOMIC, 8},
		{WQE_OP_ATOMIC_CS, PART_RADDR | PART_ATOMIC, 8},
		{WQE_OP_ATOMIC_MASKED_FA, PART_RADDR | PART_ATOMIC, 8},
		{WQE_OP_TSO, 0, 2000},
		{WQE_OP_MMO, 0, 3000},
		{WQE_OP_LOCAL_MMO, 0, 64},
		{WQE_OP_NOP, 0, 0},
	};
	struct layout windowed = plain;

	windowed.remote = (struct place){PLACE_FROM_END | WINDOW << 3, 64};
	put_requests(s, dev, kind, good, array_size(good), &plain, "good");
	put_requests(s, dev, kind, of_window, array_size(of_window), &windowed, "window");
	for (unsigned i = 0; i < array_size(alone); i++)
		put_requests(s, dev, kind, &alone[i], 1, &plain, "alone");
}

/* As device code rings. */
static void seed_by_value(struct seed *s)
{
	static const struct request writes[] = {
		{WQE_OP_RDMA_WRITE, PART_RADDR, 5000},
		{WQE_OP_LOCAL_MMO, 0, 64},
	};
	static const struct request waits[] = {
		{WQE_OP_WAIT, 0, WQE_OPMOD_WAIT_DATA},
		{WQE_OP_SEND_EN, 0, 0},
		{WQE_OP_WAIT, 0, WQE_OPMOD_WAIT_INDEX},
	};
	static const struct request frames[] = {
		{WQE_OP_SEND, 0, 100},
		{WQE_OP_ENHANCED_MPSW, 0, 100},
	};

	put_requests(s, 0, FUZZ_RC | FUZZ_BY_VALUE, writes, array_size(writes), &plain, "value");
	put_requests(s, 0, FUZZ_RC | FUZZ_BY_VALUE | FUZZ_SLAVE, waits, array_size(waits), &plain,
		     "waits");
	put_requests(s, 1, FUZZ_RAW | FUZZ_BY_VALUE, frames, array_size(frames), &plain, "value");
}

/* Messages of the third one to itself, whose completions stand together, over more than one round of the ring. */
static void seed_compressed(struct seed *s, unsigned layout)
{
	char name[32];

	put_begin_with(s, FUZZ_RC, FUZZ_RC | FUZZ_COMPRESSED | layout);
	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i < 3; i++) {
			put_op(s, 2, OP_RECV);
			put_u8(s, 1);
			put_data(s, plain.recv, plain.recv_len);
			put_op(s, 2, OP_SEND);
			put_u8(s, WQE_OP_SEND);
			put_u8(s, WQE_CTRL_CE_ALWAYS);
			put_u8(s, 1 << 5);
			put_u8(s, 0);
			put_data(s, plain.local, i < 2 ? 8 : round);
		}
		put_op(s, 2, OP_BELL);
		put_op(s, 2, OP_PROGRESS);
		put_op(s, 2, OP_CONSUME);
		put_u32(s, 6 * round);
		put_u32(s, 0);
	}
	snprintf(name, sizeof(name), "compressed-%u", layout);
	put_end(s, name);
}

/* 64 bytes: the last ones of region 0, or one byte further; the first ones, or one byte before. */
static void seed_edges(struct seed *s, unsigned kind)
{
	static const struct request write = {WQE_OP_RDMA_WRITE, PART_RADDR, 64};
	static const struct request read = {WQE_OP_RDMA_READ, PART_RADDR, 64};
	static const struct request send = {WQE_OP_SEND, 0, 64};
	static const struct request copy = {WQE_OP_MMO, 0, 64};
	static const struct request through_window[] = {
		{WQE_OP_UMR, 0, 64},
		{WQE_OP_RDMA_WRITE_IMM, PART_RADDR, 64},
	};

	for (unsigned i = 0; i < 4; i++) {
		const struct place edge = {PLACE_FROM_END, (uint16_t)(i < 2 ? 64 - i : 16382 + i)};
		const struct place by_window = {PLACE_FROM_END | WINDOW << 3, edge.off};
		struct layout l = plain;
		char name[32];

		l.remote = edge;
		snprintf(name, sizeof(name), "remote%u", i);
		put_requests(s, 0, kind, &write, 1, &l, name);
		put_requests(s, 0, kind, &read, 1, &l, name);
		put_requests(s, 0, kind, &copy, 1, &l, name);
		l = plain;
		l.local = edge;
		snprintf(name, sizeof(name), "local%u", i);
		put_requests(s, 0, kind, &write, 1, &l, name);
		put_requests(s, 0, kind, &read, 1, &l, name);
		l = plain;
		l.recv = edge;
		l.recv_len = 64;
		snprintf(name, sizeof(name), "recv%u", i);
		put_requests(s, 0, kind, &send, 1, &l, name);
		l = plain;
		l.remote = by_window;
		snprintf(name, sizeof(name), "through%u", i);
		put_requests(s, 0, kind, through_window, 2, &l, name);
		l.bound = edge;
		l.bound_len = 64;
		snprintf(name, sizeof(name), "bind%u", i);
		put_requests(s, 0, kind, through_window, 2, &l, name);
	}
}

/* ---- lists ---- */

#define LIST(n) (FUZZ_MRS + FUZZ_WINDOWS + (n))

struct list_entry {
	struct place place;
	uint16_t len; /* of a strided list: the stride */
	uint8_t more; /* bytes 23:16 of its count: the high byte of the stride */
};

struct list_change {
	unsigned list;
	uint8_t shape, flags;
	uint16_t field; /* BSF's length or offset */
	uint64_t mask;
	uint32_t flags_pd;
	uint32_t len;
	uint16_t cycle;
	uint32_t repeat;
	uint8_t entries; /* header not counted */
	struct list_entry entry[4];
};

#define LIST_MASK                                                                      \
	(UMR_MASK_FREE | UMR_MASK_MKEY | UMR_MASK_LEN | UMR_MASK_ACCESS_REMOTE_WRITE | \
	 UMR_MASK_ACCESS_REMOTE_READ | UMR_MASK_ACCESS_LOCAL_WRITE)

static void put_list_change(struct seed *s, const struct list_change *c)
{
	bool strided = c->shape & LIST_STRIDED;

	put_op(s, 0, OP_SEND);
	put_u8(s, WQE_OP_UMR);
	put_u8(s, WQE_CTRL_CE_ALWAYS);
	put_u8(s, 0);
	put_u8(s, LIST(c->list));
	put_u8(s, c->shape);
	put_u8(s, (uint32_t)(c->entries + strided));
	put_u8(s, c->flags);
	put_u16(s, c->field);
	put_u64(s, c->mask);
	put_u8(s, 0);
	put_u8(s, 0x3f);
	put_u8(s, 0);
	put_u32(s, c->flags_pd);
	put_u32(s, 0);
	put_u32(s, c->len);
	if (strided) {
		put_u16(s, c->cycle);
		put_u32(s, c->repeat);
	}
	for (unsigned i = 0; i < c->entries; i++) {
		put_data(s, c->entry[i].place, c->entry[i].len);
		if (strided)
			put_u8(s, c->entry[i].more);
	}
	if (c->shape & LIST_BSF)
		put_u8(s, 0);
	put_op(s, 0, OP_BELL);
}

/* A list is the source or the destination. */
static void through_list(struct seed *s, unsigned kind, unsigned list, const char *name)
{
	static const struct request requests[] = {
		{WQE_OP_RDMA_WRITE, PART_RADDR, 1040},
		{WQE_OP_RDMA_READ, PART_RADDR, 1040},
		{WQE_OP_SEND, 0, 1040},
		{WQE_OP_SEND_INVAL, 0, 8},
	};
	/* the key that many further on than what the address is of */
	const struct place there = {(uint8_t)(LIST(0) | list << 3), 0};
	const struct seed begun = *s;

	for (unsigned side = 0; side < 2; side++) {
		struct layout l = plain;
		char file[64];

		if (side) {
			l.local = there;
		} else {
			l.remote = there;
			l.recv = there;
			l.recv_len = 1040;
		}
		*s = begun;
		for (unsigned i = 0; i < array_size(requests); i++)
			put_request(s, 0, kind, &requests[i], &l);
		snprintf(file, sizeof(file), "list-%s-%u-%u", name, kind, side);
		put_end(s, file);
	}
}

static void seed_lists(struct seed *s, unsigned kind)
{
	static const struct {
		const char *name;
		struct list_change change;
	} all[] = {
		{"klm",
		 {.flags = UMR_INLINE,
		  .mask = LIST_MASK,
		  .len = 2000,
		  .entries = 3,
		  .entry = {{{0, 100}, 500, 0}, {{2, 0}, 1000, 0}, {{0, 4096}, 500, 0}}}},
		{"strided",
		 {.shape = LIST_STRIDED,
		  .flags = UMR_INLINE,
		  .mask = LIST_MASK,
		  .len = 1040,
		  .cycle = 8,
		  .repeat = 130,
		  .entries = 1,
		  .entry = {{{0, 0}, 8, 10}}}},
		{"huge",
		 {.shape = LIST_STRIDED,
		  .flags = UMR_INLINE,
		  .mask = LIST_MASK,
		  .len = UINT32_MAX,
		  .cycle = 1,
		  .repeat = UINT32_MAX,
		  .entries = 1,
		  .entry = {{{0, 0}, 1, 0}}}},
		/* pieces of the other list; of itself */
		{"nested",
		 {.flags = UMR_INLINE,
		  .mask = LIST_MASK,
		  .len = 2000,
		  .entries = 2,
		  .entry = {{{LIST(0) | 2 << 3, 0}, 1000, 0}, {{0, 0}, 1000, 0}}}},
		{"loop",
		 {.flags = UMR_INLINE,
		  .mask = LIST_MASK,
		  .len = 2000,
		  .entries = 1,
		  .entry = {{{LIST(0), 0}, 2000, 0}}}},
		{"part",
		 {.flags = UMR_INLINE | UMR_TRANSLATION_OFFSET,
		  .field = 1,
		  .mask = UMR_MASK_LEN,
		  .len = 5000,
		  .entries = 4,
		  .entry = {{{2, 0}, 1000, 0}}}},
		{"pointer",
		 {.shape = LIST_POINTER,
		  .mask = LIST_MASK,
		  .len = 2000,
		  .entries = 1,
		  .entry = {{{0, 0}, 64, 0}}}},
		{"signed",
		 {.list = 1,
		  .shape = LIST_BSF,
		  .flags = UMR_INLINE,
		  .field = BSF_BYTES / 16,
		  .mask = LIST_MASK | UMR_MASK_BSF_ENABLE | UMR_MASK_SIG_ERR,
		  .flags_pd = MKEY_CTX_BSF_ENABLE,
		  .len = 1032,
		  .entries = 1,
		  .entry = {{{0, 0}, 1032, 0}}}},
		{"signed-strided",
		 {.list = 1,
		  .shape = LIST_BSF | LIST_STRIDED,
		  .flags = UMR_INLINE,
		  .field = BSF_BYTES / 16,
		  .mask = LIST_MASK | UMR_MASK_BSF_ENABLE,
		  .flags_pd = MKEY_CTX_BSF_ENABLE,
		  .len = 1032,
		  .cycle = 4,
		  .repeat = 258,
		  .entries = 1,
		  .entry = {{{0, 0}, 4, 7}}}},
		{"ksm",
		 {.list = 2,
		  .flags = UMR_INLINE,
		  .mask = LIST_MASK,
		  .len = 8192,
		  .entries = 2,
		  .entry = {{{0, 4096}, 0, 0}, {{0, 0}, 0, 0}}}},
	};

	for (unsigned i = 0; i < array_size(all); i++) {
		put_begin(s, kind);
		put_list_change(s, &all[i].change);
		if (all[i].change.shape & LIST_BSF) {
			put_op(s, 0, OP_SEND);
			put_u8(s, WQE_OP_SET_PSV);
			put_u8(s, WQE_CTRL_CE_ALWAYS);
			put_u8(s, 0);
			put_u8(s, 0);
			put_u8(s, 0);
			put_u16(s, 0xffff);
			put_op(s, 0, OP_BELL);
		}
		through_list(s, kind, all[i].change.list, all[i].name);
	}
}

void target_seeds(struct seed *s)
{
	const struct request write = {WQE_OP_RDMA_WRITE, PART_RADDR, 64};

	for (unsigned dev = 0; dev < 2; dev++)
		for (unsigned kind = 0; kind < FUZZ_KINDS; kind++)
			each_request(s, dev, kind);
	seed_edges(s, FUZZ_RC);
	seed_edges(s, FUZZ_UC);
	seed_edges(s, FUZZ_RC_SRQ);
	seed_lists(s, FUZZ_RC);
	seed_lists(s, FUZZ_UC);

	seed_by_value(s);
	seed_compressed(s, 0);
	seed_compressed(s, FUZZ_LARGE_CQES);

	/* Memory that goes away under a write, an error, and the flush of what stood behind. */
	put_begin(s, FUZZ_RC);
	put_op(s, 0, OP_CLOSE_MEMORY);
	put_u8(s, 0x80);
	put_request(s, 0, FUZZ_RC, &write, &plain);
	put_op(s, 0, OP_RAW);
	put_u8(s, 3); /* the doorbell record */
	put_u16(s, 0);
	put_u8(s, 8);
	put_u64(s, 0x0400000004000000ull);
	put_op(s, 0, OP_BELL);
	put_end(s, "gone");
}
