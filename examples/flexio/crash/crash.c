// SPDX-License-Identifier: BSD-2-Clause
/*
 * Device code that fails, and a program that goes on.  The device adds up a list, one of whose links leads nowhere:
 * the DPA process ends, its error descriptor becomes readable, the report names function and line, and the core
 * file can be opened by gdb beside the image.  Then a new process does the work.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <libflexio/flexio.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "list.h"

#define NODES 3u

extern struct flexio_app *crash_app;
extern flexio_func_t sum_list;

static void check(flexio_status status, const char *what)
{
	if (status != FLEXIO_STATUS_SUCCESS) {
		fprintf(stderr, "%s: status %d\n", what, (int)status);
		exit(1);
	}
}

static struct ibv_context *open_first_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (list)
		ibv_free_device_list(list);
	if (!context) {
		fprintf(stderr, "there is no device: try softhca run -- ...\n");
		exit(1);
	}
	return context;
}

/* The numbers 10, 20, 30; the last link is as given. */
static flexio_uintptr_t make_list(struct flexio_process *process, uint64_t last_link)
{
	struct node nodes[NODES];
	flexio_uintptr_t first;

	check(flexio_buf_dev_alloc(process, sizeof(nodes), &first), "flexio_buf_dev_alloc");
	for (uint64_t i = 0; i < NODES; i++)
		nodes[i] = (struct node){
			.next = i + 1 < NODES ? first + (i + 1) * sizeof(nodes[0]) : last_link,
			.number = 10 * (i + 1),
		};
	check(flexio_host2dev_memcpy(process, nodes, sizeof(nodes), first),
	      "flexio_host2dev_memcpy");
	return first;
}

static void look_at_failure(struct flexio_process *process, int error_fd)
{
	struct pollfd errors = {.fd = error_fd, .events = POLLIN};

	if (poll(&errors, 1, 10000) != 1 ||
	    flexio_err_status_get(process) != FLEXIO_DEV_FATAL_ERROR) {
		fprintf(stderr, "the device says nothing of the failure\n");
		exit(1);
	}
	/* Files list.NUMBER.crash and list.NUMBER.core; the report also comes here. */
	check(flexio_crash_data(process, "list"), "flexio_crash_data");
	check(flexio_coredump_create(process, "list"), "flexio_coredump_create");
}

/* Zero: it failed. */
static uint64_t sum_with_last_link(struct ibv_context *context, uint64_t last_link)
{
	struct flexio_process *process;
	uint64_t sum = 0;
	flexio_status status;
	int error_fd;

	check(flexio_process_create(context, crash_app, NULL, &process), "flexio_process_create");
	/* For poll(2) in the loop of events, if the program has one; a call says by itself that it failed. */
	error_fd = flexio_err_handler_fd(process);
	status = flexio_process_call(process, sum_list, &sum, make_list(process, last_link));
	if (status == FLEXIO_STATUS_FATAL_ERR)
		look_at_failure(process, error_fd);
	else
		check(status, "flexio_process_call");
	check(flexio_process_destroy(process), "flexio_process_destroy");
	return sum;
}

int main(void)
{
	struct ibv_context *context = open_first_device();
	uint64_t broken = sum_with_last_link(context, 0x1234);
	uint64_t whole = sum_with_last_link(context, 0);

	printf("the program goes on: the sum of a whole list is %" PRIu64 "\n", whole);
	ibv_close_device(context);
	return !broken && whole == 60 ? 0 : 1;
}
