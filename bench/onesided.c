/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA WRITE, READ and FETCH_ADD to another process, in the shapes that programs have (lanes.h), and beside each
 * figure what the kernel's own copy between processes (process_vm_writev, process_vm_readv) costs in the
 * same exchange.
 *
 * onesided DEVICE SHAPE MEMORY
 *
 * Prints "name value unit" lines.  A latency is half of a ping-pong for WRITE (either side polls
 * its memory) and from post to completion for READ.  Of READs and atomics that are posted one by one the last of
 * a list's number asks for a completion.  Floors begin with "floor_": a system call and
 * the other side's poll of its memory, nothing else; for an atomic while the target polls its memory, for which
 * there is no call, a thread of the target's that is woken and adds.  Whatever a side does while it waits is
 * the same for both.
 */
#include <sched.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "lanes.h"
#include "woken.h"

#define TRIPS  20000u
#define ADDS   10000u
#define BURSTS 4000u
#define BLOCKS 8000u
#define LARGES 500u
#define SMALL  8u

static struct woken_words *words_of_lanes;

/* ---- waiting ---- */

static _Atomic(uint64_t) *word(const struct lane *l)
{
	return (_Atomic(uint64_t) *)(void *)(l->local + LANES_WORD_AT);
}

/* On a crowded machine, a thread that only polls takes the processor from the one that would send:
 * the figures would say how the scheduler's slices happened to lie. */
static void await_word(const struct lane *l, uint64_t value)
{
	for (unsigned i = 1; atomic_load_explicit(word(l), memory_order_acquire) != value; i++)
		if (l->side->crowded && i % LANES_POLLS == 0)
			sched_yield();
}

/* ---- through the device ---- */

static void reap(const struct lane *l)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(l->cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		device_die("completion: %s", n < 0 ? "none" : ibv_wc_status_str(wc.status));
}

/* Requests of which the last asks for a completion, if asks says so.  The remote places follow each other. */
static void post(const struct lane *l, enum ibv_wr_opcode opcode, const void *local,
		 uint64_t remote, uint32_t bytes, unsigned count, bool asks)
{
	struct ibv_sge sge = {(uintptr_t)local, bytes, l->side->mr->lkey};
	struct ibv_send_wr wr[LANES_LIST], *bad;

	for (unsigned i = 0; i < count; i++) {
		uint64_t at = remote + (uint64_t)i * bytes;

		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < count ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = asks && i + 1 == count ? IBV_SEND_SIGNALED : 0,
		};
		if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr[i].wr.atomic.remote_addr = at;
			wr[i].wr.atomic.rkey = l->side->peer.rkey;
			wr[i].wr.atomic.compare_add = 1;
		} else {
			wr[i].wr.rdma.remote_addr = at;
			wr[i].wr.rdma.rkey = l->side->peer.rkey;
		}
	}
	if (ibv_post_send(l->qp, wr, &bad))
		device_die("ibv_post_send: %m");
}

static void device_write(const struct lane *l, void *from, uint64_t to, uint32_t bytes,
			 unsigned count)
{
	post(l, IBV_WR_RDMA_WRITE, from, to, bytes, count, true);
	reap(l);
}

static void device_read(const struct lane *l, void *to, uint64_t from, uint32_t bytes,
			unsigned count)
{
	post(l, IBV_WR_RDMA_READ, to, from, bytes, count, true);
	reap(l);
}

static void device_add(const struct lane *l, void *to, uint64_t at, unsigned count)
{
	post(l, IBV_WR_ATOMIC_FETCH_AND_ADD, to, at, SMALL, count, true);
	reap(l);
}

static void device_singly(const struct lane *l, enum ibv_wr_opcode opcode, void *local,
			  uint64_t remote, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		post(l, opcode, local, remote + i * SMALL, SMALL, 1, i + 1 == count);
	reap(l);
}

static void device_read_singly(const struct lane *l, void *to, uint64_t from, unsigned count)
{
	device_singly(l, IBV_WR_RDMA_READ, to, from, count);
}

static void device_add_singly(const struct lane *l, void *to, uint64_t at, unsigned count)
{
	device_singly(l, IBV_WR_ATOMIC_FETCH_AND_ADD, to, at, count);
}

/* ---- through the kernel alone ---- */

static void kernel_write(const struct lane *l, void *from, uint64_t to, uint32_t bytes,
			 unsigned count)
{
	struct iovec local[LANES_LIST], remote[LANES_LIST];

	for (unsigned i = 0; i < count; i++) {
		local[i] = (struct iovec){from, bytes};
		remote[i] = (struct iovec){(void *)(uintptr_t)(to + (uint64_t)i * bytes), bytes};
	}
	if (process_vm_writev(l->side->peer.pid, local, count, remote, count, 0) !=
	    (ssize_t)bytes * count)
		device_die("process_vm_writev: %m");
}

static void kernel_read(const struct lane *l, void *to, uint64_t from, uint32_t bytes,
			unsigned count)
{
	struct iovec local[LANES_LIST], remote[LANES_LIST];

	for (unsigned i = 0; i < count; i++) {
		local[i] = (struct iovec){to, bytes};
		remote[i] = (struct iovec){(void *)(uintptr_t)(from + (uint64_t)i * bytes), bytes};
	}
	if (process_vm_readv(l->side->peer.pid, local, count, remote, count, 0) !=
	    (ssize_t)bytes * count)
		device_die("process_vm_readv: %m");
}

static void kernel_read_words(const struct lane *l, void *to, uint64_t at, unsigned count)
{
	kernel_read(l, to, at, SMALL, count);
}

static void kernel_read_singly(const struct lane *l, void *to, uint64_t at, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		kernel_read(l, to, at + i * SMALL, SMALL, 1);
}

/* A thread of the target's is woken, and adds. */
static void thread_add(const struct lane *l, void *to, uint64_t at, unsigned count)
{
	(void)to, (void)at;
	for (unsigned i = 0; i < count; i++)
		woken_ask(&words_of_lanes[l->number]);
}

/* Each returns when all is done. */
typedef void bytes_fn(const struct lane *l, void *local, uint64_t remote, uint32_t bytes,
		      unsigned count);
typedef void words_fn(const struct lane *l, void *local, uint64_t remote, unsigned count);

struct mover {
	bytes_fn *write, *read;
	/* Adds 1 to as many words; the kernel has nothing like it, and reads. */
	words_fn *add;
	/* The same for words, each by a call of its own. */
	words_fn *read_singly, *add_singly;
};

static const struct mover by_device = {device_write, device_read, device_add, device_read_singly,
				       device_add_singly},
			  by_kernel = {kernel_write, kernel_read, kernel_read_words,
				       kernel_read_singly, kernel_read_singly},
			  by_thread = {kernel_write, kernel_read, thread_add, kernel_read_singly,
				       thread_add};

/* ---- what is measured; each returns its figure ---- */

static void ping(struct lane *l, const struct mover *m)
{
	uint64_t *out = (uint64_t *)(void *)(l->local + 64);

	*out = l->token;
	m->write(l, out, l->remote + LANES_WORD_AT, SMALL, 1);
}

static double write_latency(struct lane *l, const struct mover *m)
{
	uint64_t start = device_now_ns();

	for (unsigned i = 0; i < TRIPS; i++) {
		l->token++;
		if (l->side->first)
			ping(l, m);
		await_word(l, l->token);
		if (!l->side->first)
			ping(l, m);
	}
	return lanes_us_each(start, 2 * TRIPS);
}

static double read_latency(struct lane *l, const struct mover *m)
{
	uint64_t start = device_now_ns();

	for (unsigned i = 0; l->side->first && i < TRIPS; i++)
		m->read(l, l->local + 128, l->remote + 128, SMALL, 1);
	return lanes_us_each(start, TRIPS);
}

/* Where the other side adds, and where short requests go. */
#define ADD_AT	 192u
#define WORDS_AT 1024u

/* The target does nothing but wait for the end, and asks its completion queue or only its memory. */
static void target_waits(struct lane *l, const struct mover *m, bool asks)
{
	struct woken woken;
	struct ibv_wc wc;

	if (m == &by_thread)
		woken_begin(&woken, &words_of_lanes[l->number],
			    (_Atomic(uint64_t) *)(void *)(l->local + ADD_AT));
	while (asks && atomic_load(word(l)) != l->token)
		if (ibv_poll_cq(l->cq, 1, &wc))
			device_die("a completion that nobody asked for");
	await_word(l, l->token);
	if (m == &by_thread)
		woken_end(&woken);
}

/* The time of one of them, if so many are done by one call of 'add'. */
static double add_time(struct lane *l, const struct mover *m, unsigned each, bool asks,
		       words_fn *add)
{
	uint64_t start = device_now_ns();
	double us;

	l->token++;
	if (!l->side->first) {
		target_waits(l, m, asks);
		return 1;
	}
	for (unsigned i = 0; i < ADDS; i += each)
		add(l, l->local + 128, l->remote + ADD_AT, each);
	us = lanes_us_each(start, ADDS);
	ping(l, m);
	return us;
}

static double atomic_latency(struct lane *l, const struct mover *m)
{
	return add_time(l, m, 1, true, m->add);
}

static double atomic_word_latency(struct lane *l, const struct mover *m)
{
	return add_time(l, m, 1, false, m->add);
}

static double atomic_list_rate(struct lane *l, const struct mover *m)
{
	return 1 / add_time(l, m, LANES_LIST, true, m->add);
}

static double atomic_single_rate(struct lane *l, const struct mover *m)
{
	return 1 / add_time(l, m, LANES_LIST, true, m->add_singly);
}

/* Words in so many lists of each. */
static double words_rate(const struct lane *l, bytes_fn *move, unsigned each, unsigned lists)
{
	uint64_t start = device_now_ns();

	for (unsigned i = 0; l->side->first && i < lists; i++)
		move(l, l->local + 128, l->remote + WORDS_AT, SMALL, each);
	return each / lanes_us_each(start, lists);
}

static double bytes_rate(const struct lane *l, bytes_fn *move, uint32_t bytes, unsigned times)
{
	uint64_t start = device_now_ns();

	for (unsigned i = 0; l->side->first && i < times; i++)
		move(l, l->local + LANES_BLOCK_AT, l->remote + LANES_BLOCK_AT, bytes, 1);
	return bytes / lanes_us_each(start, times);
}

static double list_rate(struct lane *l, const struct mover *m)
{
	return words_rate(l, m->write, LANES_LIST, BURSTS);
}

static double single_rate(struct lane *l, const struct mover *m)
{
	return words_rate(l, m->write, 1, TRIPS);
}

static double read_list_rate(struct lane *l, const struct mover *m)
{
	return words_rate(l, m->read, LANES_LIST, BURSTS);
}

static double read_single_rate(struct lane *l, const struct mover *m)
{
	uint64_t start = device_now_ns();

	for (unsigned i = 0; l->side->first && i < BURSTS; i++)
		m->read_singly(l, l->local + 128, l->remote + WORDS_AT, LANES_LIST);
	return LANES_LIST / lanes_us_each(start, BURSTS);
}

static double block_rate(struct lane *l, const struct mover *m)
{
	return bytes_rate(l, m->write, LANES_BLOCK, BLOCKS);
}

static double large_rate(struct lane *l, const struct mover *m)
{
	return bytes_rate(l, m->write, LANES_LARGE, LARGES);
}

static double read_block_rate(struct lane *l, const struct mover *m)
{
	return bytes_rate(l, m->read, LANES_BLOCK, BLOCKS);
}

static double read_large_rate(struct lane *l, const struct mover *m)
{
	return bytes_rate(l, m->read, LANES_LARGE, LARGES);
}

static const struct lanes_measure measures[] = {
	{"write_lat", "us", write_latency, false, &by_kernel},
	{"read_lat", "us", read_latency, false, &by_kernel},
	{"list", "Mmsg/s", list_rate, true, &by_kernel},
	{"single", "Mmsg/s", single_rate, true, &by_kernel},
	{"block", "MB/s", block_rate, true, &by_kernel},
	{"large", "MB/s", large_rate, true, &by_kernel},
	{"read_list", "Mmsg/s", read_list_rate, true, &by_kernel},
	{"read_single", "Mmsg/s", read_single_rate, true, &by_kernel},
	{"read_block", "MB/s", read_block_rate, true, &by_kernel},
	{"read_large", "MB/s", read_large_rate, true, &by_kernel},
	{"atomic_lat", "us", atomic_latency, false, &by_kernel},
	{"atomic_list", "Mmsg/s", atomic_list_rate, true, &by_kernel},
	{"atomic_single", "Mmsg/s", atomic_single_rate, true, &by_kernel},
	{"atomic_word_lat", "us", atomic_word_latency, false, &by_thread},
};

int main(int argc, char **argv)
{
	static const struct lanes_program program = {
		.name = "onesided",
		.cap = {.max_send_wr = 2 * LANES_LIST,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.mover = &by_device,
		.measures = measures,
		.count = sizeof(measures) / sizeof(*measures),
	};

	words_of_lanes = woken_map(LANES_MOST);
	return lanes_main(argc, argv, &program);
}
