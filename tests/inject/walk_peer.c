/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process at the other end, of which no call is made to fail.  It makes a queue pair when it is
 * told an address, and takes it down when it is told none; in both cases it answers.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "walk.h"

#define RECEIVES 4u

static void need_success(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "the other process: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void device_open(struct walk *w)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need_success(list, "list");
	for (int i = 0; list[i] && !w->ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), w->device))
			w->ctx = ibv_open_device(list[i]);
	need_success(w->ctx, "open");
	ibv_free_device_list(list);
	need_success(!ibv_query_port(w->ctx, 1, &w->port) && !ibv_query_gid(w->ctx, 1, 0, &w->gid),
		     "port");
	need_success((w->pd = ibv_alloc_pd(w->ctx)), "pd");
	need_success((w->cq[0] = ibv_create_cq(w->ctx, 64, NULL, NULL, 0)), "cq");
	w->memory =
		mmap(NULL, WALK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	w->mr = ibv_reg_mr(w->pd, w->memory, WALK_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	need_success(w->mr, "mr");
}

static struct walk_address end_open(struct walk *w, const struct walk_address *to)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.send_cq = w->cq[0],
		.recv_cq = w->cq[0],
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_sge into = {(uintptr_t)w->memory, WALK_BYTES / 2, w->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &into, .num_sge = 1}, *bad;

	need_success((w->remote.qp = ibv_create_qp(w->pd, &attr)), "qp");
	errno = walk_connect(w, &w->remote, to);
	need_success(!errno, "connect");
	for (unsigned i = 0; i < RECEIVES; i++)
		need_success(!ibv_post_recv(w->remote.qp, &wr, &bad), "receive");
	return walk_address(w, w->remote.qp);
}

static void end_close(struct walk *w)
{
	if (w->remote.qp)
		need_success(!ibv_destroy_qp(w->remote.qp), "destroy");
	w->remote = (struct walk_end){0};
}

_Noreturn void walk_peer(const char *device, int sock)
{
	static struct walk w;
	struct walk_address message;

	w.device = device;
	w.faulty = true; /* of the one at this end */
	device_open(&w);
	while (read(sock, &message, sizeof(message)) == sizeof(message)) {
		struct walk_address answer = {0};

		end_close(&w);
		if (message.qpn)
			answer = end_open(&w, &message);
		need_success(write(sock, &answer, sizeof(answer)) == sizeof(answer), "answer");
	}
	end_close(&w);
	need_success(!ibv_dereg_mr(w.mr) && !ibv_destroy_cq(w.cq[0]) && !ibv_dealloc_pd(w.pd) &&
			     !ibv_close_device(w.ctx),
		     "close");
	exit(0);
}
