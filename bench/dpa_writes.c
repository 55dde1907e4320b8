// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDMA writes to another process, a plain verbs program: from device code, and by the same loop of
 * verbs, in turns.  Each list of requests is awaited by the completion of its last one.
 *
 * dpa_writes DEVICE: prints "name value unit" lines.
 */
#include <libflexio/flexio.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "dpa_writes.h"
#include "talk.h"
#include "verbs_device.h"

#define OK(call)     CHECK((call) == FLEXIO_STATUS_SUCCESS)
#define MEMORY_BYTES 65536u
#define TURNS	     20u
#define WRITES	     20000u /* of a turn */
#define LIST	     16u
#define BYTES	     64u
#define ENDS	     2u
#define ACCESS	     (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

extern struct flexio_app *dpa_writes_code;
extern flexio_func_t write_lists;

/* What the processes tell each other, for each of the two connections. */
struct hello {
	struct device_address address[ENDS];
	uint64_t memory;
	uint32_t rkey;
};

/* The writer that uses verbs. */
struct plain {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[ENDS];
	uint8_t memory[MEMORY_BYTES];
};

/* The writer on the DPA. */
struct device {
	struct flexio_process *p;
	struct flexio_cq *cq;
	struct flexio_qp *qp;
	struct write_loop loop;
	flexio_uintptr_t at; /* of the loop */
};

static struct plain plain;

static void plain_up(struct device_port *port, unsigned ends)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = {WRITE_DEPTH, 1, 1, 1}, .sq_sig_all = 0};

	plain.pd = ibv_alloc_pd(port->ctx);
	plain.cq = ibv_create_cq(port->ctx, WRITE_DEPTH, NULL, NULL, 0);
	CHECK(plain.pd && plain.cq);
	plain.mr = ibv_reg_mr(plain.pd, plain.memory, MEMORY_BYTES, ACCESS);
	CHECK(plain.mr);
	init.send_cq = init.recv_cq = plain.cq;
	for (unsigned i = 0; i < ends; i++) {
		plain.qp[i] = ibv_create_qp(plain.pd, &init);
		CHECK(plain.qp[i]);
	}
}

static void plain_connect(const struct device_port *port, unsigned end, const struct hello *peer)
{
	struct device_connection how = device_default_connection;

	how.access = IBV_ACCESS_REMOTE_WRITE;
	device_qp_init(plain.qp[end], &how);
	device_qp_connect(port, plain.qp[end], &how, &peer->address[end], 0);
}

/* The other process: it is written to. */
static void target(const char *device, int fd)
{
	struct device_port port;
	struct hello us, them;

	device_port_open(&port, device, -1);
	plain_up(&port, ENDS);
	for (unsigned i = 0; i < ENDS; i++)
		us.address[i] = device_address(&port, plain.qp[i], 0);
	us.memory = (uintptr_t)plain.memory;
	us.rkey = plain.mr->rkey;
	talk_put(fd, &us, sizeof(us));
	talk_get(fd, &them, sizeof(them));
	for (unsigned i = 0; i < ENDS; i++)
		plain_connect(&port, i, &them);
	talk_put(fd, &(char){0}, 1);
	talk_get(fd, &(char){0}, 1);
	_exit(0);
}

/* ---- the DPA's end ---- */

static uint64_t heap(struct device *d, size_t bytes, int value)
{
	flexio_uintptr_t at;

	OK(flexio_buf_dev_alloc(d->p, bytes, &at));
	OK(flexio_buf_dev_memset(d->p, value, bytes, at));
	return at;
}

static void device_up(struct device *d, struct ibv_context *ctx)
{
	struct flexio_cq_attr cq = {.log_cq_depth = LOG_WRITE_DEPTH,
				    .element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ};
	struct flexio_qp_attr qp = {.transport_type = FLEXIO_QPC_ST_RC,
				    .log_sq_depth = LOG_WRITE_DEPTH,
				    .rq_type = FLEXIO_QP_QPC_RQ_TYPE_ZERO_SIZE_RQ};
	struct flexio_mkey_attr key = {.len = MEMORY_BYTES, .access = IBV_ACCESS_LOCAL_WRITE};
	struct flexio_mkey *mkey;

	OK(flexio_process_create(ctx, dpa_writes_code, NULL, &d->p));
	cq.uar_id = qp.uar_id = flexio_uar_get_id(flexio_process_get_uar(d->p));
	d->loop.cq_ring = cq.cq_ring_qmem.daddr = heap(d, 64u << LOG_WRITE_DEPTH, 0xff);
	d->loop.cq_record = cq.cq_dbr_daddr = heap(d, 8, 0);
	OK(flexio_cq_create(d->p, NULL, &cq, &d->cq));
	qp.sq_cqn = qp.rq_cqn = flexio_cq_get_cq_num(d->cq);
	d->loop.ring = qp.qp_wq_buff_qmem.daddr = heap(d, 64u << LOG_WRITE_DEPTH, 0);
	qp.qp_wq_dbr_qmem.daddr = heap(d, 8, 0);
	OK(flexio_qp_create(d->p, NULL, &qp, &d->qp));
	d->loop.qpn = flexio_qp_get_qp_num(d->qp);
	key.pd = flexio_process_get_pd(d->p);
	d->loop.data = key.daddr = heap(d, MEMORY_BYTES, 1);
	d->loop.bytes = BYTES;
	OK(flexio_device_mkey_create(d->p, &key, &mkey));
	d->loop.lkey = flexio_mkey_get_id(mkey);
}

static void device_connect(struct device *d, const struct device_port *port,
			   const struct hello *peer)
{
	struct flexio_qp_attr attr = {
		.remote_qp_num = peer->address[1].qpn,
		.rlid = (uint16_t)peer->address[1].lid,
		.rgid_or_rip = peer->address[1].gid,
		.gid_table_index = (uint8_t)(port->ethernet ? port->gid_index : 0),
		.min_rnr_nak_timer = 12,
		.path_mtu = FLEXIO_QP_QPC_MTU_BYTES_1K,
		.retry_count = 7,
		.vhca_port_num = DEVICE_PORT,
	};

	for (unsigned s = FLEXIO_QP_STATE_INIT; s <= FLEXIO_QP_STATE_RTS; s++) {
		attr.next_state = (enum flexio_qp_state)s;
		OK(flexio_qp_modify(d->qp, &attr, NULL));
	}
	d->loop.remote = peer->memory + BYTES;
	d->loop.rkey = peer->rkey;
	OK(flexio_copy_from_host(d->p, &d->loop, sizeof(d->loop), &d->at));
}

/* ---- a turn of each; nanoseconds ---- */

static uint64_t device_turn(struct device *d, unsigned list)
{
	uint64_t failed, began = device_now_ns();

	OK(flexio_process_call(d->p, &write_lists, &failed, d->at, (uint64_t)(WRITES / list),
			       (uint64_t)list));
	CHECK(!failed);
	return device_now_ns() - began;
}

static uint64_t plain_turn(const struct hello *peer, unsigned list)
{
	struct ibv_sge sge = {(uintptr_t)plain.memory, BYTES, plain.mr->lkey};
	uint64_t began = device_now_ns();
	struct ibv_send_wr wr[LIST], *bad;
	struct ibv_wc wc;

	for (unsigned i = 0; i < WRITES / list; i++) {
		int n;

		/* The device's loop makes its requests anew, too. */
		for (unsigned k = 0; k < list; k++)
			wr[k] = (struct ibv_send_wr){
				.next = k + 1 < list ? &wr[k + 1] : NULL,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IBV_WR_RDMA_WRITE,
				.send_flags = k + 1 < list ? 0 : IBV_SEND_SIGNALED,
				.wr.rdma = {peer->memory, peer->rkey},
			};
		CHECK(!ibv_post_send(plain.qp[0], wr, &bad));
		while (!(n = ibv_poll_cq(plain.cq, 1, &wc)))
			;
		CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
	}
	return device_now_ns() - began;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The medians of turns that alternate. */
static void measure(struct device *d, const struct hello *peer, const char *name, unsigned list)
{
	uint64_t ours[TURNS], theirs[TURNS];

	for (unsigned i = 0; i < TURNS; i++) {
		ours[i] = device_turn(d, list);
		theirs[i] = plain_turn(peer, list);
	}
	qsort(ours, TURNS, sizeof(*ours), by_size);
	qsort(theirs, TURNS, sizeof(*theirs), by_size);
	printf("%s %.1f k/s\n", name, WRITES * 1e6 / (double)ours[TURNS / 2]);
	printf("%s_verbs %.1f k/s\n", name, WRITES * 1e6 / (double)theirs[TURNS / 2]);
}

int main(int argc, char **argv)
{
	struct device d = {0};
	struct device_port port;
	struct hello us = {.memory = 0}, them;
	int fd[2];
	pid_t pid;

	CHECK(argc == 2 && !socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fd[0]);
		target(argv[1], fd[1]);
	}
	close(fd[1]);
	device_port_open(&port, argv[1], -1);
	plain_up(&port, 1);
	device_up(&d, port.ctx);
	us.address[0] = device_address(&port, plain.qp[0], 0);
	us.address[1] = us.address[0];
	us.address[1].qpn = (uint32_t)d.loop.qpn;
	talk_get(fd[0], &them, sizeof(them));
	talk_put(fd[0], &us, sizeof(us));
	plain_connect(&port, 0, &them);
	device_connect(&d, &port, &them);
	talk_get(fd[0], &(char){0}, 1);
	measure(&d, &them, "write_one", 1);
	measure(&d, &them, "write_list", LIST);
	talk_put(fd[0], &(char){0}, 1);
	CHECK(waitpid(pid, NULL, 0) == pid);
	OK(flexio_process_destroy(d.p));
	return 0;
}
