// SPDX-License-Identifier: BSD-2-Clause
/* The host program of tests/flexio/emulation; the argument is the name of a case.  Here is the device's side. */
#include "host.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENT_S 60
#define MOMENT_US 20000
#define LOG_DEPTH 4u
#define CQE_BYTES 64u

uint32_t object_status;

struct ibv_context *device_open(const char *name)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = mlx5dv_open_device(list[i], &attr);
	CHECK(ctx);
	ibv_free_device_list(list);
	return ctx;
}

uint64_t call(struct flexio_process *p, flexio_func_t *f, uint64_t a, uint64_t b)
{
	uint64_t value = UINT64_MAX;

	OK(flexio_process_call(p, f, &value, a, b));
	return value;
}

/* ---- objects ---- */

struct mlx5dv_devx_obj *object_create(struct ibv_context *ctx, uint32_t type, uint8_t *in,
				      size_t bytes, uint32_t *number)
{
	uint8_t out[CMD_OUT_BYTES] = {0};
	struct mlx5dv_devx_obj *obj;

	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_GENERAL_OBJECT);
	prm_set(in, GENERAL_IN_TYPE, type);
	obj = mlx5dv_devx_obj_create(ctx, in, bytes, out, sizeof(out));
	object_status = prm_get32(out, PRM_FIELD(0, 8));
	if (number)
		*number = prm_get32(out, GENERAL_OUT_ID);
	return obj;
}

void object_query(struct mlx5dv_devx_obj *obj, uint32_t type, uint32_t number, uint8_t *out,
		  size_t bytes)
{
	uint8_t in[CMD_IN_BYTES] = {0};

	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_GENERAL_OBJECT);
	prm_set(in, GENERAL_IN_TYPE, type);
	prm_set(in, GENERAL_IN_ID, number);
	CHECK(!mlx5dv_devx_obj_query(obj, in, sizeof(in), out, bytes));
}

static struct mlx5dv_devx_obj *function_create(struct ibv_context *ctx)
{
	uint8_t in[EMULATION_IN_BYTES] = {0};

	prm_set(in, EMULATION_VHCA, VHCA);
	return object_create(ctx, GENERAL_VIRTIO_NET_EMULATION, in, sizeof(in), NULL);
}

struct mlx5dv_devx_obj *context_create(struct ibv_context *ctx, uint32_t device, uint32_t queue,
				       uint32_t cqn, uint32_t *handle)
{
	uint8_t in[DB_CQ_BYTES] = {0}, out[DB_CQ_BYTES] = {0};
	struct mlx5dv_devx_obj *obj;
	uint32_t number;

	prm_set(in, DB_CQ_KIND, EMULATED_VIRTIO_NET);
	prm_set(in, DB_CQ_DEVICE, device);
	prm_set(in, DB_CQ_QUEUE, queue);
	prm_set(in, DB_CQ_CQN, cqn);
	obj = object_create(ctx, GENERAL_DB_CQ_MAPPING, in, sizeof(in), &number);
	if (!obj)
		return NULL;
	object_query(obj, GENERAL_DB_CQ_MAPPING, number, out, sizeof(out));
	CHECK(prm_get(out, DB_CQ_DEVICE) == VHCA && prm_get(out, DB_CQ_QUEUE) == queue &&
	      prm_get(out, DB_CQ_CQN) == cqn);
	*handle = prm_get32(out, DB_CQ_HANDLE);
	return obj;
}

struct mlx5dv_devx_obj *eq_create(struct ibv_context *ctx, uint32_t device, uint32_t vector,
				  uint32_t *eqn)
{
	uint8_t in[EMULATED_EQ_BYTES] = {0};

	prm_set(in, EMULATED_EQ_DEVICE, device);
	prm_set(in, EMULATED_EQ_VECTOR, vector);
	return object_create(ctx, GENERAL_EMULATED_EQ, in, sizeof(in), eqn);
}

/* ---- the bench ---- */

void cq_make(struct bench *b, struct flexio_cq_attr *attr, struct bell *bell, struct flexio_cq **cq)
{
	bell->entries = 1u << LOG_DEPTH;
	OK(flexio_buf_dev_alloc(b->p, CQE_BYTES << LOG_DEPTH, &bell->ring));
	OK(flexio_buf_dev_memset(b->p, 0xff, CQE_BYTES << LOG_DEPTH, bell->ring));
	OK(flexio_buf_dev_alloc(b->p, 8, &bell->record));
	OK(flexio_buf_dev_memset(b->p, 0, 8, bell->record));
	attr->uar_id = flexio_uar_get_id(flexio_process_get_uar(b->p));
	attr->log_cq_depth = LOG_DEPTH;
	attr->cq_ring_qmem =
		(struct flexio_qmem){.memtype = FLEXIO_MEMTYPE_DPA, .daddr = bell->ring};
	attr->cq_dbr_daddr = bell->record;
	OK(flexio_cq_create(b->p, NULL, attr, cq));
	bell->cqn = flexio_cq_get_cq_num(*cq);
}

static void answers_up(struct bench *b)
{
	struct flexio_cq_attr attr = {
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_MSIX_EMULATED_CQ,
		.always_armed = 1,
		.overrun_ignore = 1,
	};
	struct bell none = {0};

	b->eq = eq_create(b->ctx, VHCA, 0, &b->eqn);
	CHECK(b->eq);
	attr.emulated_eqn = b->eqn;
	cq_make(b, &attr, &none, &b->answers);
}

/* The first one by a command, the other one by the library. */
static void doorbell_lead(struct bench *b, unsigned n)
{
	struct doorbell *d = &b->bell[n];

	if (n) {
		OK(flexio_emu_db_to_cq_map(b->ctx, VHCA, n, d->cq, &d->mapped));
		d->handle = flexio_emu_db_to_cq_ctx_get_id(d->mapped);
		CHECK(d->handle != UINT32_MAX);
		return;
	}
	d->context = context_create(b->ctx, VHCA, n, d->cqn, &d->handle);
	CHECK_SAY(d->context, "%m, status 0x%x", object_status);
}

static void doorbell_up(struct bench *b, unsigned n, bool rearms, bool answers)
{
	struct flexio_event_handler_attr handler = {.host_stub_func = &serve};
	struct flexio_cq_attr attr = {0};
	struct doorbell *d = &b->bell[n];
	struct bell bell = {.rearms = rearms,
			    .answers = answers ? flexio_cq_get_cq_num(b->answers) : 0};

	OK(flexio_event_handler_create(b->p, &handler, &d->eh));
	attr.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD;
	attr.thread = flexio_event_handler_get_thread(d->eh);
	cq_make(b, &attr, &bell, &d->cq);
	d->cqn = (uint32_t)bell.cqn;
	doorbell_lead(b, n);
	bell.context = d->handle;
	OK(flexio_copy_from_host(b->p, &bell, sizeof(bell), &d->at));
	OK(flexio_event_handler_run(d->eh, d->at));
}

void bench_up(struct bench *b, bool rearms, bool answers)
{
	memset(b, 0, sizeof(*b));
	b->ctx = device_open("mlx5_1");
	OK(flexio_process_create(b->ctx, emulation_app, NULL, &b->p));
	b->function = function_create(b->ctx);
	CHECK_SAY(b->function, "%m, status 0x%x", object_status);
	answers_up(b);
	for (unsigned n = 0; n < DOORBELLS; n++)
		doorbell_up(b, n, rearms, answers);
}

void bench_down(struct bench *b)
{
	for (unsigned n = 0; n < DOORBELLS; n++) {
		if (n)
			OK(flexio_emu_db_to_cq_unmap(b->bell[n].mapped));
		else
			CHECK(!mlx5dv_devx_obj_destroy(b->bell[n].context));
		OK(flexio_cq_destroy(b->bell[n].cq));
		OK(flexio_event_handler_destroy(b->bell[n].eh));
	}
	OK(flexio_cq_destroy(b->answers));
	CHECK(!mlx5dv_devx_obj_destroy(b->eq));
	CHECK(!mlx5dv_devx_obj_destroy(b->function));
	OK(flexio_process_destroy(b->p));
	CHECK(!ibv_close_device(b->ctx));
}

void bell_takes(struct bench *b, unsigned n, uint64_t taken)
{
	time_t end = time(NULL) + PATIENT_S;

	while (bell_get(b, n, taken) < taken && time(NULL) < end)
		usleep(200);
	usleep(MOMENT_US);
	CHECK_SAY(bell_get(b, n, taken) == taken, "%lu, not %lu",
		  (unsigned long)bell_get(b, n, taken), (unsigned long)taken);
}

void bell_arm(struct bench *b, unsigned n)
{
	CHECK(!call(b->p, &arm_context, b->bell[n].cqn, b->bell[n].handle));
}

/* ---- cases ---- */

/* What is said of the function, in three places. */
static void facts(void)
{
	uint8_t in[CMD_IN_BYTES] = {0}, out[EMULATED_LIST + EMULATED_ENTRY_BYTES] = {0};
	uint8_t said[EMULATION_OUT_BYTES] = {0}, cap[HCA_CAP_OUT_BYTES] = {0};
	struct bench b;

	bench_up(&b, false, false);
	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_EMULATED_FUNCTIONS_INFO);
	prm_set(in, CMD_IN_OP_MOD, EMULATED_VIRTIO_NET);
	CHECK(!mlx5dv_devx_general_cmd(b.ctx, in, sizeof(in), out, sizeof(out)));
	CHECK(prm_get(out, EMULATED_COUNT) == 1);
	CHECK(prm_get(out + EMULATED_LIST, EMULATED_ENTRY_VHCA) == VHCA);
	object_query(b.function, GENERAL_VIRTIO_NET_EMULATION, VHCA, said, sizeof(said));
	CHECK(prm_get(said, EMULATION_BDF) == prm_get(out + EMULATED_LIST, EMULATED_ENTRY_BDF));
	CHECK(prm_get(said, EMULATION_ENABLED) &&
	      prm_get(said, EMULATION_NUM_QUEUES) == EMULATION_QUEUES);
	CHECK(prm_get(said, EMULATION_MSIX) == 1 && prm_get(said, EMULATION_STRIDE) == 4);
	memset(in, 0, sizeof(in));
	prm_set(in, CMD_IN_OPCODE, PRM_OP_QUERY_HCA_CAP);
	prm_set(in, CMD_IN_OP_MOD, HCA_CAP_VIRTIO_NET << 1);
	CHECK(!mlx5dv_devx_general_cmd(b.ctx, in, sizeof(in), cap, sizeof(cap)));
	CHECK(prm_get(cap + HCA_CAP_HEADER, PRM_FIELD(0x88, 24)) == EMULATION_QUEUES);
	CHECK(1u << prm_get(cap + HCA_CAP_HEADER, PRM_FIELD(0x33, 5)) ==
	      prm_get(said, EMULATION_STRIDE));
	CHECK(prm_get(cap + HCA_CAP_HEADER, PRM_FIELD(0xdd, 2)) == 3);
	bench_down(&b);
}

/* Armed or not, rung before and after, by bells alone. */
static void arming(void)
{
	struct driver d;
	struct bench b;

	bench_up(&b, false, false);
	driver_open(&d, 0);
	CHECK(call(b.p, &doorbell_value, b.bell[0].handle, 0) == 0);
	/* Rings that find nobody who has armed are one. */
	for (unsigned i = 0; i < 3; i++) {
		driver_ring(&d, 0, i);
		usleep(MOMENT_US);
	}
	/* The device notices the last one in its time, on a busy machine too. */
	usleep(10 * MOMENT_US);
	bell_takes(&b, 0, 0);
	bell_arm(&b, 0);
	bell_takes(&b, 0, 1);
	/* Armed, it fires once. */
	bell_arm(&b, 0);
	bell_takes(&b, 0, 1);
	driver_ring(&d, 0, 7);
	bell_takes(&b, 0, 2);
	driver_ring(&d, 0, 8);
	bell_takes(&b, 0, 2);
	bell_arm(&b, 0);
	bell_takes(&b, 0, 3);
	/* What was stored last, whether that has fired or not; of another context nothing. */
	CHECK(call(b.p, &doorbell_value, b.bell[0].handle, 0) == 8);
	CHECK(call(b.p, &doorbell_value, b.bell[1].handle, 0) == 0);
	CHECK(call(b.p, &doorbell_value, b.bell[1].handle + 1, 0) == 0);
	/* Queues do not hear each other's. */
	bell_arm(&b, 1);
	driver_ring(&d, 0, 1);
	bell_takes(&b, 1, 0);
	/* By force, armed or not. */
	for (unsigned i = 1; i <= 3; i++) {
		CHECK(!call(b.p, &trigger_context, b.bell[1].cqn, b.bell[1].handle));
		bell_takes(&b, 1, i);
	}
	/* What it was told by force is not told again. */
	bell_arm(&b, 1);
	bell_takes(&b, 1, 3);
	driver_close(&d);
	bench_down(&b);
}

/* Handles and queues that do not belong together. */
static void odd_bells(void)
{
	struct driver d;
	struct bench b;

	bench_up(&b, false, false);
	driver_open(&d, 0);
	for (uint32_t bit = 1; bit < 1u << 26; bit <<= 1) {
		call(b.p, &arm_context, b.bell[0].cqn, b.bell[0].handle ^ bit);
		call(b.p, &trigger_context, b.bell[0].cqn, b.bell[0].handle ^ bit);
		if (bit < 1u << 24)
			call(b.p, &trigger_context, b.bell[0].cqn ^ bit, b.bell[0].handle);
	}
	call(b.p, &trigger_context, b.bell[0].cqn, b.bell[1].handle);
	driver_ring(&d, 0, 1);
	/* Doorbells behind the last queue lead nowhere. */
	for (unsigned q = EMULATION_QUEUES; q < 1024; q += 37)
		driver_ring(&d, q, q);
	bell_takes(&b, 0, 0);
	bell_takes(&b, 1, 0);
	driver_close(&d);
	bench_down(&b);
}

#define REFUSED(made, err, status_)                                                        \
	do {                                                                               \
		CHECK(!(made));                                                            \
		CHECK_SAY(errno == (err) && object_status == (status_), "%m, status 0x%x", \
			  object_status);                                                  \
	} while (0)

static void refused(void)
{
	struct ibv_context *ib = device_open("mlx5_0");
	uint8_t in[DB_CQ_BYTES] = {0};
	struct ibv_cq *verbs;
	uint32_t number;
	struct bench b;

	bench_up(&b, false, false);
	verbs = ibv_create_cq(b.ctx, 4, NULL, NULL, 0);
	CHECK(verbs);
	/* The device of another port has none. */
	prm_set(in, EMULATION_VHCA, VHCA);
	REFUSED(object_create(ib, GENERAL_VIRTIO_NET_EMULATION, in, EMULATION_IN_BYTES, NULL),
		EREMOTEIO, 0x2);
	REFUSED(eq_create(ib, VHCA, 0, &number), EREMOTEIO, 0x2);
	/* One object of a function in a context; no other functions. */
	REFUSED(object_create(b.ctx, GENERAL_VIRTIO_NET_EMULATION, in, EMULATION_IN_BYTES, NULL),
		EREMOTEIO, 0x6);
	for (uint32_t bit = 1; bit < 1u << 16; bit <<= 1) {
		prm_set(in, EMULATION_VHCA, VHCA ^ bit);
		REFUSED(object_create(b.ctx, GENERAL_VIRTIO_NET_EMULATION, in, EMULATION_IN_BYTES,
				      NULL),
			EREMOTEIO, 0x3);
		REFUSED(context_create(b.ctx, VHCA ^ bit, 5, b.bell[0].cqn, &number), EREMOTEIO,
			0x3);
		REFUSED(eq_create(b.ctx, VHCA ^ bit, 0, &number), EREMOTEIO, 0x3);
	}
	REFUSED(eq_create(b.ctx, VHCA, 1, &number), EREMOTEIO, 0x3);
	/* Queues that there are not, or that have a context. */
	REFUSED(context_create(b.ctx, VHCA, EMULATION_QUEUES, b.bell[0].cqn, &number), EREMOTEIO,
		0x3);
	REFUSED(context_create(b.ctx, VHCA, UINT32_MAX, b.bell[0].cqn, &number), EREMOTEIO, 0x3);
	REFUSED(context_create(b.ctx, VHCA, 0, b.bell[1].cqn, &number), EREMOTEIO, 0x6);
	/* CQs that there are not, or that device code does not hear of. */
	REFUSED(context_create(b.ctx, VHCA, 5, b.bell[0].cqn ^ 0x800000, &number), EREMOTEIO, 0x3);
	REFUSED(context_create(b.ctx, VHCA, 5, 0, &number), EREMOTEIO, 0x3);
	/* Used by what is there. */
	for (unsigned n = 0; n < DOORBELLS; n++)
		FAILS(flexio_cq_destroy(b.bell[n].cq));
	CHECK(mlx5dv_devx_obj_destroy(b.eq));
	CHECK(!ibv_destroy_cq(verbs));
	CHECK(!ibv_close_device(ib));
	bench_down(&b);
}

/* The device alone, until its input ends; says what a doorbell has taken when it is asked. */
static void device(void)
{
	struct bench b;
	char line[32];

	bench_up(&b, true, true);
	for (unsigned n = 0; n < DOORBELLS; n++)
		bell_arm(&b, n);
	puts("begun");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%lu\n", (unsigned long)bell_get(&b, atoi(line) & 1, taken));
		fflush(stdout);
	}
	bench_down(&b);
}

const struct emulation_case device_cases[] = {
	{"facts", facts},     {"arming", arming}, {"odd_bells", odd_bells},
	{"refused", refused}, {"device", device}, {NULL, NULL},
};

static bool case_run(const struct emulation_case *c, const char *name)
{
	while (c->name && strcmp(c->name, name) != 0)
		c++;
	if (c->name)
		c->run();
	return c->name;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	CHECK_SAY(case_run(device_cases, argv[1]) || case_run(driver_cases, argv[1]), "no case %s",
		  argv[1]);
	return 0;
}
