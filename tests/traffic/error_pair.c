/* SPDX-License-Identifier: BSD-2-Clause */
/* A fresh pair of queue pairs with every kind of memory registration; see errors.h. */
#include "errors.h"

#include <poll.h>
#include <string.h>
#include <sys/mman.h>

static uint8_t *map_memory(void)
{
	void *p = mmap(NULL, ERROR_PAIR_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		device_die("mmap: %m");
	return p;
}

static struct ibv_mr *register_at(struct ibv_pd *pd, uint8_t *memory, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory + ERROR_PAIR_MR_AT, ERROR_PAIR_MR_LEN, access);

	if (!mr)
		device_die("ibv_reg_mr: %m");
	return mr;
}

/*
 * A key whose memory is unmapped.  Nothing may be mapped there again while the test runs; another
 * thread (the library's, a sanitizer's) can be quicker, then another place has to do.
 */
static struct ibv_mr *register_and_unmap(struct role *r, int access)
{
	for (int i = 0; i < 100; i++) {
		struct ibv_mr *mr;

		r->vanished = map_memory();
		mr = register_at(r->pd, r->vanished, access);
		munmap(r->vanished, ERROR_PAIR_BYTES);
		if (mmap(r->vanished, ERROR_PAIR_BYTES, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == r->vanished)
			return mr;
		if (ibv_dereg_mr(mr))
			device_die("ibv_dereg_mr: %m");
	}
	device_die("the hole is always filled: %m");
}

static void make_keys(struct role *r)
{
	static const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

	r->memory = map_memory();
	r->mr[KEY_GOOD] = register_at(r->pd, r->memory, all);
	r->mr[KEY_FOREIGN] = register_at(r->foreign_pd, r->memory, all);
	r->mr[KEY_NO_RIGHTS] = register_at(r->pd, r->memory, 0);
	r->mr[KEY_UNMAPPED] = register_and_unmap(r, all);
	r->mr[KEY_STALE] = register_at(r->pd, r->memory, all);
	r->mr[KEY_NULL] = ibv_alloc_null_mr(r->pd);
	if (!r->mr[KEY_NULL])
		device_die("ibv_alloc_null_mr: %m");
	r->mr[KEY_EMPTY] = ibv_reg_mr(r->pd, r->memory + ERROR_PAIR_MR_AT + 8, 0, all);
	if (!r->mr[KEY_EMPTY])
		device_die("ibv_reg_mr of no bytes: %m");
	for (int k = 0; k < KEYS; k++)
		r->keys[k] = r->mr[k] ? r->mr[k]->lkey : 0;
	r->keys[KEY_WRONG_VARIANT] = r->keys[KEY_GOOD] ^ 1;
	/* Keys are given out upwards; the largest index is far away. */
	r->keys[KEY_WRONG_INDEX] = 0xfffffe00u;
	if (ibv_dereg_mr(r->mr[KEY_STALE]))
		device_die("ibv_dereg_mr: %m");
	r->mr[KEY_STALE] = NULL;
}

static void open_role(struct error_pair *s, struct role *r, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.cap =
			{
				.max_send_wr = 8,
				.max_recv_wr = 8,
				.max_send_sge = ERROR_PAIR_SGES,
				.max_recv_sge = ERROR_PAIR_SGES,
				.max_inline_data = ERROR_PAIR_INLINE,
			},
		.qp_type = type,
	};

	r->pd = ibv_alloc_pd(s->port.ctx);
	r->foreign_pd = ibv_alloc_pd(s->port.ctx);
	r->cq = ibv_create_cq(s->port.ctx, 32, NULL, NULL, 0);
	if (!r->pd || !r->foreign_pd || !r->cq)
		device_die("PD or CQ: %m");
	init.send_cq = init.recv_cq = r->cq;
	r->qp = ibv_create_qp(r->pd, &init);
	if (!r->qp)
		device_die("ibv_create_qp: %m");
	make_keys(r);
}

void error_pair_open(struct error_pair *s, const char *device, int gid_index,
		     const struct error_case *c)
{
	enum ibv_qp_type type = c->type ? c->type : IBV_QPT_RC;
	struct device_connection how = device_default_connection;
	struct device_address address[2];

	*s = (struct error_pair){0};
	device_port_open(&s->port, device, gid_index);
	how.rnr_retry = 0;
	how.retry_cnt = 2;
	how.timeout = 12; /* 17 ms */
	for (int i = 0; i < 2; i++) {
		open_role(s, &s->roles[i], type);
		address[i] = device_address(&s->port, s->roles[i].qp, 100);
	}
	for (int i = 0; i < 2; i++) {
		how.access = type == IBV_QPT_UC ? IBV_ACCESS_REMOTE_WRITE
						: device_default_connection.access;
		if (i == 1)
			how.access &= ~c->access_without;
		device_qp_init(s->roles[i].qp, &how);
		device_qp_connect(&s->port, s->roles[i].qp, &how, &address[!i], 100);
	}
	if (type == IBV_QPT_UD) {
		struct ibv_ah_attr ah = device_ah_attr(&s->port, &address[1]);

		s->ah = ibv_create_ah(s->roles[0].pd, &ah);
		if (!s->ah)
			device_die("ibv_create_ah: %m");
	}
}

static void must_succeed(int err, const char *what)
{
	if (err)
		device_die("%s: %s", what, strerror(err));
}

void error_pair_close(struct error_pair *s)
{
	if (s->ah)
		must_succeed(ibv_destroy_ah(s->ah), "ibv_destroy_ah");
	for (int i = 0; i < 2; i++) {
		struct role *r = &s->roles[i];

		if (r->qp)
			must_succeed(ibv_destroy_qp(r->qp), "ibv_destroy_qp");
		for (int k = 0; k < KEYS; k++) {
			if (r->mr[k])
				must_succeed(ibv_dereg_mr(r->mr[k]), "ibv_dereg_mr");
		}
		must_succeed(ibv_destroy_cq(r->cq), "ibv_destroy_cq");
		must_succeed(ibv_dealloc_pd(r->foreign_pd), "ibv_dealloc_pd");
		must_succeed(ibv_dealloc_pd(r->pd), "ibv_dealloc_pd");
		munmap(r->memory, ERROR_PAIR_BYTES);
		munmap(r->vanished, ERROR_PAIR_BYTES);
	}
	device_port_close(&s->port);
}

bool error_pair_completion(struct role *role, struct ibv_wc *wc)
{
	uint64_t end = device_now_ns() + 10 * 1000000000ull;
	int n;

	do {
		n = ibv_poll_cq(role->cq, 1, wc);
		if (n < 0)
			device_die("ibv_poll_cq: %d", n);
	} while (!n && device_now_ns() < end);
	return n == 1;
}

bool error_pair_event_within(struct error_pair *s, struct ibv_async_event *event, int ms)
{
	struct pollfd fd = {.fd = s->port.ctx->async_fd, .events = POLLIN};

	if (poll(&fd, 1, ms) != 1)
		return false;
	if (ibv_get_async_event(s->port.ctx, event))
		device_die("ibv_get_async_event: %m");
	return true;
}

bool error_pair_event(struct error_pair *s, struct ibv_async_event *event)
{
	return error_pair_event_within(s, event, 0);
}
