// SPDX-License-Identifier: BSD-2-Clause
/*
 * Messages through keys that are lists (mlx5dv_wr_mr_list(3), mlx5dv_wr_mr_interleaved(3)), in
 * every role that a key can have:
 *
 *      requester: flat, listed -- WRITE, READ, SEND, up to a MiB --> responder: flat, listed
 *
 * Both sides have the same two pieces of memory, the same key over the second, and are threads of
 * one process or two processes.  A case names the operation, whose key it goes through, and the
 * key's layout; all of the destination is compared.
 *
 * Prints a line "PASS|FAIL <tab> name <tab> reason" for each case; the reason of a good one is the
 * rate.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

#include "../support/verbs_device.h"

#define BYTES	 (1u << 20) /* of a message */
#define LISTED	 (2u << 20) /* of the memory under the key */
#define ENTRIES	 8u
#define LIMIT_NS 20000000000ull
#define EMPTY	 0xa5

#define RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* ---- layouts ---- */

enum layout {
	PIECES,	  /* a few, out of order */
	STRIDES,  /* 8 bytes taken, 2 left out */
	TWO_STEP, /* data and what belongs to it */
	NESTED,	  /* pieces of a key of strides */
	LAYOUTS
};

static const char *const layout_name[] = {"pieces", "8 of 10 bytes", "512 and 8 bytes", "nested"};

/* Where byte i of the key lies. */
static uint32_t place_of_piece(enum layout l, uint32_t i)
{
	switch (l) {
	case PIECES:
		if (i < 1000)
			return 1500000 + i;
		return i < 500000 ? i + 12345 - 1000 : i - 500000 + 800000;
	case STRIDES:
		return i / 8 * 10 + i % 8;
	case TWO_STEP:
		return i % 520 < 512 ? i / 520 * 516 + i % 520
				     : 1500000 + i / 520 * 8 + (i % 520 - 512);
	default: /* the second half first */
		return place_of_piece(STRIDES, i < BYTES / 2 ? i + BYTES / 2 : i - BYTES / 2);
	}
}

/* ---- a side ---- */

struct options {
	const char *device;
	int gid_index;
	int processes;
};

static struct options options = {.gid_index = -1, .processes = 1};

struct list_side {
	bool responds;
	int control;
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *flat, *listed;
	struct ibv_mr *flat_mr, *listed_mr;
	struct mlx5dv_mkey *key, *inner;
	uint64_t peer_flat;
	uint32_t peer_flat_rkey, peer_rkey;
};

static struct ibv_context *open_device(struct ibv_device *device)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};

	return mlx5dv_open_device(device, &attr);
}

static void tell_words(const struct list_side *s, const void *what, size_t n)
{
	if (send(s->control, what, n, MSG_NOSIGNAL) != (ssize_t)n)
		device_die("the other side has gone");
}

static void hear_words(const struct list_side *s, void *what, size_t n)
{
	if (recv(s->control, what, n, MSG_WAITALL) != (ssize_t)n)
		device_die("the other side has gone");
}

static void meet_peer(const struct list_side *s)
{
	char c = 0;

	tell_words(s, &c, 1);
	hear_words(s, &c, 1);
}

static struct mlx5dv_mkey *create_key(struct ibv_pd *pd)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
		.max_entries = ENTRIES,
	};
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);

	if (!key)
		device_die("mlx5dv_create_mkey: %s", strerror(errno));
	return key;
}

static struct ibv_mr *register_memory(struct ibv_pd *pd, void *at, size_t bytes)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, at, bytes, RIGHTS);

	if (!mr)
		device_die("ibv_reg_mr: %s", strerror(errno));
	return mr;
}

static struct ibv_qp *create_qp(struct list_side *s)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = {.max_send_wr = 16,
			.max_recv_wr = 4,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 512},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = s->pd,
		.send_ops_flags =
			IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS |
			     MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED,
	};
	struct ibv_qp *qp = mlx5dv_create_qp(s->port.ctx, &attr, &dv);

	if (!qp)
		device_die("mlx5dv_create_qp: %s", strerror(errno));
	return qp;
}

static void side_up(struct list_side *s)
{
	struct {
		struct device_address qp;
		uint64_t flat;
		uint32_t flat_rkey;
	} mine, theirs;

	device_port_open_by(&s->port, options.device, options.gid_index, open_device);
	s->pd = ibv_alloc_pd(s->port.ctx);
	s->cq = ibv_create_cq(s->port.ctx, 32, NULL, NULL, 0);
	s->flat = malloc(BYTES);
	s->listed = malloc(LISTED);
	if (!s->pd || !s->cq || !s->flat || !s->listed)
		device_die("no domain, CQ or memory");
	s->flat_mr = register_memory(s->pd, s->flat, BYTES);
	s->listed_mr = register_memory(s->pd, s->listed, LISTED);
	s->key = create_key(s->pd);
	s->inner = create_key(s->pd);
	s->qp = create_qp(s);
	memset(&mine, 0, sizeof(mine));
	mine.qp = device_address(&s->port, s->qp, 100);
	mine.flat = (uintptr_t)s->flat;
	mine.flat_rkey = s->flat_mr->rkey;
	tell_words(s, &mine, sizeof(mine));
	hear_words(s, &theirs, sizeof(theirs));
	s->peer_flat = theirs.flat;
	s->peer_flat_rkey = theirs.flat_rkey;
	device_qp_init(s->qp, &device_default_connection);
	device_qp_connect(&s->port, s->qp, &device_default_connection, &theirs.qp, 100);
	meet_peer(s);
}

static void side_down(struct list_side *s)
{
	meet_peer(s);
	ibv_destroy_qp(s->qp);
	mlx5dv_destroy_mkey(s->key);
	mlx5dv_destroy_mkey(s->inner);
	ibv_dereg_mr(s->flat_mr);
	ibv_dereg_mr(s->listed_mr);
	ibv_destroy_cq(s->cq);
	ibv_dealloc_pd(s->pd);
	device_port_close(&s->port);
	free(s->flat);
	free(s->listed);
}

/* The status of the next completion, or a number that is none. */
static int next_completion(struct list_side *s)
{
	uint64_t until = device_now_ns() + LIMIT_NS;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(s->cq, 1, &wc);
	} while (!n && device_now_ns() < until);
	return n == 1 ? (int)wc.status : -1;
}

/* ---- keys ---- */

static void configure_strides(struct list_side *s, struct mlx5dv_mkey *key, enum layout l)
{
	struct mlx5dv_mr_interleaved data[2] = {
		{.addr = (uintptr_t)s->listed, .lkey = s->listed_mr->lkey},
		{.addr = (uintptr_t)s->listed + 1500000,
		 .bytes_count = 8,
		 .lkey = s->listed_mr->lkey},
	};

	data[0].bytes_count = l == TWO_STEP ? 512 : 8;
	data[0].bytes_skip = l == TWO_STEP ? 4 : 2;
	mlx5dv_wr_mr_interleaved(mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(s->qp)), key, RIGHTS,
				 l == TWO_STEP ? BYTES / 520 + 1 : BYTES / 8, l == TWO_STEP ? 2 : 1,
				 data);
}

static void configure_list(struct list_side *s, enum layout l)
{
	const uint64_t at = (uintptr_t)s->listed;
	const uint32_t lkey = s->listed_mr->lkey, inner = s->inner->lkey;
	struct ibv_sge pieces[] = {
		{at + 1500000, 1000, lkey},
		{at + 12345, 499000, lkey},
		{at + 800000, BYTES - 500000, lkey},
	};
	struct ibv_sge halves[] = {{BYTES / 2, BYTES / 2, inner}, {0, BYTES / 2, inner}};

	mlx5dv_wr_mr_list(mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(s->qp)), s->key, RIGHTS,
			  l == NESTED ? 2 : 3, l == NESTED ? halves : pieces);
}

static void configure_side(struct list_side *s, enum layout l)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(s->qp);
	uint32_t rkey;

	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_INLINE;
	if (l == NESTED)
		configure_strides(s, s->inner, STRIDES);
	qpx->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	if (l == PIECES || l == NESTED)
		configure_list(s, l);
	else
		configure_strides(s, s->key, l);
	if (ibv_wr_complete(qpx))
		device_die("the key cannot be configured");
	if (next_completion(s) != IBV_WC_SUCCESS)
		device_die("the key's configuration failed");
	rkey = s->key->rkey;
	tell_words(s, &rkey, sizeof(rkey));
	hear_words(s, &s->peer_rkey, sizeof(s->peer_rkey));
}

/* ---- operations ---- */

struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool responders_key; /* through the responder's key */
	bool to_responder;   /* the way of the data */
	bool takes_recv;     /* of the responder */
};

static const struct operation operations[] = {
	{"WRITE from", IBV_WR_RDMA_WRITE, false, true, false},
	{"WRITE to", IBV_WR_RDMA_WRITE, true, true, false},
	{"READ into", IBV_WR_RDMA_READ, false, false, false},
	{"READ of", IBV_WR_RDMA_READ, true, false, false},
	{"SEND from", IBV_WR_SEND, false, true, true},
	{"receive into", IBV_WR_SEND, true, true, true},
};

/* A message is of these bytes of the key, and of the same ones of the flat memory. */
struct part {
	uint32_t off, len;
};

static const struct part parts[] = {{5, 8}, {511, 2}, {1000, 4097}, {3, 70001}, {0, BYTES}};

static uint8_t pattern_byte(unsigned seed, uint32_t i)
{
	return (uint8_t)((i + seed * 77) * 2654435761u >> 19);
}

static bool is_source(const struct list_side *s, const struct operation *op)
{
	return s->responds != op->to_responder;
}

static bool is_listed(const struct list_side *s, const struct operation *op)
{
	return s->responds == op->responders_key;
}

static void prepare_memory(struct list_side *s, const struct operation *op, enum layout l,
			   const struct part *p, unsigned seed)
{
	memset(s->flat, EMPTY, BYTES);
	memset(s->listed, EMPTY, LISTED);
	for (uint32_t i = p->off; is_source(s, op) && i < p->off + p->len; i++)
		*(is_listed(s, op) ? s->listed + place_of_piece(l, i) : s->flat + i) =
			pattern_byte(seed, i);
}

/* The first byte of the destination that is wrong, or -1. */
static int64_t compare_memory(struct list_side *s, const struct operation *op, enum layout l,
			      const struct part *p, unsigned seed)
{
	bool listed = is_listed(s, op);
	uint8_t *memory = listed ? s->listed : s->flat;

	if (is_source(s, op))
		return -1;
	for (uint32_t i = p->off; i < p->off + p->len; i++) {
		uint8_t *at = memory + (listed ? place_of_piece(l, i) : i);

		if (*at != pattern_byte(seed, i))
			return i;
		*at = EMPTY;
	}
	/* and not one beside */
	for (uint32_t i = 0; i < (listed ? LISTED : BYTES); i++)
		if (memory[i] != EMPTY)
			return BYTES + i;
	return -1;
}

static struct ibv_sge my_sge(struct list_side *s, const struct operation *op, const struct part *p)
{
	if (is_listed(s, op))
		return (struct ibv_sge){p->off, p->len, s->key->lkey};
	return (struct ibv_sge){(uintptr_t)s->flat + p->off, p->len, s->flat_mr->lkey};
}

static void post_send(struct list_side *s, const struct operation *op, const struct part *p)
{
	struct ibv_sge sge = my_sge(s, op, p);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op->opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = p->off + (op->responders_key ? 0 : s->peer_flat);
	wr.wr.rdma.rkey = op->responders_key ? s->peer_rkey : s->peer_flat_rkey;
	if (ibv_post_send(s->qp, &wr, &bad))
		device_die("ibv_post_send: %s", strerror(errno));
}

static void post_receive(struct list_side *s, const struct operation *op, const struct part *p)
{
	struct ibv_sge sge = my_sge(s, op, p);
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(s->qp, &wr, &bad))
		device_die("ibv_post_recv: %s", strerror(errno));
}

struct result {
	int status;
	int64_t wrong;
	uint64_t took;
};

/* Both sides do the same; the near one has the request.  Returns both sides' results. */
static void run_part(struct list_side *s, const struct operation *op, enum layout l,
		     const struct part *p, unsigned seed, struct result both[2])
{
	struct result here = {.status = IBV_WC_SUCCESS, .took = 1};
	uint64_t start;

	prepare_memory(s, op, l, p, seed);
	if (s->responds && op->takes_recv)
		post_receive(s, op, p);
	meet_peer(s);
	if (!s->responds) {
		start = device_now_ns();
		post_send(s, op, p);
		here.status = next_completion(s);
		here.took = device_now_ns() - start;
	} else if (op->takes_recv) {
		here.status = next_completion(s);
	}
	meet_peer(s);
	here.wrong = compare_memory(s, op, l, p, seed);
	tell_words(s, &here, sizeof(here));
	both[0] = here;
	hear_words(s, &both[1], sizeof(both[1]));
}

static bool run_case(struct list_side *s, const struct operation *op, enum layout l, unsigned seed)
{
	bool good = true;
	struct result r[2];
	const struct part *p;

	configure_side(s, l);
	for (p = parts; good && p < parts + sizeof(parts) / sizeof(parts[0]); p++) {
		run_part(s, op, l, p, seed++, r);
		good = !r[0].status && !r[1].status && r[0].wrong < 0 && r[1].wrong < 0;
	}
	if (s->responds)
		return good;
	printf("%s\t%s a key of %s\t", good ? "PASS" : "FAIL", op->name, layout_name[l]);
	if (good)
		printf("%.0f MB/s\n", (double)BYTES * 1e3 / (double)r[0].took);
	else
		printf("%u bytes at %u: status %d, responder %d; wrong at %lld, responder %lld\n",
		       p[-1].len, p[-1].off, r[0].status, r[1].status, (long long)r[0].wrong,
		       (long long)r[1].wrong);
	fflush(stdout);
	return good;
}

static bool run_side(bool responds, int control)
{
	struct list_side s = {.responds = responds, .control = control};
	bool good = true;

	side_up(&s);
	for (unsigned l = 0; l < LAYOUTS; l++)
		for (unsigned i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
			good &= run_case(&s, &operations[i], (enum layout)l, l * 100 + i * 10);
	side_down(&s);
	return good;
}

static void *run_responder(void *control)
{
	run_side(true, *(int *)control);
	return NULL;
}

static bool in_threads(int ends[2])
{
	pthread_t responder;
	bool good;

	if (pthread_create(&responder, NULL, run_responder, &ends[1]))
		device_die("no thread");
	good = run_side(false, ends[0]);
	pthread_join(responder, NULL);
	return good;
}

static bool in_processes(int ends[2])
{
	pid_t child = fork();
	int status;
	bool good;

	if (child < 0)
		device_die("fork: %s", strerror(errno));
	/* so that each hears of the other's end */
	close(ends[!!child]);
	if (!child)
		_exit(run_side(true, ends[1]) ? 0 : 1);
	good = run_side(false, ends[0]);
	return waitpid(child, &status, 0) == child && !status && good;
}

int main(int argc, char **argv)
{
	int ends[2], c;

	while ((c = getopt(argc, argv, "d:g:p:")) != -1) {
		switch (c) {
		case 'd':
			options.device = optarg;
			break;
		case 'g':
			options.gid_index = atoi(optarg);
			break;
		case 'p':
			options.processes = atoi(optarg);
			break;
		default:
			fprintf(stderr, "usage: lists [-d device] [-g gid index] [-p processes]\n");
			return 2;
		}
	}
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		device_die("socketpair: %s", strerror(errno));
	return (options.processes == 2 ? in_processes(ends) : in_threads(ends)) ? 0 : 1;
}
