// SPDX-License-Identifier: BSD-2-Clause
/* Several processes, devices and windows in one program; the argument is the case. */
#include <libflexio/flexio.h>

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define OK(call)    CHECK((call) == FLEXIO_STATUS_SUCCESS)
#define FAILS(call) CHECK((call) == FLEXIO_STATUS_FAILED)

extern struct flexio_app *several_app, *threads_app;
extern flexio_func_t count_up, through_both, load64;

static struct ibv_context *device_open(int index)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *context;

	CHECK(list && count > index);
	context = ibv_open_device(list[index]);
	CHECK(context);
	ibv_free_device_list(list);
	return context;
}

static struct flexio_process *process_of(struct ibv_context *context)
{
	struct flexio_process *process = NULL;

	OK(flexio_process_create(context, several_app, NULL, &process));
	return process;
}

static uint64_t counted(struct flexio_process *process, uint64_t by)
{
	uint64_t result = 0;

	OK(flexio_process_call(process, &count_up, &result, by));
	return result;
}

static void devices(void)
{
	struct ibv_context *first = device_open(0), *second = device_open(1);
	struct flexio_process *a = process_of(first), *b = process_of(second);
	struct flexio_uar *uar = flexio_process_get_uar(a);

	CHECK(uar && flexio_uar_get_id(uar) != UINT32_MAX && !flexio_process_get_uar(NULL));
	CHECK(counted(a, 1) == 1 && counted(b, 10) == 10 && counted(a, 1) == 2);
	OK(flexio_process_destroy(a));
	CHECK(counted(b, 10) == 20);
	OK(flexio_process_destroy(b));
	CHECK(!ibv_close_device(first) && !ibv_close_device(second));
}

static void *several_main(void *arg)
{
	flexio_status status = FLEXIO_STATUS_SUCCESS;

	for (int i = 0; i < 10; i++) {
		struct flexio_process *process = NULL;
		uint64_t result = 0;

		status |= flexio_process_create(arg, several_app, NULL, &process);
		status |= flexio_process_call(process, &count_up, &result, (uint64_t)i + 7);
		CHECK(result == (uint64_t)i + 7);
		status |= flexio_process_destroy(process);
	}
	CHECK(status == FLEXIO_STATUS_SUCCESS);
	return NULL;
}

static void at_once(void)
{
	struct ibv_context *context = device_open(0);
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, several_main, context));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!ibv_close_device(context));
}

static int entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Pages of the address space, and those that are there. */
static void pages_of(long pages[2])
{
	FILE *file = fopen("/proc/self/statm", "r");

	CHECK(file && fscanf(file, "%ld %ld", &pages[0], &pages[1]) == 2);
	fclose(file);
}

static void no_leak(void)
{
	struct ibv_context *context = device_open(0);
	long before[2] = {0}, after[2];
	int files = 0;

	for (int i = 0; i < 1000; i++) {
		struct flexio_process *process = process_of(context);

		CHECK(counted(process, 5) == 5);
		OK(flexio_process_destroy(process));
		if (i == 20) {
			files = entries("/proc/self/fd");
			pages_of(before);
		}
	}
	CHECK(entries("/proc/self/fd") <= files);
	/* Threads go behind their process; the last may be on its way. */
	for (int nap = 0; nap < 3000 && entries("/proc/self/task") > 50; nap++)
		usleep(10000);
	CHECK(entries("/proc/self/task") <= 50);
	/* A GiB of addresses and 32 MiB of memory are far less than a thousand of anything. */
	pages_of(after);
	CHECK(after[0] <= before[0] + (1l << 30) / getpagesize());
	CHECK(after[1] <= before[1] + (32l << 20) / getpagesize());
	CHECK(!ibv_close_device(context));
}

/* Not on InfiniBand; the suite looks for the lines that say so. */
static void congestion(void)
{
	const struct flexio_process_attr attr = {.en_pcc = 1};
	struct flexio_outbox_attr outbox_attr = {.en_pcc = 1};
	struct ibv_context *context = device_open(0);
	struct flexio_process *plain = process_of(context), *process = plain;
	struct flexio_outbox *outbox = (struct flexio_outbox *)(void *)plain;

	FAILS(flexio_process_create(context, several_app, &attr, &process));
	FAILS(flexio_outbox_create(plain, &outbox_attr, &outbox));
	CHECK(!process && !outbox);
	outbox_attr.en_pcc = 0;
	OK(flexio_outbox_create(plain, &outbox_attr, &outbox));
	OK(flexio_process_destroy(plain));
	CHECK(!ibv_close_device(context));
}

/* One of each kind is left to the process, which goes again and again. */
static void objects_left(void)
{
	struct ibv_context *context = device_open(0);
	struct ibv_pd *pd = ibv_alloc_pd(context);

	CHECK(pd);
	for (int i = 0; i < 20; i++) {
		struct flexio_process *process = process_of(context);
		flexio_msg_stream_attr_t stream_attr = {.data_bsize = 2048};
		struct flexio_cmdq_attr cmdq_attr = {2, 2, FLEXIO_CMDQ_STATE_RUNNING};
		struct flexio_mkey_attr mkey_attr = {.pd = pd, .len = 100};
		struct flexio_outbox_attr outbox_attr = {0};
		struct flexio_msg_stream *stream;
		struct flexio_cmdq *cmdq;
		struct flexio_mkey *mkey;
		struct flexio_window *window;
		struct flexio_outbox *outbox;
		struct flexio_uar *uar;

		OK(flexio_msg_stream_create(process, &stream_attr, stdout, NULL, &stream));
		OK(flexio_cmdq_create(process, &cmdq_attr, &cmdq));
		OK(flexio_buf_dev_alloc(process, 100, &mkey_attr.daddr));
		OK(flexio_device_mkey_create(process, &mkey_attr, &mkey));
		OK(flexio_window_create(process, pd, &window));
		OK(flexio_uar_create(process, &uar));
		OK(flexio_outbox_create(process, &outbox_attr, &outbox));
		CHECK(flexio_err_handler_fd(process) >= 0 && counted(process, 4) == 4);
		OK(flexio_process_destroy(process));
		FAILS(flexio_cmdq_destroy(cmdq));
		FAILS(flexio_device_mkey_destroy(mkey));
		FAILS(flexio_window_destroy(window));
		FAILS(flexio_outbox_destroy(outbox));
		FAILS(flexio_msg_stream_destroy(stream));
	}
	/* Nothing uses the domain any more. */
	CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(context));
}

/* Two archives in one program: each application has its own functions, and a process of each runs beside the other's. */
static void two_apps(void)
{
	struct ibv_context *context = device_open(0);
	struct flexio_process *process = process_of(context), *other;
	struct flexio_app **list;
	flexio_uintptr_t word;
	uint64_t value = 77, result;
	uint32_t n;

	OK(flexio_app_get_list(&list, &n));
	CHECK(n == 2 && ((list[0] == several_app && list[1] == threads_app) ||
			 (list[0] == threads_app && list[1] == several_app)));
	OK(flexio_app_list_free(list));
	CHECK(!strcmp(flexio_app_get_name(several_app), "several_app") &&
	      !strcmp(flexio_app_get_name(threads_app), "threads_app"));
	OK(flexio_process_create(context, threads_app, NULL, &other));
	OK(flexio_copy_from_host(other, &value, sizeof(value), &word));
	OK(flexio_process_call(other, &load64, &result, word));
	CHECK(result == 77 && counted(process, 6) == 6);
	FAILS(flexio_process_call(process, &load64, &result, word));
	FAILS(flexio_process_call(other, &count_up, &result, (uint64_t)1));
	OK(flexio_app_destroy(threads_app));
	OK(flexio_app_get_list(&list, &n));
	CHECK(n == 1 && list[0] == several_app && counted(process, 6) == 12);
	OK(flexio_app_list_free(list));
	OK(flexio_process_destroy(other));
	OK(flexio_process_destroy(process));
	CHECK(!ibv_close_device(context));
}

static void windows(void)
{
	static uint64_t words[2][512] = {{3}, {4}};
	struct ibv_context *context = device_open(0);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct flexio_process *process = process_of(context);
	struct flexio_window *window = NULL;
	struct ibv_mr *mr[2];
	uint64_t result = 0;

	CHECK(pd);
	for (int i = 0; i < 2; i++) {
		mr[i] = ibv_reg_mr(pd, words[i], sizeof(words[i]), IBV_ACCESS_LOCAL_WRITE);
		CHECK(mr[i]);
	}
	OK(flexio_window_create(process, pd, &window));
	OK(flexio_process_call(process, &through_both, &result,
			       (uint64_t)flexio_window_get_id(window), mr[0]->lkey,
			       (uint64_t)(uintptr_t)words[0], mr[1]->lkey,
			       (uint64_t)(uintptr_t)words[1]));
	CHECK(result == 7 && words[0][0] == 4 && words[1][0] == 3);
	OK(flexio_window_destroy(window));
	OK(flexio_process_destroy(process));
	CHECK(!ibv_dereg_mr(mr[0]) && !ibv_dereg_mr(mr[1]) && !ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(context));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{"devices", devices},	    {"at_once", at_once},	    {"no_leak", no_leak},
		{"congestion", congestion}, {"objects_left", objects_left}, {"two_apps", two_apps},
		{"windows", windows}};

	CHECK(argc == 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run();
			return 0;
		}
	CHECK_SAY(0, "no case %s", argv[1]);
}
