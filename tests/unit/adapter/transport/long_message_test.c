// SPDX-License-Identifier: BSD-2-Clause
/*
 * The longest messages, at the smallest MTU: what is longer than the port takes fails on both
 * sides, and of the others never so many are outstanding that their PSNs could not be told apart.
 *
 *     src, dst   LONGEST bytes of addresses, the same few megabytes over and over
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adapter/core/device.h"
#include "adapter/qp/path.h"
#include "adapter_device.h"
#include "check.h"

#define PIECE	((size_t)4 << 20)
#define LONGEST ((size_t)IB_MAX_MSG_BYTES)
/* Of addresses: a message that is too long would otherwise fail by its key. */
#define REGION	 (2 * LONGEST)
#define MTU	 256u
#define PSN	 0xfffff0u
#define MESSAGES 3u

static struct test_device device;
static struct device_qp a, b;
static uint8_t *src, *dst;
static struct mkey *ms, *md;

static uint8_t *map_repeated(void)
{
	int fd = memfd_create("piece", MFD_CLOEXEC);
	uint8_t *at =
		mmap(NULL, REGION, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)PIECE) && at != MAP_FAILED);
	for (size_t off = 0; off < REGION; off += PIECE)
		CHECK(mmap(at + off, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			   0) != MAP_FAILED);
	close(fd);
	return at;
}

static void message_up(enum ib_qp_type type)
{
	device_up(&device);
	device_qp_up(&device, 0, &a, type);
	device_qp_up(&device, 0, &b, type);
	device_connect(&device, 0, &a, &b);
	(void)device_mr(&device, 0, a.pdn, src, REGION, DEVICE_ALL_ACCESS, &ms);
	(void)device_mr(&device, 0, b.pdn, dst, REGION, DEVICE_ALL_ACCESS, &md);
}

static void message_down(void)
{
	device_qp_down(&a);
	device_qp_down(&b);
	mkey_destroy(device.adapter[0], ms);
	mkey_destroy(device.adapter[0], md);
	device_down(&device);
}

/* In two pieces, of which the first is long. */
static void post_request(uint8_t opcode, size_t bytes)
{
	uint32_t first = (uint32_t)(bytes - 100);
	struct device_wqe w;

	device_wqe_begin(&a, &w, opcode, WQE_CTRL_CE_ALWAYS, 0);
	if (opcode != WQE_OP_SEND)
		device_wqe_raddr(&w, (uintptr_t)dst, mkey_key(md));
	device_wqe_data(&w, src, first, mkey_key(ms));
	device_wqe_data(&w, src + first, 100, mkey_key(ms));
	device_wqe_end(&w);
}

static void expect_refused(uint8_t syndrome)
{
	const struct cqe64_err *err = (const struct cqe64_err *)device_cq_poll(&a.cq);

	CHECK(err && err->op_own >> 4 == CQE_OP_REQ_ERR && err->syndrome == syndrome);
}

static void test_too_long(void)
{
	static const struct {
		enum ib_qp_type type;
		uint8_t opcode;
	} cases[] = {
		{IB_QPT_RC, WQE_OP_SEND},	{IB_QPT_RC, WQE_OP_RDMA_WRITE},
		{IB_QPT_RC, WQE_OP_RDMA_READ},	{IB_QPT_UC, WQE_OP_SEND},
		{IB_QPT_UC, WQE_OP_RDMA_WRITE},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		struct device_wqe w;

		message_up(cases[i].type);
		post_request(cases[i].opcode, LONGEST + 1);
		expect_refused(CQE_SYN_LOCAL_LENGTH);
		message_down();
		/* a piece of no bytes stands for 2^31 */
		message_up(cases[i].type);
		device_wqe_begin(&a, &w, cases[i].opcode, WQE_CTRL_CE_ALWAYS, 0);
		if (cases[i].opcode != WQE_OP_SEND)
			device_wqe_raddr(&w, (uintptr_t)dst, mkey_key(md));
		device_wqe_data(&w, src, 0, mkey_key(ms));
		device_wqe_end(&w);
		expect_refused(CQE_SYN_LOCAL_LENGTH);
		CHECK(!device_cq_poll(&b.cq));
		message_down();
	}
}

/* A sender that does not keep to it: the target refuses before the first byte. */
static void test_told_too_long(uint8_t op)
{
	const struct run run = {src, 1024};
	const struct ib_ah ah = {.dlid = 7, .port_num = 1};
	struct path path;
	struct pkt p = {
		.opcode = BTH_RC | op,
		.pkey = 0xffff,
		.path = &path,
		.psn = PSN,
		.npkts = 1,
		.payload_len = op == BTH_READ_REQUEST ? 0 : 1024,
		.nruns = 1,
		.runs = &run,
	};
	struct qp_attr attr;

	message_up(IB_QPT_RC);
	memset(src, 0x5a, 1024);
	memset(dst, 0, 1024);
	path_from_ah(device.adapter[0], &ah, &path);
	p.sqpn = qp_number(a.qp);
	p.dqpn = qp_number(b.qp);
	p.va = (uintptr_t)dst;
	p.rkey = mkey_key(md);
	p.dma_len = (uint32_t)LONGEST + 1;
	CHECK(wire_xmit(device.wire[0], &p) == WIRE_SENT);
	CHECK(!dst[0] && b.async[IB_EVENT_QP_REQ_ERR] == 1);
	qp_query(b.qp, &attr);
	CHECK(attr.state == IB_QPS_ERR);
	message_down();
}

static void to_small_mtu(struct device_qp *q, struct device_qp *peer, bool ready)
{
	struct qp_attr attr;

	device_attr(&device, 0, peer, &attr);
	attr.path_mtu = IB_MTU_256;
	if (qp_number(q->qp) == qp_number(a.qp) || !ready) {
		attr.state = IB_QPS_RESET;
		CHECK(!qp_modify(q->qp, &attr, IB_QP_STATE));
		attr.state = IB_QPS_INIT;
		CHECK(!qp_modify(q->qp, &attr,
				 IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS));
	}
	if (!ready)
		return;
	attr.state = IB_QPS_RTR;
	CHECK(!qp_modify(q->qp, &attr,
			 IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER));
	attr.state = IB_QPS_RTS;
	CHECK(!qp_modify(q->qp, &attr,
			 IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
				 IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC));
}

/* Nobody answers yet: what waits for PSNs goes on when the first ones are acknowledged. */
static void test_outstanding(void)
{
	struct qp_attr attr;

	message_up(IB_QPT_RC);
	to_small_mtu(&b, &a, false);
	to_small_mtu(&a, &b, true);
	memset(src, 0x6b, PIECE);
	memset(dst, 0, PIECE);
	for (unsigned i = 0; i < MESSAGES; i++)
		post_request(WQE_OP_RDMA_WRITE, LONGEST);
	qp_query(a.qp, &attr);
	CHECK(((attr.sq_psn - PSN) & IB_PSN_MASK) == LONGEST / MTU);
	to_small_mtu(&b, &a, true);
	for (unsigned i = 0; i < MESSAGES; i++) {
		const struct cqe64 *cqe;

		while (!(cqe = device_cq_poll(&a.cq)))
			adapter_progress(device.adapter[0], NULL);
		CHECK(cqe->op_own >> 4 == CQE_OP_REQ);
	}
	CHECK(!memcmp(src, dst, PIECE));
	qp_query(a.qp, &attr);
	CHECK(attr.sq_psn == ((PSN + MESSAGES * (uint32_t)(LONGEST / MTU)) & IB_PSN_MASK));
	qp_query(b.qp, &attr);
	CHECK(attr.rq_psn == ((PSN + MESSAGES * (uint32_t)(LONGEST / MTU)) & IB_PSN_MASK));
	message_down();
}

int main(void)
{
	src = map_repeated();
	dst = map_repeated();
	test_too_long();
	test_told_too_long(BTH_WRITE_FIRST);
	test_told_too_long(BTH_READ_REQUEST);
	test_outstanding();
	return 0;
}
