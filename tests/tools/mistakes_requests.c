// SPDX-License-Identifier: BSD-2-Clause
/* Mistakes in messages, connections and queues. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mistake.h"

/* ---- messages ---- */

void mistake_no_receive(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);

	request(&s, IBV_WR_SEND, 64);
	tell_completion("send", &s.a);
}

void mistake_receive_too_short(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);

	post_receive(&s.b, 40);
	request(&s, IBV_WR_SEND, 64);
	tell_completion("send", &s.a);
	tell_completion("receive", &s.b);
}

static void datagram(struct scene *s, uint32_t bytes, uint32_t qkey)
{
	struct ibv_sge sge = {(uintptr_t)s->a.mem, bytes, s->a.mr->lkey};
	struct ibv_send_wr wr = scene_request(s, IBV_WR_SEND, &sge);
	struct ibv_ah_attr to = device_ah_attr(&s->port, &s->b.address);

	wr.wr.ud.ah = ibv_create_ah(s->a.pd, &to);
	wr.wr.ud.remote_qpn = s->b.qp->qp_num;
	wr.wr.ud.remote_qkey = qkey;
	if (!wr.wr.ud.ah)
		device_die("ibv_create_ah: %m");
	post(&s->a, &wr);
	tell_completion("send", &s->a);
}

void mistake_datagram_without_room_for_grh(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_UD);

	post_receive(&s.b, 64);
	datagram(&s, 64, DEVICE_QKEY);
	tell_nothing("receive", &s.b);
}

void mistake_datagram_over_mtu(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_UD);

	datagram(&s, 5000, DEVICE_QKEY);
}

void mistake_datagram_of_other_qkey(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_UD);

	post_receive(&s.b, 104);
	datagram(&s, 64, 0);
	/* who sends it has handed it over, so it is there or lost */
	tell_nothing("receive", &s.b);
}

void mistake_address_handle_without_grh(void)
{
	struct scene s = connected(MISTAKE_ETHERNET, IBV_QPT_UD);
	struct ibv_ah_attr to = {.port_num = DEVICE_PORT};

	tell_call("ibv_create_ah", ibv_create_ah(s.a.pd, &to) ? 0 : errno);
}

void mistake_reads_not_allowed(void)
{
	struct scene s = prepared();

	s.b.how.rd_atomic = 0;
	scene_make(&s);
	scene_connect(&s);
	request(&s, IBV_WR_RDMA_READ, 64);
	tell_completion("read", &s.a);
}

void mistake_atomic_not_aligned(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);
	struct ibv_sge sge = {(uintptr_t)s.a.mem, 8, s.a.mr->lkey};
	struct ibv_send_wr wr = scene_request(&s, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);

	wr.wr.atomic.remote_addr += 4;
	post(&s.a, &wr);
	tell_completion("atomic", &s.a);
}

/* ---- connections ---- */

void mistake_psn_of_other(void)
{
	struct scene s = prepared();

	scene_make(&s);
	s.a.address.psn = 0x1005; /* b expects a later one than a begins with */
	scene_connect(&s);
	request(&s, IBV_WR_SEND, 64);
	tell_completion("send", &s.a);
}

void mistake_number_of_nobody(void)
{
	struct scene s = prepared();

	scene_make(&s);
	s.b.address.qpn = s.b.qp->qp_num ^ 0x1000;
	scene_connect(&s);
	request(&s, IBV_WR_SEND, 64);
	tell_completion("send", &s.a);
}

void mistake_gid_of_nobody(void)
{
	struct scene s = {0};

	scene_prepare(&s, MISTAKE_ETHERNET, IBV_QPT_RC);
	scene_make(&s);
	s.b.address.gid.raw[15] ^= 0x55;
	s.b.address.gid.raw[14] ^= 0x55;
	scene_connect(&s);
	request(&s, IBV_WR_SEND, 64);
	tell_completion("send", &s.a);
}

void mistake_port_of_other_link_type(void)
{
	struct scene s = {0}, other = {0};

	scene_prepare(&s, MISTAKE_ETHERNET, IBV_QPT_RC);
	scene_make(&s);
	scene_prepare(&other, MISTAKE_INFINIBAND, IBV_QPT_RC);
	scene_make(&other);
	s.b.address = other.b.address;
	if (ibv_query_gid(other.port.ctx, 1, 0, &s.b.address.gid))
		device_die("ibv_query_gid: %m");
	s.b.reset = true;
	scene_connect(&s);
	request(&s, IBV_WR_SEND, 64);
	tell_completion("send", &s.a);
}

void mistake_peer_not_connected(void)
{
	struct scene s = prepared();

	s.b.reset = true;
	scene_make(&s);
	scene_connect(&s);
	request(&s, IBV_WR_SEND, 64);
	tell_completion("send", &s.a);
}

void mistake_peer_destroyed(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);

	if (ibv_destroy_qp(s.b.qp))
		device_die("ibv_destroy_qp: %m");
	request(&s, IBV_WR_SEND, 64);
	tell_completion("send", &s.a);
}

void mistake_timeout_zero(void)
{
	struct scene s = prepared();
	struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};

	s.a.how.timeout = 0;
	scene_make(&s);
	scene_connect(&s);
	if (ibv_destroy_qp(s.b.qp))
		device_die("ibv_destroy_qp: %m");
	request(&s, IBV_WR_SEND, 64);
	/* longer than the retries of others last, and then it is still there */
	usleep(400000);
	tell_nothing("send", &s.a);
	if (ibv_modify_qp(s.a.qp, &error, IBV_QP_STATE))
		device_die("ibv_modify_qp: %m");
	tell_completion("send", &s.a);
}

void mistake_not_in_rts(void)
{
	struct scene s = at_init(MISTAKE_INFINIBAND);
	struct ibv_sge sge = {(uintptr_t)s.a.mem, 64, s.a.mr->lkey};
	struct ibv_send_wr wr = scene_request(&s, IBV_WR_SEND, &sge), *bad;

	if (to_rtr(&s, device_ah_attr(&s.port, &s.b.address), IBV_MTU_1024, 0))
		device_die("ibv_modify_qp: %m");
	tell_call("ibv_post_send", ibv_post_send(s.a.qp, &wr, &bad));
}

void mistake_posted_after_error(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);

	write_with(&s, s.b.mr->rkey, 64, 64);
	request(&s, IBV_WR_RDMA_WRITE, 64);
	tell_completion("second write", &s.a);
	post_receive(&s.a, 64);
	tell_completion("receive", &s.a);
}

/* ---- queues ---- */

void mistake_send_queue_full(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);
	struct ibv_sge sge = {(uintptr_t)s.a.mem, 64, s.a.mr->lkey};
	struct ibv_send_wr wr = scene_request(&s, IBV_WR_RDMA_WRITE, &sge), *bad;
	int err = 0;

	wr.send_flags = 0; /* never signaled: no completion ever makes room */
	for (unsigned i = 0; i < 1000 && !err; i++)
		err = ibv_post_send(s.a.qp, &wr, &bad);
	tell_call("ibv_post_send", err);
}

void mistake_completion_queue_small(void)
{
	struct scene s = prepared();

	s.a.cq = ibv_create_cq(s.port.ctx, 1, NULL, NULL, 0);
	s.a.init.send_cq = s.a.cq;
	s.a.init.recv_cq = s.a.cq;
	scene_make(&s);
	scene_connect(&s);
	for (int i = 0; i < 4 * (s.a.cq->cqe + 1); i++)
		request(&s, IBV_WR_RDMA_WRITE, 64);
	tell_event(&s);
}

void mistake_inline_too_long(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);
	struct ibv_sge sge = {(uintptr_t)s.a.mem, 4000, s.a.mr->lkey};
	struct ibv_send_wr wr = scene_request(&s, IBV_WR_RDMA_WRITE, &sge), *bad;

	wr.send_flags |= IBV_SEND_INLINE;
	tell_call("ibv_post_send", ibv_post_send(s.a.qp, &wr, &bad));
}

void mistake_too_many_pieces(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);
	struct ibv_sge sge[64];
	struct ibv_send_wr wr = scene_request(&s, IBV_WR_RDMA_WRITE, sge), *bad;

	for (int i = 0; i < 64; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)s.a.mem, 8, s.a.mr->lkey};
	wr.num_sge = 64;
	tell_call("ibv_post_send", ibv_post_send(s.a.qp, &wr, &bad));
}

void mistake_armed_once(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);
	struct pollfd fd = {.fd = s.channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (ibv_req_notify_cq(s.a.cq, 0))
		device_die("ibv_req_notify_cq: %m");
	request(&s, IBV_WR_RDMA_WRITE, 64);
	if (ibv_get_cq_event(s.channel, &cq, &context))
		device_die("ibv_get_cq_event: %m");
	ibv_ack_cq_events(cq, 1);
	tell_completion("first", &s.a);
	/* an event is for one completion, and nobody has asked for another */
	request(&s, IBV_WR_RDMA_WRITE, 64);
	if (fcntl(s.channel->fd, F_SETFL, O_NONBLOCK))
		device_die("fcntl: %m");
	printf("events: %d\n", poll(&fd, 1, 200));
	tell_call("ibv_get_cq_event", ibv_get_cq_event(s.channel, &cq, &context) ? errno : 0);
	tell_completion("second", &s.a);
}

void mistake_child_uses_device(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);
	pid_t child = fork();
	int status;

	if (!child) {
		struct ibv_mr *mr = ibv_reg_mr(s.a.pd, s.a.mem, 4096, IBV_ACCESS_LOCAL_WRITE);

		tell_call("ibv_reg_mr of the child", mr ? 0 : errno);
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, &status, 0);
	request(&s, IBV_WR_RDMA_WRITE, 64);
	tell_completion("write of the parent", &s.a);
}
