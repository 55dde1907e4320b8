/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SENDs to another process, in the shapes that programs have (lanes.h): either side polls its completion queue
 * and posts each receive again as soon as it has completed.
 *
 * sends DEVICE SHAPE MEMORY
 *
 * Prints "name value unit" lines.  A latency is half of a ping-pong whose words both sides check; a rate is that of
 * messages of which so many as a window has are under way.
 */
#include <sched.h>
#include <string.h>

#include "lanes.h"

#define TRIPS	     20000u
#define BURSTS	     40000u
#define SINGLES	     200000u
#define BLOCKS	     8000u
#define LARGES	     1000u
#define SMALL	     8u
#define WINDOW	     128u
#define RECEIVES     512u
#define BLOCK_WINDOW 16u

static uint64_t *word_out(const struct lane *l)
{
	return (uint64_t *)(void *)(l->local + LANES_WORD_AT);
}

static uint64_t word_in(const struct lane *l)
{
	return *(volatile uint64_t *)(void *)(l->local + LANES_BLOCK_AT);
}

static void receives_post(const struct lane *l, unsigned count)
{
	struct ibv_sge sge = {(uintptr_t)(l->local + LANES_BLOCK_AT), LANES_LARGE,
			      l->side->mr->lkey};
	struct ibv_recv_wr wr[LANES_LIST], *bad;

	for (unsigned i = 0; i < count; i++)
		wr[i] = (struct ibv_recv_wr){
			.next = i + 1 < count ? &wr[i + 1] : NULL, .sg_list = &sge, .num_sge = 1};
	if (ibv_post_recv(l->qp, wr, &bad))
		device_die("ibv_post_recv: %m");
}

static void receives_fill(struct lane *l)
{
	for (unsigned i = 0; i < RECEIVES; i += LANES_LIST)
		receives_post(l, LANES_LIST);
}

/* asks: for a completion of the last one. */
static void post(struct lane *l, void *from, uint32_t bytes, unsigned count, bool asks)
{
	struct ibv_sge sge = {(uintptr_t)from, bytes, l->side->mr->lkey};
	struct ibv_send_wr wr[LANES_LIST], *bad;

	for (unsigned i = 0; i < count; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = l->sent + count,
			.next = i + 1 < count ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = asks && i + 1 == count ? IBV_SEND_SIGNALED : 0,
		};
	if (ibv_post_send(l->qp, wr, &bad))
		device_die("ibv_post_send: %m");
	l->sent += count;
}

/* Whether there was anything. */
static bool reap(struct lane *l)
{
	struct ibv_wc wc[LANES_LIST];
	int n = ibv_poll_cq(l->cq, LANES_LIST, wc);
	unsigned received = 0;

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			device_die("completion: %s", ibv_wc_status_str(wc[i].status));
		if (wc[i].opcode & IBV_WC_RECV)
			received++;
		else
			l->answered = wc[i].wr_id;
	}
	if (n < 0)
		device_die("ibv_poll_cq: %d", n);
	if (received)
		receives_post(l, received);
	l->received += received;
	return n;
}

/* Until no more than so many messages are under way, and so many have come. */
static void await(struct lane *l, uint64_t under_way, uint64_t received)
{
	unsigned in_vain = 0;

	while (l->sent - l->answered > under_way || l->received < received)
		if (reap(l))
			in_vain = 0;
		else if (l->side->crowded && ++in_vain % LANES_POLLS == 0)
			sched_yield();
}

static void ping(struct lane *l)
{
	*word_out(l) = l->token;
	post(l, word_out(l), SMALL, 1, true);
}

static double send_latency(struct lane *l, const struct mover *m)
{
	uint64_t start = device_now_ns();

	(void)m;
	for (unsigned i = 0; i < TRIPS; i++) {
		uint64_t received = l->received + 1;

		l->token++;
		if (l->side->first)
			ping(l);
		await(l, 1, received);
		if (word_in(l) != l->token)
			device_die("message %u has other bytes", i);
		if (!l->side->first)
			ping(l);
	}
	await(l, 0, 0);
	return lanes_us_each(start, 2 * TRIPS);
}

/* The first sends so many lists, the other receives them.  Of messages that are posted one by one every
 * asks-th asks for a completion. */
static double stream(struct lane *l, void *from, uint32_t bytes, unsigned lists, unsigned each,
		     unsigned asks, uint64_t window)
{
	uint64_t received = l->received + (uint64_t)lists * each;
	uint64_t start = device_now_ns();

	for (unsigned i = 0; l->side->first && i < lists; i++) {
		await(l, window - each, 0);
		post(l, from, bytes, each, i % asks == asks - 1);
	}
	await(l, 0, l->side->first ? 0 : received);
	return lanes_us_each(start, lists * each);
}

static double list_rate(struct lane *l, const struct mover *m)
{
	(void)m;
	return 1 / stream(l, word_out(l), SMALL, BURSTS, LANES_LIST, 1, WINDOW);
}

static double single_rate(struct lane *l, const struct mover *m)
{
	(void)m;
	return 1 / stream(l, word_out(l), SMALL, SINGLES, 1, LANES_LIST, WINDOW);
}

static double bytes_rate(struct lane *l, uint32_t bytes, unsigned times)
{
	return bytes * 1e6 / (1 << 20) / stream(l, l->local, bytes, times, 1, 1, BLOCK_WINDOW);
}

static double block_rate(struct lane *l, const struct mover *m)
{
	(void)m;
	return bytes_rate(l, LANES_BLOCK, BLOCKS);
}

static double large_rate(struct lane *l, const struct mover *m)
{
	(void)m;
	return bytes_rate(l, LANES_LARGE, LARGES);
}

static const struct lanes_measure measures[] = {
	{"send_lat", "us", send_latency, false, NULL},
	{"send_list", "Mmsg/s", list_rate, true, NULL},
	{"send_single", "Mmsg/s", single_rate, true, NULL},
	{"send_block", "MiB/s", block_rate, true, NULL},
	{"send_large", "MiB/s", large_rate, true, NULL},
};

int main(int argc, char **argv)
{
	static const struct lanes_program program = {
		.name = "sends",
		.cap = {.max_send_wr = WINDOW,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.begin = receives_fill,
		.measures = measures,
		.count = sizeof(measures) / sizeof(*measures),
	};

	return lanes_main(argc, argv, &program);
}
