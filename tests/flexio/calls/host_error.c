// SPDX-License-Identifier: BSD-2-Clause
/* Device code that fails, and a program that goes on. */
#include <glob.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

static uint64_t host_word = 99;

static bool readable(int fd, int wait_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, wait_ms) == 1 && p.revents & POLLIN;
}

/* The same by the other ways to wait. */
static bool readable_by_all(int fd)
{
	struct epoll_event event = {.events = EPOLLIN}, got;
	struct timeval at_once = {0};
	int epoll = epoll_create1(0);
	fd_set set;
	bool all;

	CHECK(epoll >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	all = epoll_wait(epoll, &got, 1, 0) == 1 && got.events & EPOLLIN;
	close(epoll);
	FD_ZERO(&set);
	FD_SET(fd, &set);
	CHECK((select(fd + 1, &set, NULL, NULL, &at_once) == 1) == all);
	CHECK(readable(fd, 0) == all);
	return all;
}

/* What a process was given before it ended. */
struct before {
	struct flexio_event_handler *eh;
	struct flexio_cmdq *q;
};

static const struct flexio_cmdq_attr one_worker = {1, 1, FLEXIO_CMDQ_STATE_PENDING};

static void before_make(struct before *b, struct flexio_process *p)
{
	struct flexio_event_handler_attr handler = {.host_stub_func = &finish};
	struct flexio_cmdq_attr cmdq = one_worker;

	OK(flexio_event_handler_create(p, &handler, &b->eh));
	OK(flexio_cmdq_create(p, &cmdq, &b->q));
}

/* What asks the process to run code fails with that status, and all else goes on. */
static void code_is_refused(struct flexio_process *p, const struct before *b, flexio_status status)
{
	struct flexio_event_handler_attr handler = {.host_stub_func = &finish};
	struct flexio_mkey_attr key = {.pd = flexio_process_get_pd(p), .len = 64};
	struct flexio_cmdq_attr cmdq = one_worker;
	struct flexio_event_handler *eh;
	struct flexio_mkey *mkey;
	struct flexio_cmdq *q;

	CHECK(flexio_event_handler_create(p, &handler, &eh) == status && !eh);
	CHECK(flexio_event_handler_run(b->eh, 1) == status);
	CHECK(flexio_cmdq_create(p, &cmdq, &q) == status && !q);
	CHECK(flexio_cmdq_task_add(b->q, &count, 1) == status);
	CHECK(flexio_cmdq_state_running(b->q) == status);
	CHECK(flexio_process_error_handler_set(p, &finish) == status);
	OK(flexio_copy_from_host(p, &key, 64, &key.daddr));
	OK(flexio_device_mkey_create(p, &key, &mkey));
	OK(flexio_device_mkey_destroy(mkey));
	OK(flexio_cmdq_destroy(b->q));
	OK(flexio_event_handler_destroy(b->eh));
}

static void fails_with(flexio_func_t *f, uint64_t arg, enum flexio_err_status status)
{
	struct flexio_process *p = host_process(), *other = host_process();
	int fd = flexio_err_handler_fd(p);
	struct before before;
	flexio_uintptr_t addr;
	uint64_t value;

	before_make(&before, p);
	CHECK(fd >= 0 && !readable_by_all(fd));
	CHECK(flexio_err_status_get(p) == FLEXIO_DEV_NO_ERROR);
	CHECK(flexio_process_call(p, f, &value, arg, arg) == FLEXIO_STATUS_FATAL_ERR);
	CHECK(readable(fd, 30000) && readable_by_all(fd));
	CHECK(flexio_err_status_get(p) == status);
	CHECK(flexio_process_call(p, &nothing, &value) == FLEXIO_STATUS_FATAL_ERR);
	code_is_refused(p, &before, FLEXIO_STATUS_FATAL_ERR);
	/* Others go on. */
	CHECK(flexio_err_status_get(other) == FLEXIO_DEV_NO_ERROR && RESULT(other, &nothing) == 17);
	CHECK(!readable(flexio_err_handler_fd(other), 0));
	OK(flexio_buf_dev_alloc(other, 64, &addr));
	OK(flexio_process_destroy(p));
	OK(flexio_process_destroy(other));
	p = host_process();
	CHECK(RESULT(p, &nothing) == 17);
	OK(flexio_process_destroy(p));
}

static void null_load(void)
{
	fails_with(&load, 0, FLEXIO_DEV_FATAL_ERROR);
}

static void wild_store(void)
{
	fails_with(&store, 0xdead0000dead0000, FLEXIO_DEV_FATAL_ERROR);
}

static void no_place(void)
{
	fails_with(&jump, 0, FLEXIO_DEV_FATAL_ERROR);
}

static void no_stack(void)
{
	fails_with(&overflow, 1, FLEXIO_DEV_FATAL_ERROR);
}

/* A frame that is larger than the guard behind the stacks, too. */
static void frame_too_large(void)
{
	static const uint64_t kib[] = {300, 400, 512, 1024, 16384};

	for (unsigned i = 0; i < sizeof(kib) / sizeof(kib[0]); i++)
		fails_with(&frame, kib[i], FLEXIO_DEV_FATAL_ERROR);
}

static uint64_t host_function(void)
{
	host_word = 1;
	return 0;
}

/* A function of the host program: checked mode sees it. */
static void host_call(void)
{
	struct flexio_process *p = host_process();

	fails_with(&jump, (uintptr_t)&host_function, FLEXIO_DEV_FATAL_ERROR);
	fails_with(&jump, (uintptr_t)&exit, FLEXIO_DEV_FATAL_ERROR);
	CHECK(host_word == 99);
	for (uint64_t n = 0; n < 16; n++) {
		static const uint64_t more[8] = {1, 20, 300, 4000, 50000};

		CHECK(RESULT(p, &pointers, n) ==
		      (n % 8 < 5 ? (n % 2 ? 3 : 2) * n + more[n % 8] : (n % 2 ? 3 : 2) * n));
	}
	OK(flexio_process_destroy(p));
}

/* Memory of the host program: checked mode sees it. */
static void host_memory(void)
{
	fails_with(&load, (uintptr_t)&host_word, FLEXIO_DEV_FATAL_ERROR);
	fails_with(&store, (uintptr_t)&host_word, FLEXIO_DEV_FATAL_ERROR);
	CHECK(host_word == 99);
}

static void user_error(void)
{
	fails_with(&fail, 128, FLEXIO_DEV_USER_ERROR);
	fails_with(&fail, 200, FLEXIO_DEV_USER_ERROR);
	fails_with(&fail, 255, FLEXIO_DEV_USER_ERROR);
}

/* What is in the only file that the pattern names, which goes. */
static char *file_take(const char *pattern)
{
	char *text = calloc(1, 65536);
	glob_t found;
	FILE *f;

	CHECK(text && !glob(pattern, 0, NULL, &found) && found.gl_pathc == 1);
	f = fopen(found.gl_pathv[0], "r");
	CHECK(f && fread(text, 1, 65535, f) > 0);
	fclose(f);
	CHECK(!unlink(found.gl_pathv[0]));
	globfree(&found);
	return text;
}

/* The code that the report has for one that the program must not use. */
static void illegal_error(void)
{
	static const uint64_t codes[] = {0, 5, 0x42, 127};
	struct flexio_process *p;
	uint64_t value;
	char *text;

	fails_with(&fail, 0x42, FLEXIO_DEV_FATAL_ERROR);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		p = host_process();
		CHECK(flexio_process_call(p, &fail, &value, codes[i]) == FLEXIO_STATUS_FATAL_ERR);
		CHECK(flexio_err_status_get(p) == FLEXIO_DEV_FATAL_ERROR);
		OK(flexio_crash_data(p, "illegal"));
		text = file_take("illegal.*.crash");
		CHECK_SAY(strstr(text, "has failed, code 0x42\n"), "%s", text);
		free(text);
		OK(flexio_process_destroy(p));
	}
}

/* The file of that name and this process: its first bytes. */
static void file_expect(const char *name, const char *suffix, const char *begin)
{
	char *path, *text;

	CHECK(asprintf(&path, "%s.%d.%s", name, (int)getpid(), suffix) > 0);
	text = file_take(path);
	CHECK_SAY(!strncmp(text, begin, strlen(begin)), "%s: %.20s", path, text);
	free(text);
	free(path);
}

/* Where the files go: here, into the temporary directory, or where an absolute name says; all are ELF. */
static void dump_names(void)
{
	struct flexio_process *p = host_process();
	char here[4096], absolute[4200], temporary[4200], other[4300];

	CHECK(getcwd(here, sizeof(here)));
	snprintf(absolute, sizeof(absolute), "%s/absolute", here);
	snprintf(temporary, sizeof(temporary), "%s/temporary", here);
	snprintf(other, sizeof(other), "%s/other", temporary);
	OK(flexio_coredump_create(p, "plain"));
	file_expect("plain", "core", "\177ELF");
	OK(flexio_coredump_create(p, NULL));
	file_expect("flexio_dev", "core", "\177ELF");
	OK(flexio_coredump_create(p, absolute));
	file_expect(absolute, "core", "\177ELF");
	/* Nothing can be made in a directory that is not there. */
	CHECK(!mkdir(temporary, 0700) && !setenv("TMPDIR", temporary, 1));
	OK(flexio_coredump_create(p, "no/such/directory/other"));
	OK(flexio_crash_data(p, "no/such/directory/other"));
	file_expect(other, "core", "\177ELF");
	file_expect(other, "crash", "DPA process");
	CHECK(!rmdir(temporary));
	OK(flexio_process_destroy(p));
}

static void finished(void)
{
	struct flexio_process *p = host_process();
	int fd = flexio_err_handler_fd(p);
	struct before before;
	uint64_t value;

	before_make(&before, p);
	CHECK(flexio_process_call(p, &finish, &value) != FLEXIO_STATUS_SUCCESS);
	CHECK(flexio_process_call(p, &nothing, &value) != FLEXIO_STATUS_SUCCESS);
	code_is_refused(p, &before, FLEXIO_STATUS_FAILED);
	CHECK(flexio_err_status_get(p) == FLEXIO_DEV_NO_ERROR && !readable(fd, 0));
	OK(flexio_process_destroy(p));
}

/* A call that ends as a handler does has failed, and nothing else has. */
static void left(void)
{
	struct flexio_process *p = host_process();
	uint64_t value;

	CHECK(flexio_process_call(p, &leave, &value) == FLEXIO_STATUS_FAILED);
	OK(flexio_process_call(p, &nothing, &value));
	CHECK(flexio_err_status_get(p) == FLEXIO_DEV_NO_ERROR);
	OK(flexio_process_destroy(p));
}

static void bad_arguments(void)
{
	CHECK(flexio_err_status_get(NULL) == FLEXIO_DEV_NO_ERROR);
	CHECK(flexio_err_handler_fd(NULL) == -1);
	FAILS(flexio_process_error_handler_set(NULL, &on_error));
	CHECK(flexio_log_lvl_set(FLEXIO_LOG_LVL_DBG) == FLEXIO_LOG_LVL_ERR);
	CHECK(flexio_log_lvl_set(FLEXIO_LOG_LVL_ERR) == FLEXIO_LOG_LVL_DBG);
}

/* The first process is silent, the second is not. */
static void log_levels(void)
{
	fprintf(stderr, "-- error\n");
	OK(flexio_process_destroy(host_process()));
	fprintf(stderr, "-- debug\n");
	flexio_log_lvl_set(FLEXIO_LOG_LVL_DBG);
	OK(flexio_process_destroy(host_process()));
	flexio_log_lvl_set(FLEXIO_LOG_LVL_INFO);
	fprintf(stderr, "-- info\n");
	OK(flexio_process_destroy(host_process()));
	flexio_log_lvl_set((enum flexio_log_lvl)77);
	CHECK(flexio_log_lvl_set(FLEXIO_LOG_LVL_ERR) == FLEXIO_LOG_LVL_INFO);
}

static void handler(void)
{
	flexio_msg_stream_attr_t attr = {.data_bsize = 2048, .level = FLEXIO_MSG_DEV_INFO};
	struct flexio_process *p = host_process();
	struct flexio_msg_stream *stream;
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	uint64_t value;

	OK(flexio_process_error_handler_set(p, &on_error));
	OK(flexio_msg_stream_create(p, &attr, out, NULL, &stream));
	CHECK(RESULT(p, &nothing) == 17);
	FAILS(flexio_process_error_handler_set(p, &on_error)); /* threads exist */
	CHECK(flexio_process_call(p, &fail, &value, (uint64_t)200) == FLEXIO_STATUS_FATAL_ERR);
	OK(flexio_msg_stream_destroy(stream));
	fflush(out);
	CHECK_SAY(!strcmp(text, "error handler 200\n"), "%s", text);
	OK(flexio_process_destroy(p));
	fclose(out);
	free(text);
}

/* A child has no DPA processes; the parent's go on. */
static void forked(void)
{
	struct flexio_process *p = host_process();
	uint64_t value;
	int status;
	pid_t pid;

	CHECK(RESULT(p, &nothing) == 17);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(flexio_process_call(p, &nothing, &value) != FLEXIO_STATUS_SUCCESS);
		/* One that has not been called before. */
		CHECK(flexio_process_call(p, &count, &value, (uint64_t)1) != FLEXIO_STATUS_SUCCESS);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(RESULT(p, &nothing) == 17);
	OK(flexio_process_destroy(p));
}

/* One thread more than there can be, by each way to make one. */
static void crowded(void)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &finish};
	struct flexio_process *p = host_process();
	struct flexio_cmdq_attr cmdq = one_worker;
	struct flexio_event_handler *eh;
	struct flexio_cmdq *q;
	uint64_t value;

	for (unsigned i = 0; i < 1024; i++)
		OK(flexio_event_handler_create(p, &attr, &eh));
	FAILS(flexio_event_handler_create(p, &attr, &eh));
	FAILS(flexio_cmdq_create(p, &cmdq, &q));
	FAILS(flexio_process_call(p, &nothing, &value));
	OK(flexio_process_destroy(p));
}

static void elf_write(const char *path)
{
	size_t bytes = flexio_app_get_elf_size(calls_app);
	uint64_t *elf = malloc(bytes);
	FILE *f = fopen(path, "w");

	CHECK(elf && f);
	OK(flexio_app_get_elf(calls_app, elf, bytes));
	CHECK(fwrite(elf, 1, bytes, f) == bytes && !fclose(f));
	free(elf);
}

/* The report names the line, and that of its caller. */
static void reported(void)
{
	struct flexio_process *p = host_process();
	uint64_t value;

	FAILS(flexio_crash_data(NULL, NULL));
	OK(flexio_crash_data(p, "quiet"));
	FAILS(flexio_crash_data(p, "/no/such/directory/x"));
	CHECK(flexio_process_call(p, &nested, &value, (uint64_t)0) == FLEXIO_STATUS_FATAL_ERR);
	OK(flexio_crash_data(p, "nested"));
	OK(flexio_coredump_create(p, "nested"));
	OK(flexio_coredump_create(p, NULL));
	FAILS(flexio_coredump_create(p, "/no/such/directory/x"));
	FAILS(flexio_coredump_create(NULL, "x"));
	elf_write("image");
	OK(flexio_process_destroy(p));
}

const struct host_case error_cases[] = {
	{"null_load", null_load},
	{"wild_store", wild_store},
	{"no_place", no_place},
	{"no_stack", no_stack},
	{"frame_too_large", frame_too_large},
	{"host_call", host_call},
	{"host_memory", host_memory},
	{"user_error", user_error},
	{"illegal_error", illegal_error},
	{"dump_names", dump_names},
	{"finished", finished},
	{"left", left},
	{"bad_arguments", bad_arguments},
	{"handler", handler},
	{"log_levels", log_levels},
	{"forked", forked},
	{"reported", reported},
	{"crowded", crowded},
	{NULL, NULL},
};
