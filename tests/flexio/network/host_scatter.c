// SPDX-License-Identifier: BSD-2-Clause
/* Receives of several segments, over which the adapter scatters frames. */
#include <string.h>

#include "host.h"

#define PIECE_ONE 64u
#define PIECE_TWO 256u
#define LOG_FOUR  6u

/* Four segments to a receive; the last one ends the list. */
static void scattered_fill(struct bench *b)
{
	struct mlx5_wqe_data_seg wqes[DEPTH][4];
	uint32_t key = flexio_mkey_get_id(b->in.key), record[2] = {htobe32(DEPTH), 0};

	for (unsigned i = 0; i < DEPTH; i++) {
		uint64_t at = b->in.data + i * SLOT_BYTES;

		/* the second piece lies in front of the first */
		mlx5dv_set_data_seg(&wqes[i][0], PIECE_ONE, key, at + PIECE_TWO);
		mlx5dv_set_data_seg(&wqes[i][1], PIECE_TWO, key, at);
		mlx5dv_set_data_seg(&wqes[i][2], SLOT_BYTES - PIECE_ONE - PIECE_TWO, key,
				    at + PIECE_ONE + PIECE_TWO);
		mlx5dv_set_data_seg(&wqes[i][3], 0, 0x100, 0);
	}
	OK(flexio_host2dev_memcpy(b->p, wqes, sizeof(wqes), b->in.ring));
	OK(flexio_host2dev_memcpy(b->p, record, sizeof(record), b->in.record));
}

/* The bytes of the frame at that receive, put together. */
static void scattered_read(struct bench *b, unsigned slot, uint8_t *frame)
{
	uint64_t words[SLOT_BYTES / 8], at = b->in.data + slot * SLOT_BYTES;

	for (unsigned i = 0; i < SLOT_BYTES / 8; i++)
		words[i] = call1(b->p, &peek, at + 8 * i);
	memcpy(frame, (uint8_t *)words + PIECE_TWO, PIECE_ONE);
	memcpy(frame + PIECE_ONE, words, PIECE_TWO);
	memcpy(frame + PIECE_ONE + PIECE_TWO, (uint8_t *)words + PIECE_ONE + PIECE_TWO,
	       SLOT_BYTES - PIECE_ONE - PIECE_TWO);
}

/* Frames of all lengths that end in a segment, or with it. */
static void scattered(void)
{
	static const uint32_t lengths[] = {60, 64, 65, 319, 320, 321, 1500};
	uint8_t frame[SLOT_BYTES], found[SLOT_BYTES];
	struct raw_peer *peer = raw_peer_make();
	struct completion c;
	struct bench b;
	unsigned n = 0;

	bench_up(&b);
	ring_memory(&b, &b.in, false);
	b.rq_attr.log_wq_stride = LOG_FOUR;
	rq_up(&b, &b.in);
	scattered_fill(&b);
	rule_up(&b, &b.rule, flexio_rq_get_tir(b.in.rq));
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++, n++) {
			uint32_t record[2] = {htobe32(DEPTH + n + 1), 0};

			raw_frame(frame, DPA_MAC, PEER_MAC, lengths[i], (uint8_t)(n + 1));
			raw_peer_send(peer, lengths[i], (uint8_t)(n + 1));
			cq_next(&b, &b.in, &c);
			CHECK(c.opcode == 2 && c.bytes == lengths[i] && c.counter == n);
			scattered_read(&b, n % DEPTH, found);
			CHECK_SAY(!memcmp(found, frame, lengths[i]), "a frame of %u", lengths[i]);
			OK(flexio_host2dev_memcpy(b.p, record, sizeof(record), b.in.record));
		}
	raw_peer_free(peer);
	bench_down(&b);
}

const struct host_case scatter_cases[] = {
	{"scattered", scattered},
	{NULL, NULL},
};
