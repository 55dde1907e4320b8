// SPDX-License-Identifier: BSD-2-Clause
/* Mistakes in setting up, and with keys and memory. */
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

/* ---- setting up ---- */

void mistake_rtr_without_grh(void)
{
	struct scene s = at_init(MISTAKE_ETHERNET);
	struct ibv_ah_attr ah = device_ah_attr(&s.port, &s.b.address);

	ah.is_global = 0;
	tell_call("ibv_modify_qp", to_rtr(&s, ah, IBV_MTU_1024, 0));
}

void mistake_gid_index_missing(void)
{
	struct scene s = at_init(MISTAKE_ETHERNET);
	struct ibv_ah_attr ah = device_ah_attr(&s.port, &s.b.address);

	ah.grh.sgid_index = 200;
	tell_call("ibv_modify_qp", to_rtr(&s, ah, IBV_MTU_1024, 0));
}

void mistake_attribute_missing(void)
{
	struct scene s = at_init(MISTAKE_INFINIBAND);

	tell_call("ibv_modify_qp", to_rtr(&s, device_ah_attr(&s.port, &s.b.address), IBV_MTU_1024,
					  IBV_QP_MIN_RNR_TIMER));
}

void mistake_state_skipped(void)
{
	struct scene s = prepared();

	scene_make(&s);
	tell_call("ibv_modify_qp",
		  to_rtr(&s, device_ah_attr(&s.port, &s.b.address), IBV_MTU_1024, 0));
}

void mistake_mtu_too_large(void)
{
	struct scene s = at_init(MISTAKE_INFINIBAND);

	tell_call("ibv_modify_qp",
		  to_rtr(&s, device_ah_attr(&s.port, &s.b.address), IBV_MTU_4096 + 1, 0));
}

void mistake_region_without_local_write(void)
{
	struct scene s = prepared();
	struct ibv_mr *mr = ibv_reg_mr(s.a.pd, s.a.mem, MISTAKE_BYTES, IBV_ACCESS_REMOTE_WRITE);

	tell_call("ibv_reg_mr", mr ? 0 : errno);
}

void mistake_region_of_constants(void)
{
	struct scene s = prepared();
	void *mem = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(s.a.pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE);

	tell_call("ibv_reg_mr", mr ? 0 : errno);
}

void mistake_domain_in_use(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);

	tell_call("ibv_dealloc_pd", ibv_dealloc_pd(s.a.pd));
}

/* ---- keys and memory ---- */

void mistake_rkey_in_wrong_order(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);

	write_with(&s, htonl(s.b.mr->rkey), (uintptr_t)s.b.mem, 64);
	tell_event(&s);
}

void mistake_behind_region(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);

	write_with(&s, s.b.mr->rkey, (uintptr_t)s.b.mem + MISTAKE_BYTES - 32, 64);
}

void mistake_address_is_offset(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);

	write_with(&s, s.b.mr->rkey, 64, 64);
}

void mistake_region_without_remote_write(void)
{
	struct scene s = prepared();

	s.b.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	scene_make(&s);
	scene_connect(&s);
	request(&s, IBV_WR_RDMA_WRITE, 64);
	tell_completion("write", &s.a);
}

void mistake_queue_pair_without_access(void)
{
	struct scene s = prepared();

	s.b.how.access = 0;
	scene_make(&s);
	scene_connect(&s);
	request(&s, IBV_WR_RDMA_WRITE, 64);
	tell_completion("write", &s.a);
}

void mistake_region_of_other_domain(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);
	struct ibv_mr *mr = ibv_reg_mr(s.a.pd, s.b.mem, MISTAKE_BYTES, s.b.access);

	write_with(&s, mr->rkey, (uintptr_t)s.b.mem, 64);
}

void mistake_peer_region_deregistered(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);
	uint32_t rkey = s.b.mr->rkey;

	if (ibv_dereg_mr(s.b.mr))
		device_die("ibv_dereg_mr: %m");
	write_with(&s, rkey, (uintptr_t)s.b.mem, 64);
}

static void send_from(struct scene *s, uint64_t addr, uint32_t lkey)
{
	struct ibv_sge sge = {addr, 64, lkey};
	struct ibv_send_wr wr = scene_request(s, IBV_WR_SEND, &sge);

	post_receive(&s->b, 64);
	post(&s->a, &wr);
	tell_completion("send", &s->a);
}

void mistake_own_region_deregistered(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);
	uint32_t lkey = s.a.mr->lkey;

	if (ibv_dereg_mr(s.a.mr))
		device_die("ibv_dereg_mr: %m");
	send_from(&s, (uintptr_t)s.a.mem, lkey);
}

void mistake_lkey_of_other_domain(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);

	send_from(&s, (uintptr_t)s.b.mem, s.b.mr->lkey);
}

void mistake_lkey_not_set(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);

	send_from(&s, (uintptr_t)s.a.mem, 0);
}

void mistake_buffer_unmapped(void)
{
	struct scene s = connected(MISTAKE_INFINIBAND, IBV_QPT_RC);
	uint8_t *mem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(s.a.pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE);

	mem[0] = 1;
	munmap(mem, 4096);
	send_from(&s, (uintptr_t)mem, mr->lkey);
}

void mistake_receive_without_local_write(void)
{
	struct scene s = prepared();

	s.b.access = 0;
	scene_make(&s);
	scene_connect(&s);
	post_receive(&s.b, 64);
	request(&s, IBV_WR_SEND, 64);
	tell_completion("send", &s.a);
	tell_completion("receive", &s.b);
}
