// SPDX-License-Identifier: BSD-2-Clause
/* Makes and breaks what direct.h declares. */
#include "direct.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ASLEEP_LIMIT_NS 10000000000ull
#define DIRECT_MEMORY	(2 * DIRECT_PAIRS_MAX * sizeof(uint64_t))

struct direct_slice direct_source(const struct direct_field *f, unsigned pair)
{
	return (struct direct_slice){(uintptr_t)&f->memory[2 * pair], f->mr->lkey, DIRECT_BYTES};
}

struct direct_slice direct_target(const struct direct_field *f, unsigned pair)
{
	return (struct direct_slice){(uintptr_t)&f->memory[2 * pair + 1], f->mr->rkey,
				     DIRECT_BYTES};
}

void direct_nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = DIRECT_NAP_MS * 1000000}, NULL);
}

static struct ibv_qp *make_qp(struct direct_field *f)
{
	struct ibv_qp_init_attr init = {
		.send_cq = f->sent,
		.recv_cq = f->received,
		.cap = {.max_send_wr = DIRECT_DEPTH,
			.max_recv_wr = DIRECT_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(f->pd, &init);

	if (!qp)
		device_die("ibv_create_qp: %m");
	return qp;
}

void direct_connect(struct direct_field *f, struct ibv_qp *qp, const struct device_address *peer)
{
	device_qp_init(qp, &device_default_connection);
	device_qp_connect(&f->port, qp, &device_default_connection, peer, 0);
}

static void make_pair(struct direct_field *f, struct direct_pair *p)
{
	const unsigned nregs = 2 * DIRECT_PAIRS_MAX;
	struct device_address from, to;

	p->from = make_qp(f);
	p->to = make_qp(f);
	from = device_address(&f->port, p->from, 0);
	to = device_address(&f->port, p->to, 0);
	direct_take_qp(p->from, &p->sq, &p->rq, f->regs, nregs);
	direct_take_qp(p->to, &p->to_sq, &p->to_rq, f->regs, nregs);
	direct_connect(f, p->from, &to);
	direct_connect(f, p->to, &from);
}

void direct_add_single(struct direct_field *f)
{
	struct direct_pair *p = &f->pairs[f->npairs++];

	p->from = make_qp(f);
	direct_take_qp(p->from, &p->sq, &p->rq, f->regs, 2 * DIRECT_PAIRS_MAX);
}

void direct_add_loopback(struct direct_field *f)
{
	struct device_address self;

	direct_add_single(f);
	self = device_address(&f->port, f->pairs[f->npairs - 1].from, 0);
	direct_connect(f, f->pairs[f->npairs - 1].from, &self);
}

void direct_ring_asleep(struct direct_field *f, unsigned rings)
{
	for (unsigned i = 0; i < rings; i++) {
		direct_nap();
		direct_write(&f->pairs[0].sq, direct_source(f, 0), direct_target(f, 0));
		direct_ring(&f->pairs[0].sq);
		if (!direct_wait(&f->sends, ASLEEP_LIMIT_NS))
			device_die("a store has not arrived");
	}
}

void direct_open(struct direct_field *f, const char *device, int gid_index, unsigned npairs)
{
	*f = (struct direct_field){.npairs = npairs};
	device_port_open(&f->port, device, gid_index);
	f->pd = ibv_alloc_pd(f->port.ctx);
	f->channel = ibv_create_comp_channel(f->port.ctx);
	if (!f->pd || !f->channel)
		device_die("set-up: %m");
	f->sent = ibv_create_cq(f->port.ctx, 1023, NULL, NULL, 0);
	f->received = ibv_create_cq(f->port.ctx, 1023, NULL, f->channel, 0);
	f->memory = mmap(NULL, DIRECT_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (!f->sent || !f->received || f->memory == MAP_FAILED)
		device_die("set-up: %m");
	f->mr = ibv_reg_mr(f->pd, f->memory, DIRECT_MEMORY,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!f->mr)
		device_die("ibv_reg_mr: %m");
	direct_take_cq(f->sent, &f->sends);
	direct_take_cq(f->received, &f->receives);
	for (unsigned i = 0; i < npairs; i++)
		make_pair(f, &f->pairs[i]);
}

void direct_close(struct direct_field *f)
{
	int err = 0;

	for (unsigned i = 0; i < f->npairs; i++)
		err |= ibv_destroy_qp(f->pairs[i].from) |
		       (f->pairs[i].to ? ibv_destroy_qp(f->pairs[i].to) : 0);
	err |= ibv_destroy_cq(f->sent) | ibv_destroy_cq(f->received) |
	       ibv_destroy_comp_channel(f->channel) | ibv_dereg_mr(f->mr) | ibv_dealloc_pd(f->pd);
	if (err)
		device_die("clean-up: %s", strerror(err));
	munmap(f->memory, DIRECT_MEMORY);
	device_port_close(&f->port);
}
