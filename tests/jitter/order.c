/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * order DEVICE SECONDS SEED: what the order of a send queue's requests promises.
 *
 * Two processes. The initiator posts SENDs, WRITEs, READs and atomics at random on a few RC queue
 * pairs.  Some of them go by packets and some do not; a second thread polls meanwhile, so that
 * answers are taken by either.
 *
 *	Completions come in the order of the requests.
 *	A READ finds what the last WRITE before it wrote, or a later one, since a READ does not
 *	hold up the WRITEs behind it without a fence.  Atomics add one after the other.
 *	Messages arrive in the order in which they were sent.
 *	When SQ_DRAINED has come, the completions of all that was begun have come.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "verbs_device.h"

#define QPS	   4u
#define DEPTH	   16u
#define RECEIVES   64u
#define SLOT_BYTES 12288u
#define PATIENCE   20000000000u /* ns without a completion */
#define LOOK_AFTER 300000u	/* ns: longer than a thread is held up */

enum kind { SEND, WRITE, READ, ADD, KINDS };

struct request {
	enum kind kind;
	bool signaled;
	uint64_t expected; /* READ, ADD: what comes back */
};

struct queue {
	struct ibv_qp *qp;
	struct request request[DEPTH];
	uint64_t posted, done;
	uint64_t written, added; /* by the requests so far */
	uint32_t sent;		 /* messages; at the target: taken */
};

/* What a side tells the other. */
struct hello {
	struct device_address address[QPS];
	uint64_t at;
	uint64_t rkey;
};

struct side {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem;
	struct queue queue[QPS];
	struct hello peer;
	int sock;
	_Atomic(uint32_t)
		*taken; /* by the target's program, of each queue; both processes map it */
};

static uint64_t random_state;

static uint32_t any(uint32_t below)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(random_state >> 33) % below;
}

static uint8_t *slot(const struct side *s, unsigned q, unsigned n)
{
	return s->mem + ((size_t)q * RECEIVES + n) * SLOT_BYTES;
}

/* What the initiator's requests of this queue write, read and add to, at the target. */
static uint64_t target_at(const struct side *s, unsigned q)
{
	return s->peer.at + ((uint64_t)QPS * RECEIVES + q) * SLOT_BYTES;
}

static uint64_t counter_at(const struct side *s, unsigned q)
{
	return s->peer.at + ((uint64_t)QPS * RECEIVES + QPS) * SLOT_BYTES + q * sizeof(uint64_t);
}

static void side_open(struct side *s, const char *device)
{
	size_t bytes = (QPS * RECEIVES + QPS + 1) * (size_t)SLOT_BYTES;
	struct hello mine = {0};

	device_port_open(&s->port, device, -1);
	s->mem = calloc(1, bytes);
	s->pd = ibv_alloc_pd(s->port.ctx);
	s->channel = ibv_create_comp_channel(s->port.ctx);
	s->cq = ibv_create_cq(s->port.ctx, QPS * (RECEIVES + DEPTH), NULL, s->channel, 0);
	if (!s->mem || !s->pd || !s->channel || !s->cq)
		device_die("memory, PD or CQ: %m");
	s->mr = ibv_reg_mr(s->pd, s->mem, bytes,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!s->mr)
		device_die("MR: %m");
	for (unsigned q = 0; q < QPS; q++) {
		struct ibv_qp_init_attr init = {
			.cap = {.max_send_wr = DEPTH,
				.max_recv_wr = RECEIVES,
				.max_send_sge = 1,
				.max_recv_sge = 1},
			.qp_type = IBV_QPT_RC,
			.send_cq = s->cq,
			.recv_cq = s->cq,
		};

		s->queue[q].qp = ibv_create_qp(s->pd, &init);
		if (!s->queue[q].qp)
			device_die("QP: %m");
		device_qp_init(s->queue[q].qp, &device_default_connection);
		mine.address[q] = device_address(&s->port, s->queue[q].qp, 100);
	}
	mine.at = (uintptr_t)s->mem;
	mine.rkey = s->mr->rkey;
	if (write(s->sock, &mine, sizeof(mine)) != sizeof(mine) ||
	    read(s->sock, &s->peer, sizeof(s->peer)) != sizeof(s->peer))
		device_die("the other side has gone");
	for (unsigned q = 0; q < QPS; q++)
		device_qp_connect(&s->port, s->queue[q].qp, &device_default_connection,
				  &s->peer.address[q], 100);
}

/* Both sides are where they meet. */
static void meet(const struct side *s)
{
	char c = 0;

	if (write(s->sock, &c, 1) != 1 || read(s->sock, &c, 1) != 1)
		device_die("the other side has gone");
}

/* ---- the target ---- */

static void post_receive(struct side *s, unsigned q, unsigned n)
{
	struct ibv_sge sge = {(uintptr_t)slot(s, q, n), SLOT_BYTES, s->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = q * RECEIVES + n, .sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(s->queue[q].qp, &wr, &bad))
		device_die("ibv_post_recv: %m");
}

static int take_message(struct side *s, const struct ibv_wc *wc)
{
	unsigned q = (unsigned)wc->wr_id / RECEIVES;

	if (wc->status || ntohl(wc->imm_data) != s->queue[q].sent) {
		printf("queue %u: message %u (%s) where %u was due\n", q, ntohl(wc->imm_data),
		       ibv_wc_status_str(wc->status), s->queue[q].sent);
		return 1;
	}
	atomic_store(&s->taken[q], ++s->queue[q].sent);
	post_receive(s, q, (unsigned)wc->wr_id % RECEIVES);
	return 0;
}

static void take_event(struct side *s)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(s->channel, &cq, &context))
		device_die("ibv_get_cq_event: %m");
	ibv_ack_cq_events(cq, 1);
}

/* Until the initiator closes its socket.  It sleeps for messages, so that the threads of the initiator
 * have the CPUs. */
static int target(struct side *s, const char *device)
{
	struct pollfd p[2] = {{.fd = s->sock, .events = POLLIN}, {.events = POLLIN}};
	struct ibv_wc wc;
	int failed = 0;

	side_open(s, device);
	for (unsigned q = 0; q < QPS; q++)
		for (unsigned n = 0; n < RECEIVES; n++)
			post_receive(s, q, n);
	meet(s);
	p[1].fd = s->channel->fd;
	do {
		if (p[1].revents)
			take_event(s);
		if (ibv_req_notify_cq(s->cq, 0))
			device_die("ibv_req_notify_cq: %m");
		while (!failed && ibv_poll_cq(s->cq, 1, &wc) > 0)
			failed = take_message(s, &wc);
	} while (!failed && poll(p, 2, -1) > 0 && !p[0].revents);
	return failed;
}

/* ---- the initiator ---- */

static void post(struct side *s, unsigned q)
{
	static const uint32_t lengths[] = {8, 64, 3000, SLOT_BYTES};
	static const enum ibv_wr_opcode opcodes[KINDS] = {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
							  IBV_WR_RDMA_READ,
							  IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct queue *u = &s->queue[q];
	struct request *r = &u->request[u->posted % DEPTH];
	uint8_t *at = slot(s, q, (unsigned)(u->posted % DEPTH));
	struct ibv_sge sge = {(uintptr_t)at, lengths[any(4)], s->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = u->posted << 8 | q, .sg_list = &sge, .num_sge = 1};

	*r = (struct request){.kind = any(KINDS), .signaled = any(4) || u->posted % 8 == 7};
	wr.opcode = opcodes[r->kind];
	wr.send_flags = r->signaled ? IBV_SEND_SIGNALED : 0;
	wr.wr.rdma.remote_addr = target_at(s, q);
	wr.wr.rdma.rkey = (uint32_t)s->peer.rkey;
	switch (r->kind) {
	case SEND:
		wr.imm_data = htonl(u->sent++);
		break;
	case WRITE:
		u->written = u->posted + 1;
		memcpy(at, &u->written, sizeof(u->written));
		break;
	case READ:
		r->expected = u->written;
		break;
	default:
		r->expected = u->added++;
		sge.length = sizeof(uint64_t);
		wr.wr.atomic.remote_addr = counter_at(s, q);
		wr.wr.atomic.compare_add = 1;
		wr.wr.atomic.rkey = (uint32_t)s->peer.rkey;
		break;
	}
	u->posted++;
	if (ibv_post_send(u->qp, &wr, &bad))
		device_die("ibv_post_send: %m");
}

static int check_result(const struct side *s, unsigned q, uint64_t n)
{
	const struct queue *u = &s->queue[q];
	const struct request *r = &u->request[n % DEPTH];
	uint64_t got;

	memcpy(&got, slot(s, q, (unsigned)(n % DEPTH)), sizeof(got));
	if (got == r->expected || (r->kind != READ && r->kind != ADD) ||
	    (r->kind == READ && got > r->expected && got <= u->written))
		return 0;
	printf("queue %u: %s %llu found %llu in place of %llu\n", q,
	       r->kind == READ ? "READ" : "atomic", (unsigned long long)n, (unsigned long long)got,
	       (unsigned long long)r->expected);
	return 1;
}

static int take_completion(struct side *s, const struct ibv_wc *wc)
{
	unsigned q = wc->wr_id & 0xff;
	struct queue *u = &s->queue[q];
	uint64_t due = u->done;

	while (!u->request[due % DEPTH].signaled)
		due++;
	if (wc->status || wc->wr_id >> 8 != due) {
		printf("queue %u: completion of %llu (kind %d, %s) where %llu (kind %d) was due\n",
		       q, (unsigned long long)wc->wr_id >> 8,
		       u->request[(wc->wr_id >> 8) % DEPTH].kind, ibv_wc_status_str(wc->status),
		       (unsigned long long)due, u->request[due % DEPTH].kind);
		return 1;
	}
	for (; u->done <= due; u->done++)
		if (check_result(s, q, u->done))
			return 1;
	return 0;
}

/* Takes what there is.  Returns how many, or -1 after a fault. */
static int take_all(struct side *s)
{
	struct ibv_wc wc[8];
	int n, taken = 0;

	while ((n = ibv_poll_cq(s->cq, 8, wc)) > 0)
		for (int i = 0; i < n; i++, taken++)
			if (take_completion(s, &wc[i]))
				return -1;
	return taken;
}

static void modify(struct ibv_qp *qp, enum ibv_qp_state state, bool notify)
{
	struct ibv_qp_attr attr = {.qp_state = state, .en_sqd_async_notify = notify};
	int err =
		ibv_modify_qp(qp, &attr, IBV_QP_STATE | (notify ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0));

	if (err)
		device_die("ibv_modify_qp: %s", strerror(err));
}

/* Stops the queue pair and lets it go on. */
static int drain(struct side *s, unsigned q)
{
	struct pollfd p = {.fd = s->port.ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	uint64_t done, until;

	modify(s->queue[q].qp, IBV_QPS_SQD, true);
	if (poll(&p, 1, 20000) != 1 || ibv_get_async_event(s->port.ctx, &event) ||
	    event.event_type != IBV_EVENT_SQ_DRAINED) {
		printf("queue %u: no SQ_DRAINED\n", q);
		return 1;
	}
	ibv_ack_async_event(&event);
	if (take_all(s) < 0)
		return 1;
	done = s->queue[q].done;
	for (until = device_now_ns() + LOOK_AFTER; device_now_ns() < until;)
		if (take_all(s) < 0)
			return 1;
	if (s->queue[q].done != done) {
		printf("queue %u: completion of %llu after SQ_DRAINED\n", q,
		       (unsigned long long)s->queue[q].done - 1);
		return 1;
	}
	modify(s->queue[q].qp, IBV_QPS_RTS, false);
	return 0;
}

static struct ibv_cq *empty;
static _Atomic(bool) over;

static void *poll_empty(void *none)
{
	struct ibv_wc wc;

	while (!atomic_load(&over))
		(void)ibv_poll_cq(empty, 1, &wc);
	return none;
}

/* Until about the time when the other thread takes the acknowledgement of the last message. */
static void pause_for_answer(const struct side *s, unsigned q)
{
	while (atomic_load(&s->taken[q]) != s->queue[q].sent)
		sched_yield();
	for (uint32_t pause = any(1u << any(14)); pause; pause--)
		atomic_signal_fence(memory_order_seq_cst);
}

static int drive(struct side *s, uint64_t ns)
{
	uint64_t end = device_now_ns() + ns, last = device_now_ns(), total = 0;

	while (device_now_ns() < end) {
		unsigned q = any(QPS);
		int n;

		for (uint32_t burst = 1 + any(3); burst; burst--) {
			if (s->queue[q].posted - s->queue[q].done == DEPTH)
				break;
			post(s, q);
			if (any(2))
				pause_for_answer(s, q);
		}
		n = take_all(s);
		if (n < 0 || (!any(400) && drain(s, q)))
			return 1;
		total += (unsigned)n;
		if (n)
			last = device_now_ns();
		if (device_now_ns() - last > PATIENCE) {
			printf("nothing completes\n");
			return 1;
		}
	}
	printf("%llu completions in order\n", (unsigned long long)total);
	return 0;
}

static int initiator(struct side *s, const char *device, uint64_t ns)
{
	pthread_t thread;
	int failed;

	side_open(s, device);
	empty = ibv_create_cq(s->port.ctx, 1, NULL, NULL, 0);
	if (!empty || pthread_create(&thread, NULL, poll_empty, NULL))
		device_die("a second poller: %m");
	meet(s);
	failed = drive(s, ns);
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	return failed;
}

int main(int argc, char **argv)
{
	static struct side side;
	int sock[2], status, failed;
	pid_t child;

	if (argc != 4 || socketpair(AF_UNIX, SOCK_STREAM, 0, sock))
		device_die("order DEVICE SECONDS SEED");
	side.taken = mmap(NULL, sizeof(*side.taken) * QPS, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (side.taken == MAP_FAILED)
		device_die("mmap: %m");
	child = fork();
	if (child < 0)
		device_die("fork: %m");
	side.sock = sock[!child];
	close(sock[!!child]);
	if (!child)
		return target(&side, argv[1]);
	random_state = strtoull(argv[3], NULL, 0);
	failed = initiator(&side, argv[1], strtoull(argv[2], NULL, 0) * 1000000000u);
	close(side.sock);
	if (waitpid(child, &status, 0) != child || status)
		failed = 1;
	return failed;
}
