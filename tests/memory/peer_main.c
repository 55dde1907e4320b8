// SPDX-License-Identifier: BSD-2-Clause
/* What the peer does with the orders of peer.c. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer_orders.h"

#define LIMIT_S 200 /* nothing may hang */
#define WINDOW	8u
#define TOP_BIT (1ull << 63) /* added to a word, it gives no byte of which poison was one half */

enum { OUT, IN, ROOM, AREAS };

struct life {
	struct memory_side side;
	struct ibv_mr *mr;
	uint8_t *area[AREAS]; /* what is written and sent; what was read; what others write to */
};

static struct ibv_sge piece_of(const struct life *l, int area, size_t bytes)
{
	return (struct ibv_sge){(uintptr_t)l->area[area], (uint32_t)bytes, l->mr->lkey};
}

static void begin_life(struct life *l, int sock, const char *device)
{
	uint8_t *mem = mmap(NULL, AREAS * PEER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		device_die("mmap: %m");
	alarm(LIMIT_S);
	l->side.sock = sock;
	side_open(&l->side, device);
	l->mr = ibv_reg_mr(l->side.pd, mem, AREAS * PEER_BYTES, SIDE_ACCESS);
	if (!l->mr)
		device_die("ibv_reg_mr: %m");
	for (int i = 0; i < AREAS; i++)
		l->area[i] = mem + (size_t)i * PEER_BYTES;
}

static void do_connect(struct life *l, const struct peer_order *o, struct peer_answer *a)
{
	const struct device_connection *how =
		o->patient ? &device_default_connection : &side_impatient;

	a->address = side_renew(&l->side, how);
	side_connect(&l->side, how, &o->address);
	a->addr = (uintptr_t)l->area[ROOM];
	a->rkey = l->mr->rkey;
}

static void do_write(struct life *l, const struct peer_order *o, struct peer_answer *a)
{
	memset(l->area[OUT], (int)o->value, o->bytes);
	a->status =
		side_do(&l->side, IBV_WR_RDMA_WRITE, piece_of(l, OUT, o->bytes), o->addr, o->rkey);
}

static void do_send(struct life *l, const struct peer_order *o, struct peer_answer *a)
{
	memset(l->area[OUT], (int)o->value, o->bytes);
	a->status = side_do(&l->side, IBV_WR_SEND, piece_of(l, OUT, o->bytes), 0, 0);
}

static void do_read(struct life *l, const struct peer_order *o, struct peer_answer *a)
{
	memset(l->area[IN], ~(int)o->value, o->bytes);
	a->status =
		side_do(&l->side, IBV_WR_RDMA_READ, piece_of(l, IN, o->bytes), o->addr, o->rkey);
	a->wrong = side_not(l->area[IN], o->bytes, (int)o->value);
}

/* ---- hammering ---- */

struct hammering {
	const struct peer_order *order;
	uint64_t random;
	unsigned outstanding;
	bool failed;
};

static uint64_t draw_number(struct hammering *h)
{
	h->random ^= h->random << 13;
	h->random ^= h->random >> 7;
	h->random ^= h->random << 17;
	return h->random;
}

static void hit_memory(struct life *l, struct hammering *h)
{
	static const uint32_t sizes[] = {8, 8, 64, 4096, 65536, PEER_BYTES};
	const struct peer_order *o = h->order;
	uint64_t bytes = sizes[draw_number(h) % (sizeof(sizes) / sizeof(*sizes))];
	struct ibv_sge sge;
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED};
	unsigned kind;

	do
		kind = 1u << (draw_number(h) % 4);
	while (!(o->hits & kind));
	bytes = bytes < o->bytes ? bytes : o->bytes;
	wr.wr.rdma.remote_addr = o->addr;
	if (bytes < o->bytes)
		wr.wr.rdma.remote_addr += draw_number(h) % (o->bytes - bytes) & ~7ull;
	wr.wr.rdma.rkey = o->rkey;
	switch (kind) {
	case PEER_HITS_WRITE:
		wr.opcode = IBV_WR_RDMA_WRITE;
		sge = piece_of(l, OUT, bytes);
		break;
	case PEER_HITS_READ:
		wr.opcode = IBV_WR_RDMA_READ;
		sge = piece_of(l, IN, bytes);
		break;
	case PEER_HITS_ADD:
		wr.wr.atomic.compare_add = TOP_BIT;
		wr.wr.atomic.rkey = o->rkey;
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		sge = piece_of(l, IN, 8);
		break;
	default:
		wr.opcode = IBV_WR_SEND;
		sge = piece_of(l, OUT, PEER_MESSAGE);
	}
	side_post(&l->side, &wr);
	h->outstanding++;
}

static void take_hits(struct life *l, struct hammering *h, struct peer_answer *a)
{
	struct ibv_wc wc = side_next_wc(&l->side);

	h->outstanding--;
	if (wc.status == IBV_WC_SUCCESS)
		a->done++;
	else if (!h->failed)
		a->status = wc.status;
	h->failed |= wc.status != IBV_WC_SUCCESS;
}

static bool is_told_to_rest(const struct life *l)
{
	struct peer_order o;
	ssize_t n = recv(l->side.sock, &o, sizeof(o), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n && (n != sizeof(o) || o.what != ORDER_REST))
		device_die("another order than to rest");
	return true;
}

static void do_hammer(struct life *l, const struct peer_order *o, struct peer_answer *a)
{
	struct hammering h = {.order = o, .random = 88172645463325252ull ^ o->addr};
	bool rests = false;

	memset(l->area[OUT], PEER_VALUE, PEER_BYTES);
	memset(l->area[IN], 0, PEER_BYTES);
	while (!h.failed && !rests) {
		while (h.outstanding < WINDOW)
			hit_memory(l, &h);
		take_hits(l, &h, a);
		rests = is_told_to_rest(l);
	}
	while (h.outstanding)
		take_hits(l, &h, a);
	a->wrong = side_count(l->area[IN], PEER_BYTES, PEER_POISON);
}

static void do_count(struct life *l, const struct peer_order *o, struct peer_answer *a)
{
	uint64_t *out = (uint64_t *)l->area[OUT], *in = (uint64_t *)l->area[IN];
	bool rests = false;

	for (uint64_t n = 1; !a->status && !rests; n++) {
		*out = n;
		a->status = side_do(&l->side, IBV_WR_RDMA_WRITE, piece_of(l, OUT, o->bytes),
				    o->addr, o->rkey);
		if (!a->status)
			a->status = side_do(&l->side, IBV_WR_RDMA_READ, piece_of(l, IN, o->bytes),
					    o->addr, o->rkey);
		a->wrong += !a->status && *in != n;
		a->done++;
		rests = is_told_to_rest(l);
	}
}

/* ---- the rest ---- */

static void do_receive(struct life *l, const struct peer_order *o)
{
	for (unsigned i = 0; i < o->hits; i++)
		side_post_recv(&l->side, l->area[ROOM], (uint32_t)o->bytes, l->mr->lkey);
}

static _Noreturn void dump_core(const struct peer_order *o)
{
	struct rlimit limit = {o->bytes, o->bytes};

	if (chdir(o->path) || setrlimit(RLIMIT_CORE, &limit))
		device_die("%s: %m", o->path);
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void obey_order(struct life *l, const struct peer_order *o, struct peer_answer *a)
{
	switch (o->what) {
	case ORDER_CONNECT:
		do_connect(l, o, a);
		break;
	case ORDER_WRITE:
		do_write(l, o, a);
		break;
	case ORDER_READ:
		do_read(l, o, a);
		break;
	case ORDER_SEND:
		do_send(l, o, a);
		break;
	case ORDER_HAMMER:
		do_hammer(l, o, a);
		break;
	case ORDER_COUNT:
		do_count(l, o, a);
		break;
	case ORDER_RECEIVE:
		do_receive(l, o);
		break;
	case ORDER_COLLECT:
		a->status = side_next_wc(&l->side).status;
		break;
	case ORDER_LOOK:
		a->wrong = side_count(l->area[ROOM], PEER_BYTES, (int)o->value);
		break;
	case ORDER_REFUSE:
		self_refuse_process_vm((int)o->value);
		break;
	case ORDER_TICK:
		self_tick((unsigned)o->bytes);
		break;
	case ORDER_DUMP:
		dump_core(o);
	case ORDER_REST:
	case ORDER_END:
		break;
	}
}

_Noreturn void peer_main(int sock, const char *device)
{
	struct life l = {0};
	struct peer_order o;

	begin_life(&l, sock, device);
	while (side_hears(&l.side, &o, sizeof(o)) && o.what != ORDER_END) {
		struct peer_answer a = {0};

		/* The hammering had ended by itself and was answered. */
		if (o.what == ORDER_REST)
			continue;
		obey_order(&l, &o, &a);
		side_tell(&l.side, &a, sizeof(a));
	}
	if (ibv_dereg_mr(l.mr))
		device_die("ibv_dereg_mr: %m");
	side_close(&l.side);
	exit(0);
}
