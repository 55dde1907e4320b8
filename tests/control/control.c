// SPDX-License-Identifier: BSD-2-Clause
/*
 * The control path against the data path: while a connection's threads post and poll, others
 * modify, query, resize, register and destroy.
 *
 *     control DEVICE KIND one|two MESSAGES CONTROLS SEED
 *
 * Every request must complete, every message arrive whole; how long that takes does not matter.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "side.h"

/* Without any progress for so long, something hangs. */
#define HANG_SECONDS 60

static const struct side_kind kinds[] = {
	{"rc", IBV_QPT_RC, false, false},	{"uc", IBV_QPT_UC, false, false},
	{"ud", IBV_QPT_UD, false, false},	{"rc-srq", IBV_QPT_RC, true, false},
	{"rc-events", IBV_QPT_RC, false, true}, {"uc-events", IBV_QPT_UC, false, true},
	{"ud-events", IBV_QPT_UD, false, true}, {"rc-srq-events", IBV_QPT_RC, true, true},
	{"uc-srq", IBV_QPT_UC, true, false},
};

/* ---- what the control path does ---- */

static void qp_to_state(struct control_side *s, struct ibv_qp_attr *attr, int mask, int want)
{
	int err = ibv_modify_qp(s->qp, attr, mask);

	if (err != want)
		device_die("ibv_modify_qp: %s instead of %s", strerror(err), strerror(want));
}

static void modify_in_vain(struct control_side *s, uint64_t *random)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD};

	(void)random;
	qp_to_state(s, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE, EINVAL);
}

static void modify_live(struct control_side *s, uint64_t *random)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .qkey = DEVICE_QKEY,
				   .min_rnr_timer = (uint8_t)(1 + side_random(random, 4))};
	int extra = s->kind->type == IBV_QPT_RC	  ? IBV_QP_MIN_RNR_TIMER
		    : s->kind->type == IBV_QPT_UD ? IBV_QP_QKEY
						  : 0;

	qp_to_state(s, &attr, IBV_QP_STATE | extra, 0);
}

/* What is posted meanwhile waits, and goes on. */
static void modify_stop(struct control_side *s, uint64_t *random)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};

	qp_to_state(s, &attr, IBV_QP_STATE, 0);
	for (uint32_t n = side_random(random, 10); n; n--)
		sched_yield();
	attr.qp_state = IBV_QPS_RTS;
	qp_to_state(s, &attr, IBV_QP_STATE, 0);
}

static void query_objects(struct control_side *s, uint64_t *random)
{
	struct ibv_qp_init_attr init;
	struct ibv_srq_attr srq;
	struct ibv_qp_attr attr;

	(void)random;
	if (ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init) || attr.qp_state != IBV_QPS_RTS)
		device_die("ibv_query_qp: state %d", (int)attr.qp_state);
	if (s->srq && ibv_query_srq(s->srq, &srq))
		device_die("ibv_query_srq: %m");
}

/*
 * libmlx5 tells the device with the next completion only that it has taken the entry that marks a
 * change of rings.  So there is a completion between two changes, lest the marks fill the ring.
 */
static void resize_cq(struct control_side *s, uint64_t *random)
{
	int err = ibv_resize_cq(s->cq[0], (int)(SLOTS << side_random(random, 4)));
	uint64_t sent = atomic_load(&s->sent);

	/* once all is sent there is no completion between them any more */
	if (err && err != EINVAL)
		device_die("ibv_resize_cq: %s", strerror(err));
	while (atomic_load(&s->sent) == sent && !atomic_load(&s->all_sent))
		sched_yield();
}

/* Of the memory that is in use at this moment. */
static void reregister_region(struct control_side *s, uint64_t *random)
{
	size_t off = (size_t)side_random(random, SIDE_ALL) * SLOT_BYTES;
	struct ibv_mr *mr = ibv_reg_mr(s->pd, s->mem + off, SLOT_BYTES,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	if (!mr || ibv_dereg_mr(mr))
		device_die("a region cannot be registered or deregistered: %m");
}

/* Another queue pair in the same domain, connected with itself, that moves something. */
static void use_another(struct control_side *s, uint64_t *random)
{
	uint8_t *mem = calloc(2, 64);
	struct ibv_mr *mr =
		ibv_reg_mr(s->pd, mem, 128, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_cq *cq = ibv_create_cq(s->port.ctx, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = mr && cq ? ibv_create_qp(s->pd, &init) : NULL;
	struct device_address self;
	struct ibv_sge sge = {(uintptr_t)mem, 64, mr ? mr->lkey : 0};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {(uintptr_t)mem + 64, mr ? mr->rkey : 0}};
	struct ibv_wc wc;

	if (!qp)
		device_die("another QP cannot be made: %m");
	memset(mem, (int)side_random(random, 255) + 1, 64);
	self = device_address(&s->port, qp, 7);
	device_qp_init(qp, &device_default_connection);
	device_qp_connect(&s->port, qp, &device_default_connection, &self, 7);
	if (ibv_post_send(qp, &wr, &bad))
		device_die("ibv_post_send: %m");
	while (!ibv_poll_cq(cq, 1, &wc))
		sched_yield();
	if (wc.status || memcmp(mem, mem + 64, 64) != 0)
		device_die("a write of another QP: %s", ibv_wc_status_str(wc.status));
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dereg_mr(mr))
		device_die("another QP cannot be destroyed: %m");
	free(mem);
}

#define PHASE 16u

/*
 * One act again and again, until the data has gone on for a while: the next act might do, as a side
 * effect, what this one left undone.
 */
void *side_control(void *side)
{
	static void (*const acts[])(struct control_side * s, uint64_t * random) = {
		modify_in_vain, modify_in_vain, modify_live,	   modify_stop,
		query_objects,	resize_cq,	reregister_region, use_another,
	};
	struct control_side *s = side;
	uint64_t random = s->seed * 3 + 2;

	while (!atomic_load(&s->over)) {
		unsigned act = side_random(&random, sizeof(acts) / sizeof(*acts));
		uint64_t end = atomic_load(&s->sent) + PHASE;

		do {
			acts[act](s, &random);
			atomic_fetch_add(&s->done, 1);
		} while (atomic_load(&s->sent) < end && !atomic_load(&s->all_sent));
	}
	return NULL;
}

/* ---- a process ---- */

static struct control_side sides[2];

static void *watch_progress(void *arg)
{
	uint64_t before = UINT64_MAX;

	(void)arg;
	for (unsigned quiet = 0; quiet < HANG_SECONDS; quiet++) {
		uint64_t now = atomic_load(&side_progress);

		if (now != before)
			quiet = 0;
		before = now;
		sleep(1);
	}
	for (unsigned i = 0; i < 2; i++)
		fprintf(stderr, "hung: side %u: %llu sent, %llu received, %llu controls\n", i,
			(unsigned long long)sides[i].sent, (unsigned long long)sides[i].received,
			(unsigned long long)sides[i].done);
	_exit(1);
}

static void start_thread(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	int err = pthread_create(thread, NULL, fn, arg);

	if (err)
		device_die("pthread_create: %s", strerror(err));
}

/* Tells the peer how many messages it sent, and is told; only then all can have arrived. */
static void *run_side(void *arg)
{
	struct control_side *s = arg;
	uint64_t sent, expected;

	side_connect(s);
	start_thread(&s->controller, side_control, s);
	start_thread(&s->receiver, side_receive, s);
	start_thread(&s->sender, side_send, s);
	pthread_join(s->sender, NULL);
	sent = s->sent;
	if (write(s->sock, &sent, sizeof(sent)) != sizeof(sent) ||
	    read(s->sock, &expected, sizeof(expected)) != sizeof(expected))
		device_die("the other side has gone");
	atomic_store(&s->expected, expected);
	pthread_join(s->receiver, NULL);
	/* The peer may still be waiting for what this side answers. */
	if (write(s->sock, &sent, sizeof(sent)) != sizeof(sent) ||
	    read(s->sock, &expected, sizeof(expected)) != sizeof(expected))
		device_die("the other side has gone");
	atomic_store(&s->over, true);
	pthread_join(s->controller, NULL);
	printf("side %d: %llu sent, %llu received, %llu controls\n", (int)(s - sides),
	       (unsigned long long)s->sent, (unsigned long long)s->received,
	       (unsigned long long)s->done);
	side_close(s);
	return NULL;
}

static void run_case(const char *device, unsigned first, unsigned n)
{
	pthread_t thread[2], watcher;

	start_thread(&watcher, watch_progress, NULL);
	for (unsigned i = first; i < first + n; i++) {
		side_open(&sides[i], device);
		start_thread(&thread[i], run_side, &sides[i]);
	}
	for (unsigned i = first; i < first + n; i++)
		pthread_join(thread[i], NULL);
}

static const struct side_kind *kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	device_die("no connection is called '%s'", name);
}

static int run_two(const char *device)
{
	pid_t child = fork();
	int status = 0;

	if (child < 0)
		device_die("fork: %m");
	run_case(device, child ? 0 : 1, 1);
	if (!child)
		return 0;
	if (waitpid(child, &status, 0) != child || status)
		device_die("the other process ended with status 0x%x", status);
	return 0;
}

int main(int argc, char **argv)
{
	int pair[2];

	if (argc != 7 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		device_die("usage: control DEVICE KIND one|two MESSAGES CONTROLS SEED");
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (unsigned i = 0; i < 2; i++) {
		sides[i].kind = kind_of(argv[2]);
		sides[i].sock = pair[i];
		sides[i].messages = (uint32_t)strtoul(argv[4], NULL, 10);
		sides[i].controls = (uint32_t)strtoul(argv[5], NULL, 10);
		sides[i].seed = strtoull(argv[6], NULL, 10) + i;
		atomic_store(&sides[i].expected, UINT64_MAX);
	}
	if (!strcmp(argv[3], "two"))
		return run_two(argv[1]);
	run_case(argv[1], 0, 2);
	return 0;
}
