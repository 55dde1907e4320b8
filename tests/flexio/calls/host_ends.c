// SPDX-License-Identifier: BSD-2-Clause
/* Ends at any time, and commands that no libflexio sends. */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd.h"

/* ---- everything at once, and the process goes ---- */

#define ROUNDS 12u

static struct flexio_process *process;
static struct flexio_cmdq *cmdq;
static struct flexio_msg_stream *stream;

static bool still(flexio_status status)
{
	CHECK(status == FLEXIO_STATUS_SUCCESS || status == FLEXIO_STATUS_FAILED);
	return status == FLEXIO_STATUS_SUCCESS;
}

static bool use_endless_call(void)
{
	uint64_t value;

	return still(flexio_process_call(process, &spin, &value));
}

static bool use_calls(void)
{
	uint64_t value;

	return still(flexio_process_call(process, &say, &value, (uint64_t)1));
}

static bool use_tasks(void)
{
	return still(flexio_cmdq_task_add(cmdq, &endless, 0)) && flexio_cmdq_is_empty(cmdq) == 0;
}

static bool use_stream(void)
{
	return still(flexio_msg_stream_flush(stream));
}

static bool use_heap(void)
{
	flexio_uintptr_t at;

	return still(flexio_copy_from_host(process, &process, 8, &at)) &&
	       still(flexio_buf_dev_free(process, at));
}

static bool use_windows(void)
{
	struct flexio_window *window;

	return still(flexio_window_create(process, flexio_process_get_pd(process), &window)) &&
	       still(flexio_window_destroy(window));
}

static bool (*const uses[])(void) = {use_endless_call, use_calls, use_calls,  use_tasks,
				     use_stream,       use_heap,  use_windows};

#define USERS (sizeof(uses) / sizeof(uses[0]))

static void *user_main(void *arg)
{
	bool (*use)(void) = *(bool (*const *)(void))arg;

	/* The handle may have gone before the first look. */
	while (use())
		;
	return NULL;
}

static void ends(void)
{
	struct flexio_cmdq_attr attr = {
		.workers = 2, .batch_size = 1, .state = FLEXIO_CMDQ_STATE_RUNNING};
	flexio_msg_stream_attr_t text = {.data_bsize = 2048,
					 .level = FLEXIO_MSG_DEV_INFO,
					 .sync_mode = FLEXIO_LOG_DEV_SYNC_MODE_ASYNC};
	FILE *nowhere = fopen("/dev/null", "w");
	pthread_t thread[USERS];

	for (unsigned i = 0; i < ROUNDS; i++) {
		process = host_process();
		OK(flexio_cmdq_create(process, &attr, &cmdq));
		/* One that waits for the host when it is full, and one that does not. */
		text.sync_mode =
			i % 2 ? FLEXIO_LOG_DEV_SYNC_MODE_ASYNC : FLEXIO_LOG_DEV_SYNC_MODE_SYNC;
		OK(flexio_msg_stream_create(process, &text, nowhere, NULL, &stream));
		for (size_t k = 0; k < USERS; k++)
			CHECK(!pthread_create(&thread[k], NULL, user_main, (void *)&uses[k]));
		usleep(i * 500);
		OK(flexio_process_destroy(process));
		for (size_t k = 0; k < USERS; k++)
			CHECK(!pthread_join(thread[k], NULL));
	}
	fclose(nowhere);
}

/* ---- the application goes ---- */

static flexio_uintptr_t word;
static flexio_func_t *waiting;

static void *call_main(void *arg)
{
	uint64_t value = 0;

	OK(flexio_process_call(process, waiting, &value, (uint64_t)word));
	CHECK(value == 7);
	return arg;
}

/* A call that is under way ends as ever; a new one finds no function. */
static void app_ends(void)
{
	size_t bytes = flexio_app_get_elf_size(calls_app);
	uint64_t *elf = malloc(bytes), zero = 0, one = 1, value;
	struct flexio_app_attr attr = {.app_name = "mine", .app_ptr = elf, .app_bsize = bytes};
	struct flexio_event_handler_attr handler = {0};
	struct flexio_event_handler *eh;
	struct flexio_app *app;
	pthread_t thread;

	OK(flexio_app_get_elf(calls_app, elf, bytes));
	OK(flexio_app_create(&attr, &app));
	free(elf);
	OK(flexio_func_register(app, "await_word", &waiting));
	OK(flexio_process_create(host_device(), app, NULL, &process));
	OK(flexio_copy_from_host(process, &zero, 8, &word));
	CHECK(!pthread_create(&thread, NULL, call_main, NULL));
	usleep(20000);
	OK(flexio_app_destroy(app));
	FAILS(flexio_process_call(process, waiting, &value, (uint64_t)word));
	CHECK(!flexio_app_get_name(app));
	/* The process is there, but no handler of it can be made. */
	handler.host_stub_func = waiting;
	FAILS(flexio_event_handler_create(process, &handler, &eh));
	FAILS(flexio_process_error_handler_set(process, waiting));
	OK(flexio_host2dev_memcpy(process, &one, 8, word));
	CHECK(!pthread_join(thread, NULL));
	OK(flexio_process_destroy(process));
}

/* ---- commands ---- */

struct command {
	uint8_t in[DPA_IN_FIXED + 64], out[DPA_OUT_BYTES];
	size_t in_bytes;
};

static void command_begin(struct command *c, uint32_t number, uint32_t op)
{
	memset(c, 0, sizeof(*c));
	c->in_bytes = DPA_IN_FIXED;
	prm_set(c->in, CMD_IN_OPCODE, PRM_OP_DPA);
	prm_set(c->in, CMD_IN_OP_MOD, op);
	prm_set(c->in, DPA_IN_PROCESS, number);
}

static int command_run(struct command *c, struct ibv_context *ctx)
{
	return mlx5dv_devx_general_cmd(ctx, c->in, c->in_bytes, c->out, sizeof(c->out));
}

static uint32_t number_of(struct flexio_process *p)
{
	return flexio_process_get_dumem_id(p) - DPA_UMEM;
}

static uint64_t address_of(struct flexio_process *p, const char *name)
{
	struct command c;

	command_begin(&c, number_of(p), DPA_OP_SYMBOL);
	prm_set(c.in, DPA_IN_BYTES, strlen(name) + 1);
	strcpy((char *)c.in + DPA_IN_TAIL, name);
	c.in_bytes += strlen(name) + 1;
	CHECK(!command_run(&c, host_device()));
	return prm_get(c.out, DPA_OUT_ADDR);
}

static void call_fill(struct command *c, struct flexio_process *p, uint64_t function,
		      uint64_t unpack)
{
	command_begin(c, number_of(p), DPA_OP_CALL);
	prm_set(c->in, DPA_IN_ADDR, function);
	prm_set(c->in, DPA_IN_UNPACK, unpack);
	prm_set(c->in, DPA_IN_BYTES, 16);
	c->in_bytes += 16;
}

/* What is called lies in the code of the image, whoever calls. */
static void code_alone(struct flexio_process *p)
{
	uint64_t good = address_of(p, "nothing"), heap;
	uint64_t bad[6];
	struct command c;

	OK(flexio_buf_dev_alloc(p, 64, &heap));
	bad[0] = 0;
	bad[1] = heap;
	bad[2] = (uintptr_t)&code_alone;
	bad[3] = UINT64_MAX;
	bad[4] = good + (1 << 30);
	bad[5] = 1ull << 63;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		call_fill(&c, p, bad[i], 0);
		CHECK(command_run(&c, host_device()));
		call_fill(&c, p, good, bad[i]);
		CHECK(!bad[i] || command_run(&c, host_device()));
		command_begin(&c, number_of(p), DPA_OP_ON_ERROR);
		prm_set(c.in, DPA_IN_ADDR, bad[i]);
		CHECK(command_run(&c, host_device()));
	}
	/* None of it has run. */
	CHECK(flexio_err_status_get(p) == FLEXIO_DEV_NO_ERROR);
	call_fill(&c, p, good, 0);
	CHECK(!command_run(&c, host_device()) && prm_get(c.out, DPA_OUT_ADDR) == 17);
}

static void own_context_alone(struct flexio_process *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *other;
	struct command c;

	CHECK(list && list[0]);
	other = ibv_open_device(list[0]);
	CHECK(other);
	ibv_free_device_list(list);
	for (uint32_t op = DPA_OP_STATE; op <= DPA_OP_CMDQ_IS_EMPTY + 1; op++)
		for (size_t bytes = 16; bytes <= DPA_IN_FIXED + 16; bytes += 4) {
			command_begin(&c, number_of(p), op);
			c.in_bytes = bytes;
			CHECK(command_run(&c, other));
			/* Of its own, but not as long as it has to be. */
			if (bytes < DPA_IN_FIXED)
				CHECK(command_run(&c, host_device()));
		}
	CHECK(!ibv_close_device(other));
}

/* A core file goes to a file of the program's, not to one of the device. */
static void core_to_device(struct flexio_process *p)
{
	struct command c;

	for (int fd = -1; fd < 1024; fd += fd < 0 ? 1 : 1023) {
		command_begin(&c, number_of(p), DPA_OP_CORE);
		prm_set(c.in, DPA_IN_FILE, (uint32_t)(fd ? fd : host_device()->cmd_fd));
		CHECK(command_run(&c, host_device()));
	}
}

static void commands(void)
{
	struct flexio_process *p = host_process();

	own_context_alone(p);
	core_to_device(p);
	code_alone(p);
	OK(flexio_process_destroy(p));
}

const struct host_case end_cases[] = {
	{"ends", ends}, {"app_ends", app_ends}, {"commands", commands}, {NULL, NULL}};
