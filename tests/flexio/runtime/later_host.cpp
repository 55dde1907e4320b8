// SPDX-License-Identifier: BSD-2-Clause
// A host program of generation 25, in C++: it asks for the application by name and says its version.
#include <libflexio/flexio_ver.h>
#define FLEXIO_VER_USED FLEXIO_VER(25, 7, 0)
#include <libflexio/flexio.h>

#include <cstdio>
#include <cstdlib>

extern "C" {
extern flexio_func_t later_add;
extern flexio_func_t later_window;
extern flexio_func_t later_names;
extern flexio_func_t later_peek;
extern flexio_func_t later_wake;
extern flexio_func_t later_woken;
extern flexio_func_t later_again;
extern flexio_func_t later_cross;
}

#define NAME_OF(name) #name
#define NAME(name)    NAME_OF(name)

static void expect(bool holds, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "not so: %s\n", what);
	std::exit(1);
}

#define EXPECT(condition) expect((condition), #condition)

static ibv_context *open_device()
{
	ibv_device **list = ibv_get_device_list(nullptr);

	EXPECT(list && list[0]);
	ibv_context *context = ibv_open_device(list[0]);
	EXPECT(context != nullptr);
	ibv_free_device_list(list);
	return context;
}

static uint64_t call(flexio_process *process, flexio_func_t *function, uint64_t arg)
{
	uint64_t result = 0;

	EXPECT(!flexio_process_call(process, function, &result, arg));
	return result;
}

/* Wakes a handler as often as that by its number, and waits until it has counted. */
static void wake(flexio_process *process, flexio_func_t *function, int continuable, uint64_t times,
		 uint64_t counts)
{
	flexio_event_handler_attr attr = {};
	flexio_event_handler *handler = nullptr;
	flexio_uintptr_t counter = 0;

	EXPECT(!flexio_buf_dev_alloc(process, 8, &counter));
	EXPECT(!flexio_buf_dev_memset(process, 0, 8, counter));
	attr.host_stub_func = function;
	attr.continuable = continuable;
	EXPECT(!flexio_event_handler_create(process, &attr, &handler));
	EXPECT(!flexio_event_handler_run(handler, counter));
	for (uint64_t i = 1; i <= times; i++) {
		(void)call(process, &later_wake, flexio_event_handler_get_id(handler));
		while (call(process, &later_peek, counter) != i * counts)
			EXPECT(call(process, &later_peek, counter) <= i * counts);
	}
	EXPECT(!flexio_event_handler_destroy(handler));
	// It is gone, and its number nobody's.
	(void)call(process, &later_wake, 1);
	EXPECT(call(process, &later_peek, counter) == times * counts);
}

static void others(flexio_process *process, ibv_context *context)
{
	flexio_uar *uar = nullptr;

	EXPECT(call(process, &later_names, 1) == 1);
	wake(process, &later_woken, 0, 5, 1);
	wake(process, &later_again, 1, 3, 10);
	EXPECT(!flexio_uar_extend(flexio_process_get_uar(process), context, &uar));
	EXPECT(call(process, &later_cross, flexio_uar_get_extended_id(uar)) == 0);
	EXPECT(call(process, &later_cross, 0x7fffffff) == 1);
	EXPECT(!flexio_uar_destroy(uar));
	std::printf("others\n");
	std::fflush(stdout);
}

int main()
{
	flexio_app_select_attr select = {};
	flexio_msg_stream_attr attr = {};
	flexio_app *app = nullptr;
	flexio_process *process = nullptr;
	flexio_msg_stream *stream = nullptr;
	uint64_t result = 0;

	EXPECT(flexio_version_set(FLEXIO_VER_USED) == FLEXIO_STATUS_SUCCESS);
	EXPECT(flexio_version_set(FLEXIO_VER(99, 1, 0)) == FLEXIO_STATUS_FAILED);
	EXPECT(flexio_version_set(FLEXIO_VER(1, 5, 0)) == FLEXIO_STATUS_FAILED);
	select.app_name = NAME(DEV_APP_NAME);
	select.hw_model_id = FLEXIO_HW_MODEL_DEF;
	select.ibv_ctx = open_device();
	EXPECT(flexio_app_get(&select, &app) == FLEXIO_STATUS_SUCCESS);
	std::printf("found %s\n", flexio_app_get_name(app));
	std::fflush(stdout);

	EXPECT(!flexio_process_create(select.ibv_ctx, app, nullptr, &process));
	attr.data_bsize = 4096;
	attr.sync_mode = FLEXIO_MSG_DEV_SYNC_MODE_SYNC;
	attr.level = FLEXIO_MSG_DEV_INFO;
	attr.transport_mode = FLEXIO_MSG_TRANSPORT_QP_RC;
	EXPECT(!flexio_msg_stream_create(process, &attr, stdout, nullptr, &stream));
	EXPECT(!flexio_process_call(process, &later_add, &result, uint64_t{40}, uint64_t{2}));
	others(process, select.ibv_ctx);
	// Destroyed, it has written all that it had.
	EXPECT(!flexio_msg_stream_destroy(stream));
	std::printf("sum %lu\n", result);
	EXPECT(!flexio_process_call(process, &later_window, &result, uint64_t{0xffff}));
	std::printf("window %lu\n", result);
	EXPECT(!flexio_process_destroy(process));

	select.app_name = "another";
	EXPECT(flexio_app_get(&select, &app) == FLEXIO_STATUS_FAILED && app == nullptr);
	std::printf("no other application\n");
	return 0;
}
