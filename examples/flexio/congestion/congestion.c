// SPDX-License-Identifier: BSD-2-Clause
/*
 * Congestion control: the DPA decides how fast the queue pairs of a port send, those of all programs on
 * the host.
 *
 *	make && softhca run -- ./congestion [MEGABYTES [SECONDS [react]]]
 *
 * Each flow of mlx5_1 gets that many megabytes a second (100); with "react" the handler cuts that when
 * the receiver tells of congestion, and gives back what round trips without any allow.  Meanwhile run
 * what sends from another terminal, as ib_write_bw -d mlx5_1.  Prints what was sent after each second, ends
 * after so many (0: by an interrupt).
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <libflexio/flexio.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "congestion.h"

extern struct flexio_app *congestion_app;
extern flexio_func_t control_flows, control_read, control_limit;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signum)
{
	(void)signum;
	interrupted = 1;
}

static void check(flexio_status status, const char *what)
{
	if (status != FLEXIO_STATUS_SUCCESS) {
		fprintf(stderr, "%s: status %d\n", what, (int)status);
		exit(1);
	}
}

static int is_ethernet(struct ibv_context *context)
{
	struct ibv_port_attr attr;

	return !ibv_query_port(context, 1, &attr) && attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

static struct ibv_context *open_ethernet_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (unsigned i = 0; list && list[i] && !context; i++) {
		context = ibv_open_device(list[i]);
		if (context && !is_ethernet(context)) {
			ibv_close_device(context);
			context = NULL;
		}
	}
	if (list)
		ibv_free_device_list(list);
	if (!context) {
		fprintf(stderr, "there is no Ethernet device: try softhca run -- ...\n");
		exit(1);
	}
	return context;
}

static uint64_t control_word(struct flexio_process *process, flexio_uintptr_t control,
			     enum control_word word)
{
	uint64_t value;

	check(flexio_process_call(process, control_read, &value, control, (uint64_t)word),
	      "flexio_process_call");
	return value;
}

static void report(struct flexio_process *process, flexio_uintptr_t control, uint64_t *before)
{
	uint64_t bytes = control_word(process, control, CONTROL_BYTES);

	printf("%" PRIu64 " flows, %.1f MB in this second, %" PRIu64 " events, %" PRIu64
	       " notifications, %" PRIu64 " round trips, the shortest %" PRIu64 " ns, rate %" PRIu64
	       " (lowest %" PRIu64 ")\n",
	       control_word(process, control, CONTROL_FLOWS), (double)(bytes - *before) / 1e6,
	       control_word(process, control, CONTROL_EVENTS),
	       control_word(process, control, CONTROL_NOTIFIED),
	       control_word(process, control, CONTROL_PROBES),
	       control_word(process, control, CONTROL_SHORTEST_NS),
	       control_word(process, control, CONTROL_LAST_RATE),
	       control_word(process, control, CONTROL_LOWEST_RATE));
	fflush(stdout);
	*before = bytes;
}

int main(int argc, char **argv)
{
	struct control control = {
		.megabytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 100,
		.reacts = argc > 3 && !strcmp(argv[3], "react"),
	};
	unsigned long seconds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	struct flexio_event_handler_attr handler_attr = {.host_stub_func = control_flows};
	struct flexio_process_attr process_attr = {.en_pcc = 1};
	struct ibv_context *context = open_ethernet_device();
	struct flexio_event_handler *handler;
	struct flexio_process *process;
	flexio_uintptr_t address;
	uint64_t bytes = 0;

	signal(SIGINT, on_interrupt);
	signal(SIGTERM, on_interrupt);
	check(flexio_process_create(context, congestion_app, &process_attr, &process),
	      "flexio_process_create");
	check(flexio_copy_from_host(process, &control, sizeof(control), &address),
	      "flexio_copy_from_host");
	check(flexio_event_handler_create(process, &handler_attr, &handler),
	      "flexio_event_handler_create");
	check(flexio_event_handler_run(handler, address), "flexio_event_handler_run");
	printf("the flows of %s get %" PRIu64 " MB/s\n", ibv_get_device_name(context->device),
	       control.megabytes);
	fflush(stdout);
	for (unsigned long s = 0; !interrupted && (!seconds || s < seconds); s++) {
		sleep(1);
		report(process, address, &bytes);
	}
	check(flexio_event_handler_destroy(handler), "flexio_event_handler_destroy");
	check(flexio_process_destroy(process), "flexio_process_destroy");
	ibv_close_device(context);
	return 0;
}
