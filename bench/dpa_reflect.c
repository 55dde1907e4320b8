// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames that come back: a generator keeps so many under way, to a reflector of verbs (a thread that polls
 * its raw packet queue pair), and to device code of the DPA that does the same, checked and not.  They take
 * turns in short bursts.  The generator is a thread of their process (near), or another process (far).
 *
 * dpa_reflect DEVICE near|far: prints "name value k/s" lines.
 */
#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"
#include "dpa_reflect.h"
#include "mac_rule.h"
#include "verbs_device.h"

#define WINDOW	 32u
#define BATCH	 16
#define BURST_NS 40000000u
#define BURSTS	 7u
#define WAIT_NS	 30000000000u
#define MATCH_TO 8u /* the destination address */

extern struct flexio_app *dpa_reflect_code, *dpa_reflect_code_unchecked;
extern flexio_func_t reflect, reflect_unchecked;

enum kind { VERBS, CHECKED, UNCHECKED, KINDS };

static const char *const kind_names[KINDS] = {"verbs", "checked", "unchecked"};
static const uint32_t sizes[] = {64, 1500};

#define SIZES (sizeof(sizes) / sizeof(*sizes))

/* What both processes see. */
static struct shared {
	_Atomic(int) ready;
	_Atomic(int) active; /* whose turn it is: others leave the processors alone */
	sem_t verbs;	     /* begins a turn of the thread of verbs */
} * shared;

/* ---- queues of verbs ---- */

struct end {
	struct ibv_cq *send_cq, *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	unsigned char memory[SLOTS][FRAME_BYTES];
	unsigned under_way; /* sends without a completion */
};

static void end_open(struct end *e, struct ibv_context *ctx)
{
	struct ibv_qp_init_attr init = {.cap = {SLOTS, SLOTS, 1, 1, 0},
					.qp_type = IBV_QPT_RAW_PACKET};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	CHECK(pd);
	CHECK((e->cq = init.recv_cq = ibv_create_cq(ctx, SLOTS, NULL, NULL, 0)));
	CHECK((e->send_cq = init.send_cq = ibv_create_cq(ctx, SLOTS, NULL, NULL, 0)));
	CHECK((e->mr = ibv_reg_mr(pd, e->memory, sizeof(e->memory), IBV_ACCESS_LOCAL_WRITE)));
	CHECK((e->qp = ibv_create_qp(pd, &init)));
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE));
}

static void mac_of(uint8_t mac[6], unsigned who)
{
	memcpy(mac, (uint8_t[]){2, 0, 0, 0, 1, (uint8_t)who}, 6);
}

static void end_rule(struct end *e, unsigned who)
{
	uint8_t mac[6];

	mac_of(mac, who);
	CHECK(mac_rule(e->qp, mac));
}

/* Posts receives for these slots in one list. */
static void end_receive(struct end *e, const uint64_t *slots, int n)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	for (int i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){(uintptr_t)e->memory[slots[i]], FRAME_BYTES, e->mr->lkey};
		wr[i] = (struct ibv_recv_wr){.wr_id = slots[i],
					     .next = i + 1 < n ? &wr[i + 1] : NULL,
					     .sg_list = &sge[i],
					     .num_sge = 1};
	}
	CHECK(!n || !ibv_post_recv(e->qp, wr, &bad));
}

/* Takes the completions of sends, if there are any. */
static void end_reap(struct end *e)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(e->send_cq, BATCH, wc);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		CHECK(wc[i].status == IBV_WC_SUCCESS);
		e->under_way -= (unsigned)wc[i].wr_id;
	}
}

/* Sends the slots in one list, whose last completes; waits for nothing while there is room. */
static void end_send(struct end *e, const uint64_t *slots, int n, uint32_t bytes)
{
	struct ibv_send_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	for (int i = 0; i < n; i++) {
		sge[i] = (struct ibv_sge){(uintptr_t)e->memory[slots[i]], bytes, e->mr->lkey};
		wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)n,
					     .next = i + 1 < n ? &wr[i + 1] : NULL,
					     .sg_list = &sge[i],
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND,
					     .send_flags = i + 1 < n ? 0 : IBV_SEND_SIGNALED};
	}
	if (!n)
		return;
	do
		end_reap(e);
	while (e->under_way + (unsigned)n > SLOTS);
	CHECK(!ibv_post_send(e->qp, wr, &bad));
	e->under_way += (unsigned)n;
}

static int end_take(struct end *e, uint64_t *slots, uint32_t *bytes)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(e->cq, BATCH, wc);

	CHECK(n >= 0);
	for (int i = 0; i < n; i++) {
		CHECK(wc[i].status == IBV_WC_SUCCESS);
		slots[i] = wc[i].wr_id;
		*bytes = wc[i].byte_len;
	}
	return n;
}

static void end_receive_all(struct end *e, uint64_t first)
{
	for (uint64_t i = first; i < SLOTS; i++)
		end_receive(e, &i, 1);
}

/* ---- the reflector of verbs ---- */

static void *verbs_reflect(void *arg)
{
	struct end *e = arg;
	uint64_t slots[BATCH];
	uint32_t bytes = 0;

	for (;;) {
		int n;

		while (atomic_load(&shared->active) != VERBS)
			CHECK(!sem_wait(&shared->verbs));
		n = end_take(e, slots, &bytes);
		for (int i = 0; i < n; i++) {
			uint8_t *frame = e->memory[slots[i]], mac[6];

			memcpy(mac, frame, 6);
			memcpy(frame, frame + 6, 6);
			memcpy(frame + 6, mac, 6);
		}
		end_send(e, slots, n, bytes);
		end_receive(e, slots, n);
	}
	return NULL;
}

static void rule_of(struct ibv_context *ctx, struct mlx5dv_devx_obj *tir, unsigned who)
{
	struct {
		struct mlx5dv_flow_match_parameters p;
		uint8_t bytes[64];
	} mask = {.p.match_sz = 64}, value = {.p.match_sz = 64};
	struct mlx5dv_dr_domain *d = mlx5dv_dr_domain_create(ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	struct mlx5dv_dr_action *to = mlx5dv_dr_action_create_dest_devx_tir(tir);
	struct mlx5dv_dr_table *table;
	struct mlx5dv_dr_matcher *matcher;

	memset(mask.bytes + MATCH_TO, 0xff, 6);
	mac_of(value.bytes + MATCH_TO, who);
	CHECK(d && to);
	CHECK((table = mlx5dv_dr_table_create(d, 0)));
	CHECK((matcher = mlx5dv_dr_matcher_create(table, (uint16_t)who, 1, &mask.p)));
	CHECK(mlx5dv_dr_rule_create(matcher, &value.p, 1, &to));
}

static struct ibv_context *context_of(const char *name)
{
	struct device_port port;

	device_port_open(&port, name, -1);
	CHECK(port.ethernet);
	return port.ctx;
}

static void reflectors_up(const char *device)
{
	static struct end verbs;
	pthread_t thread;
	struct ibv_context *ctx = context_of(device);

	end_open(&verbs, ctx);
	end_receive_all(&verbs, 0);
	end_rule(&verbs, VERBS);
	CHECK(!pthread_create(&thread, NULL, verbs_reflect, &verbs));
	rule_of(ctx, dpa_reflector_up(ctx, dpa_reflect_code, (void (*)(void))reflect), CHECKED);
	rule_of(ctx,
		dpa_reflector_up(ctx, dpa_reflect_code_unchecked,
				 (void (*)(void))reflect_unchecked),
		UNCHECKED);
	atomic_store(&shared->ready, 1);
}

/* ---- the generator ---- */

/* Are the addresses exchanged? */
static bool is_from(const uint8_t *frame, enum kind kind)
{
	uint8_t mac[6];

	mac_of(mac, KINDS);
	if (memcmp(frame, mac, sizeof(mac)) != 0)
		return false;
	mac_of(mac, kind);
	return !memcmp(frame + sizeof(mac), mac, sizeof(mac));
}

/* Frames lie in the first slots, which receive nothing. */
static double burst(struct end *e, enum kind kind, uint32_t bytes)
{
	uint64_t slots[BATCH], from[BATCH], begin, now, count = 0, heard;
	unsigned under_way = 0;
	uint32_t came;

	for (uint64_t i = 0; i < BATCH; i++) {
		from[i] = i;
		mac_of(e->memory[i], kind);
		mac_of(e->memory[i] + 6, KINDS);
		memcpy(e->memory[i] + 12, "\x88\xb5", 2);
	}
	atomic_store(&shared->active, kind);
	if (kind == VERBS)
		CHECK(!sem_post(&shared->verbs));
	usleep(2000);
	begin = now = heard = device_now_ns();
	for (; under_way < WINDOW; under_way += BATCH)
		end_send(e, from, BATCH, bytes);
	while (under_way) {
		int n = end_take(e, slots, &came);

		now = n || !(count & 63) ? device_now_ns() : now;
		heard = n ? now : heard;
		if (!n) {
			now = device_now_ns();
			CHECK_SAY(now - heard < WAIT_NS, "a frame to %s is lost", kind_names[kind]);
			continue;
		}
		CHECK(came == bytes);
		for (int i = 0; i < n; i++)
			CHECK(is_from(e->memory[slots[i]], kind));
		end_receive(e, slots, n);
		count += (unsigned)n;
		if (now - begin < BURST_NS)
			end_send(e, from, n, bytes);
		else
			under_way -= (unsigned)n;
	}
	return (double)count * 1e6 / (double)(device_now_ns() - begin);
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void generate(const char *device)
{
	static struct end e;
	double rates[KINDS][BURSTS];

	while (!atomic_load(&shared->ready))
		usleep(1000);
	end_open(&e, context_of(device));
	end_receive_all(&e, BATCH);
	end_rule(&e, KINDS);
	for (unsigned s = 0; s < SIZES; s++) {
		for (unsigned b = 0; b < BURSTS; b++)
			for (unsigned k = 0; k < KINDS; k++)
				rates[k][b] = burst(&e, (enum kind)k, sizes[s]);
		for (unsigned k = 0; k < KINDS; k++) {
			qsort(rates[k], BURSTS, sizeof(double), compare);
			printf("reflect_%u_%s %.1f k/s\n", sizes[s], kind_names[k],
			       rates[k][BURSTS / 2]);
		}
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	CHECK(argc == 3);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED && !sem_init(&shared->verbs, 1, 0));
	atomic_store(&shared->active, KINDS);
	if (!strcmp(argv[2], "near")) {
		reflectors_up(argv[1]);
		generate(argv[1]);
		_exit(0);
	}
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		generate(argv[1]);
		_exit(0);
	}
	reflectors_up(argv[1]);
	CHECK(waitpid(child, &status, 0) == child);
	_exit(status != 0);
}
