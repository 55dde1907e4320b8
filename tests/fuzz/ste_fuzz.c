// SPDX-License-Identifier: BSD-2-Clause
/*
 * Steering entries with any bytes, and a frame with any: the walk ends, touches no byte outside of its
 * memory and its frame, and leaves what is a frame.
 */
#include <string.h>

#include "adapter/ste/walk.h"
#include "fuzz.h"

#define ENTRIES	   16u
#define LIST	   64u /* bytes */
#define FRAME_MOST 256u

static struct icm icm;
static struct icm_part *entries, *lists;

void target_init(void)
{
	icm_init(&icm);
	MUST(!icm_alloc(&icm, ICM_STEERING, ENTRIES * STE_BYTES, &entries));
	MUST(!icm_alloc(&icm, ICM_MODIFY, LIST, &lists));
}

/* Addresses that lead somewhere are rare among random ones: an operation makes them. */
static void entry_lead(struct input *in, uint8_t *e)
{
	uint64_t hit = icm_part_address(entries) + (uint64_t)(in_u8(in) % ENTRIES) * STE_BYTES;
	uint64_t miss = icm_part_address(entries) + (uint64_t)(in_u8(in) % ENTRIES) * STE_BYTES;
	uint32_t n = 1u << in_u8(in) % 4;

	if (in_u8(in) & 1)
		hit = steer_address(STEER_TIR, in_u8(in));
	prm_set(e, STE_NEXT_39_32, (hit >> 5 | n) >> 27);
	prm_set(e, STE_NEXT_31_5, hit >> 5 | n);
	prm_set(e, STE_MISS_39_32, miss >> 32);
	prm_set(e, STE_MISS_31_6, miss >> 6);
}

static void entries_fill(struct input *in)
{
	uint8_t *memory = icm_part_memory(&icm, entries);

	memset(memory, 0, (size_t)ENTRIES * STE_BYTES);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		uint8_t *e = memory + (size_t)i * STE_BYTES, how = in_u8(in);

		if (!how)
			continue;
		in_bytes(in, e, STE_BYTES);
		if (how & 1)
			e[0] = e[0] & 2 ? STE_MATCH : e[0] & 1; /* a format that is known */
		if (how & 2)
			entry_lead(in, e);
	}
	in_bytes(in, icm_part_memory(&icm, lists), LIST);
}

static const uint8_t *tunnel_headers(void *user, uint32_t number, uint32_t *bytes)
{
	static const uint8_t vxlan[50] = {0, 0, 0, 0, 0,  0,	0,	     0,	   0,
					  0, 0, 0, 8, 0,  0x45, 0,	     0,	   0,
					  0, 0, 0, 0, 64, 17,	[36] = 0x12, 0xb5, [42] = 8};
	static const uint8_t plain[14] = {0};

	(void)user;
	*bytes = number & 1 ? sizeof(vxlan) : sizeof(plain);
	return number & 2 ? NULL : number & 1 ? vxlan : plain;
}

static const struct ste_definer *definer(void *user, uint32_t number)
{
	static const struct ste_definer some = {
		.mask = {[10] = 0xff, [16] = 0xff, 0xff, [31] = 0xff}};

	(void)user;
	return number & 1 ? &some : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint32_t n = FRAME_MIN + in_u8(&in) % (FRAME_MOST - FRAME_MIN);
	uint32_t room_bytes = n + in_u8(&in);
	uint8_t *bytes = malloc(n), *room = malloc(room_bytes);
	struct ste_frame f = {.bytes = bytes, .len = n, .room = room, .room_bytes = room_bytes};
	struct ste_walk w = {
		.icm = &icm, .frame = &f, .headers = tunnel_headers, .definer = definer};
	struct steer_target end = {.kind = STEER_NOWHERE};
	enum ste_verdict v;

	MUST(bytes && room);
	f.format = 1 + in_u8(&in) % 2;
	in_bytes(&in, bytes, n);
	entries_fill(&in);
	ste_frame_parse(&f);
	v = ste_walk(&w, icm_part_address(entries), &end);
	MUST(v < STE_VERDICTS && ste_verdict_words(v));
	if (v == STE_ARRIVED) {
		MUST(end.kind > STEER_ENTRY && end.kind < STEER_KINDS);
		MUST(f.len >= FRAME_MIN && f.len <= FRAME_MAX);
		MUST(f.bytes == bytes ? f.len == n : f.bytes == room && f.len <= room_bytes);
	}
	free(bytes);
	free(room);
	return 0;
}

/* A frame, and entries that change it and lead on. */
void target_seeds(struct seed *s)
{
	static const uint8_t frame[] = {2,    0, 0,  0,	 0, 1, 2, 0, 0,	 0,  0, 2, 8,  0,
					0x45, 0, 0,  28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0,
					0,    1, 10, 0,	 0, 2, 0, 1, 0,	 2,  0, 8, 0,  0};
	uint8_t e[STE_BYTES];

	for (uint32_t id = 0; id <= STE_ACT_MODIFY_LIST; id++) {
		char name[16];

		put_u8(s, sizeof(frame) - FRAME_MIN);
		put_u8(s, 64);
		put_u8(s, 1);
		put_bytes(s, frame, sizeof(frame));
		for (uint32_t i = 0; i < 2; i++) {
			memset(e, 0, sizeof(e));
			e[7] = i ? STE_L2_SRC & 0xff : STE_NO_MATTER;
			prm_set(e, STE_BYTE_MASK, 0x0fc0);
			prm_set(e, STE_NEXT_LOOKUP, STE_L2_SRC & 0xff);
			e[STE_ACTIONS_AT] = (uint8_t)id;
			e[STE_ACTIONS_AT + 1] = 1;
			put_u8(s, 2);
			put_bytes(s, e, sizeof(e));
			put_u8(s, 1);
			put_u8(s, 2);
			put_u8(s, i);
			put_u8(s, i);
			put_u8(s, 7);
		}
		snprintf(name, sizeof(name), "action%02x", id);
		put_end(s, name);
	}
}
