// SPDX-License-Identifier: BSD-2-Clause
/*
 * Objects are destroyed while other threads use them: whoever destroys one waits until nobody has it, and who comes
 * too late is told so.  The device is a stand-in whose calls last until their process has gone.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "dpa_fixture.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd.h"
#include "prm/hca_cap.h"
#include "prm/cmd_cq_eq.h"

#define ROUNDS 40u

/* ---- the device ---- */

struct mlx5dv_devx_obj {
	uint32_t number, type;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t last_number, process; /* 0: there is none */
static int objects;
static uint64_t streams_open; /* a bit of each */
static uint64_t given[64];    /* bytes that have been read of each */

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in,
					       size_t inlen, void *out, size_t outlen)
{
	struct mlx5dv_devx_obj *o = calloc(1, sizeof(*o));

	(void)context, (void)inlen, (void)outlen;
	CHECK(o);
	pthread_mutex_lock(&lock);
	o->number = ++last_number;
	if (prm_get(in, CMD_IN_OPCODE) == PRM_OP_CREATE_GENERAL_OBJECT)
		o->type = prm_get32(in, GENERAL_IN_TYPE);
	/* No object outlives its process, and none is made of one that has gone. */
	if (o->type == GENERAL_DPA_PROCESS)
		process = o->number;
	else
		CHECK(process);
	if (o->type == GENERAL_DPA_STREAM) {
		streams_open |= 1ull << o->number % 64;
		given[o->number % 64] = 0;
	}
	objects++;
	pthread_mutex_unlock(&lock);
	prm_set(out, o->type ? GENERAL_OUT_ID : CMD_OUT_NUMBER, o->number);
	return o;
}

int mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *o)
{
	pthread_mutex_lock(&lock);
	objects--;
	if (o->type == GENERAL_DPA_PROCESS) {
		CHECK_SAY(!objects, "%d objects outlive their process", objects);
		process = 0;
	}
	if (o->type == GENERAL_DPA_STREAM)
		streams_open &= ~(1ull << o->number % 64);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	free(o);
	return 0;
}

int mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
			   size_t outlen)
{
	(void)in, (void)inlen, (void)out, (void)outlen;
	/* The look is what counts: it may have been freed. */
	CHECK(obj->number);
	return 0;
}

int mlx5dv_devx_obj_query(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
			  size_t outlen)
{
	return mlx5dv_devx_obj_modify(obj, in, inlen, out, outlen);
}

/* Whatever it is about, it is of the process. */
static int command_run(uint32_t op, const void *in, void *out)
{
	if (!process)
		return EREMOTEIO;
	switch (op) {
	case DPA_OP_CALL:
		while (process)
			pthread_cond_wait(&changed, &lock);
		prm_set(out, DPA_OUT_END, DPA_CALL_DEAD);
		return 0;
	case DPA_OP_STREAM_READ: {
		uint32_t at = prm_get32(in, DPA_IN_STREAM) % 64;
		uint64_t bit = 1ull << at, bytes;

		while (prm_get(in, DPA_IN_WAIT) && streams_open & bit)
			pthread_cond_wait(&changed, &lock);
		bytes = streams_open & bit ? 8 : 0;
		prm_set(out, DPA_OUT_TEXT, bytes);
		prm_set(out, DPA_OUT_BEFORE, given[at]);
		given[at] += bytes;
		prm_set(out, DPA_OUT_OVER, !(streams_open & bit));
		return 0;
	}
	case DPA_OP_STREAM_CLOSE:
		streams_open &= ~(1ull << prm_get32(in, DPA_IN_STREAM) % 64);
		pthread_cond_broadcast(&changed);
		return 0;
	default:
		prm_set(out, DPA_OUT_ADDR, 4096);
		return 0;
	}
}

int mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t inlen, void *out,
			    size_t outlen)
{
	uint32_t opcode = prm_get32(in, CMD_IN_OPCODE);
	int ret = 0;

	(void)context, (void)inlen, (void)outlen;
	if (opcode == PRM_OP_QUERY_HCA_CAP) {
		prm_set((uint8_t *)out + HCA_CAP_HEADER, DPA_CAP_VERSION, DPA_LAYOUT_VERSION);
		return 0;
	}
	pthread_mutex_lock(&lock);
	ret = command_run(prm_get32(in, CMD_IN_OP_MOD), in, out);
	pthread_mutex_unlock(&lock);
	return ret;
}

struct mlx5dv_devx_event_channel *
mlx5dv_devx_create_event_channel(struct ibv_context *context,
				 enum mlx5dv_devx_create_event_channel_flags flags)
{
	(void)context, (void)flags;
	return calloc(1, sizeof(struct mlx5dv_devx_event_channel));
}

void mlx5dv_devx_destroy_event_channel(struct mlx5dv_devx_event_channel *channel)
{
	free(channel);
}

int mlx5dv_devx_subscribe_devx_event(struct mlx5dv_devx_event_channel *event_channel,
				     struct mlx5dv_devx_obj *obj, uint16_t events_sz,
				     uint16_t events_num[], uint64_t cookie)
{
	(void)event_channel, (void)events_sz, (void)events_num, (void)cookie;
	CHECK(obj->type == GENERAL_DPA_PROCESS);
	return 0;
}

int mlx5dv_devx_query_eqn(struct ibv_context *context, uint32_t vector, uint32_t *eqn)
{
	(void)context, (void)vector;
	*eqn = 4;
	return 0;
}

int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t type)
{
	CHECK(type == MLX5DV_OBJ_PD);
	obj->pd.out->pdn = 7;
	return 0;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	CHECK(pd);
	pd->context = context;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	free(pd);
	return 0;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	(void)device;
	return "mlx5_9";
}

/* ---- who uses what ---- */

static struct ibv_context context;
static FILE *nowhere;
static struct bench {
	struct flexio_app *app;
	struct flexio_process *process;
	struct flexio_cmdq *cmdq;
	struct flexio_window *window;
	struct flexio_mkey *mkey;
	struct flexio_uar *uar;
	struct flexio_outbox *outbox;
	struct flexio_event_handler *handler;
	struct flexio_cq *cq;
	struct flexio_msg_stream *sync, *async;
	struct ibv_pd *pd;
} b;
static pthread_barrier_t begin;
/* The file of this program stands for the device's: both have the function main. */
static void *elf;
static size_t elf_bytes;

static void stub_one(void)
{
}

static void stub_args(void)
{
}

static void pack(void *argbuf, va_list ap)
{
	memset(argbuf, 0, 8);
	(void)ap;
}

static bool ok(flexio_status status)
{
	CHECK(status == FLEXIO_STATUS_SUCCESS || status == FLEXIO_STATUS_FAILED);
	return status == FLEXIO_STATUS_SUCCESS;
}

/* Each does one thing of its kind; false: what it needs has gone. */
static bool use_call(void)
{
	uint64_t value;

	return ok(flexio_process_call(b.process, stub_args, &value, (uint64_t)1));
}

static bool use_memory(void)
{
	struct flexio_heap_mem_info info;
	flexio_uintptr_t at;

	return ok(flexio_copy_from_host(b.process, &context, 8, &at)) &&
	       ok(flexio_process_mem_info_get(b.process, &info)) &&
	       flexio_err_handler_fd(b.process) >= 0;
}

static bool use_window(void)
{
	struct flexio_mkey_attr attr = {.pd = b.pd, .daddr = 4096, .len = 8};
	struct flexio_window *window;
	struct flexio_mkey *mkey;

	return ok(flexio_window_create(b.process, b.pd, &window)) && flexio_window_get_id(window) &&
	       ok(flexio_window_destroy(window)) &&
	       ok(flexio_device_mkey_create(b.process, &attr, &mkey)) &&
	       ok(flexio_device_mkey_destroy(mkey));
}

static bool use_cmdq(void)
{
	return ok(flexio_cmdq_task_add(b.cmdq, stub_one, 1)) &&
	       ok(flexio_cmdq_state_running(b.cmdq)) && !flexio_cmdq_is_empty(b.cmdq);
}

static bool use_stream(void)
{
	return ok(flexio_msg_stream_flush(b.async)) && ok(flexio_log_dev_flush(b.process)) &&
	       ok(flexio_msg_stream_level_set(b.async, FLEXIO_MSG_DEV_ERROR)) &&
	       flexio_msg_stream_get_id(b.sync) >= 0;
}

static bool use_queue(void)
{
	uint16_t count, period, mode;

	return ok(flexio_cq_query_moderation(b.cq, &count, &period, &mode)) &&
	       ok(flexio_event_handler_run(b.handler, 1)) &&
	       flexio_event_handler_get_thread(b.handler) && flexio_cq_get_cq_num(b.cq);
}

static bool use_uar(void)
{
	struct flexio_outbox_attr attr = {0};
	struct flexio_outbox *outbox;
	struct flexio_uar *uar;

	return ok(flexio_outbox_create(b.process, &attr, &outbox)) &&
	       ok(flexio_outbox_destroy(outbox)) && ok(flexio_uar_extend(b.uar, &context, &uar)) &&
	       ok(flexio_uar_destroy(uar));
}

static bool use_app(void)
{
	char name[300], unpack[300];
	flexio_func_arg_pack_fn_t *f;
	flexio_uintptr_t at, unpack_at;
	uint32_t pup, n;
	struct flexio_app **list;
	size_t bytes;

	return ok(flexio_func_get_register_info(b.app, stub_args, &pup, name, unpack, sizeof(name),
						&bytes, &f, &at, &unpack_at)) &&
	       ok(flexio_app_get_list(&list, &n)) && ok(flexio_app_list_free(list)) &&
	       flexio_app_get_elf_size(b.app);
}

static bool use_objects_end(void)
{
	(void)flexio_cmdq_destroy(b.cmdq);
	(void)flexio_cq_destroy(b.cq);
	(void)flexio_event_handler_destroy(b.handler);
	(void)flexio_msg_stream_destroy(b.async);
	(void)flexio_log_dev_destroy(b.process);
	(void)flexio_outbox_destroy(b.outbox);
	(void)flexio_uar_destroy(b.uar);
	(void)flexio_window_destroy(b.window);
	return false;
}

static bool (*const uses[])(void) = {
	use_call,  use_call, use_memory, use_window,	  use_cmdq,	   use_stream,
	use_queue, use_uar,  use_app,	 use_objects_end, use_objects_end,
};

#define USERS (sizeof(uses) / sizeof(uses[0]))

static void *user_main(void *arg)
{
	bool (*use)(void) = *(bool (*const *)(void))arg;

	pthread_barrier_wait(&begin);
	while (use())
		;
	return NULL;
}

/* ---- rounds ---- */

#define OK(call) CHECK((call) == FLEXIO_STATUS_SUCCESS)

static void bench_up(void)
{
	struct flexio_app_attr app = {.app_name = "a", .app_ptr = elf, .app_bsize = elf_bytes};
	struct flexio_cmdq_attr cmdq = {.workers = 1, .batch_size = 1};
	struct flexio_event_handler_attr handler = {.host_stub_func = stub_one};
	flexio_msg_stream_attr_t stream = {.data_bsize = 2048, .level = FLEXIO_MSG_DEV_INFO};
	struct flexio_cq_attr cq = {.log_cq_depth = 2};
	struct flexio_mkey_attr mkey = {.daddr = 4096, .len = 8};

	OK(flexio_app_create(&app, &b.app));
	OK(flexio_func_pup_register(b.app, "main", "main", stub_one, 8, pack));
	OK(flexio_func_pup_register(b.app, "main", "main", stub_args, 8, pack));
	OK(flexio_process_create(&context, b.app, NULL, &b.process));
	b.pd = mkey.pd = flexio_process_get_pd(b.process);
	OK(flexio_cmdq_create(b.process, &cmdq, &b.cmdq));
	OK(flexio_window_create(b.process, b.pd, &b.window));
	OK(flexio_device_mkey_create(b.process, &mkey, &b.mkey));
	OK(flexio_uar_create(b.process, &b.uar));
	OK(flexio_outbox_create(b.process, &(struct flexio_outbox_attr){0}, &b.outbox));
	OK(flexio_event_handler_create(b.process, &handler, &b.handler));
	cq.thread = flexio_event_handler_get_thread(b.handler);
	OK(flexio_cq_create(b.process, NULL, &cq, &b.cq));
	OK(flexio_msg_stream_create(b.process, &stream, nowhere, NULL, &b.sync));
	stream.sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_ASYNC;
	OK(flexio_msg_stream_create(b.process, &stream, nowhere, NULL, &b.async));
}

/* The users that are not asked for stay away. */
static void round_run(unsigned number, uint64_t which)
{
	pthread_t thread[USERS];
	unsigned n = 0;

	bench_up();
	CHECK(!pthread_barrier_init(&begin, NULL, (unsigned)__builtin_popcountll(which) + 1));
	for (unsigned i = 0; i < USERS; i++)
		if (which >> i & 1)
			CHECK(!pthread_create(&thread[n++], NULL, user_main,
					      (void *)(uintptr_t)&uses[i]));
	pthread_barrier_wait(&begin);
	usleep(number % 8 * 200);
	if (number % 2)
		OK(flexio_app_destroy(b.app));
	OK(flexio_process_destroy(b.process));
	if (!(number % 2))
		OK(flexio_app_destroy(b.app));
	while (n)
		CHECK(!pthread_join(thread[--n], NULL));
	pthread_barrier_destroy(&begin);
	CHECK_SAY(!objects, "%d objects are left", objects);
}

int main(void)
{
	const uint64_t all = (1ull << USERS) - 1, ends = 3ull << (USERS - 2);

	nowhere = fopen("/dev/null", "w");
	CHECK(nowhere);
	elf = fixture_read("/proc/self/exe", &elf_bytes);
	for (unsigned i = 0; i < ROUNDS; i++) {
		round_run(i, all & ~ends);
		round_run(i, all);
		round_run(i, 1ull << i % USERS | 1);
	}
	fclose(nowhere);
	free(elf);
	return 0;
}
