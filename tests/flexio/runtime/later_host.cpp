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
