// SPDX-License-Identifier: BSD-2-Clause
/* The host program of tests/flexio/race; the argument is the name of a case. */
#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <pthread.h>
#include <string.h>

#include "check.h"
#include "race.h"

extern struct flexio_app *race_app;
extern flexio_func_t two, handles, activates, activates_early;

#define OK(call) CHECK((call) == FLEXIO_STATUS_SUCCESS)

struct caller {
	struct flexio_process *p;
	uint64_t which, who;
	pthread_t thread;
};

static void *caller_main(void *arg)
{
	const struct caller *c = arg;
	uint64_t value;

	OK(flexio_process_call(c->p, &two, &value, c->which, c->who));
	return NULL;
}

static void both(struct flexio_process *p, uint64_t which)
{
	struct caller callers[2];

	for (uint64_t i = 0; i < 2; i++) {
		callers[i] = (struct caller){.p = p, .which = which, .who = i};
		CHECK(!pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]));
	}
	for (uint64_t i = 0; i < 2; i++)
		CHECK(!pthread_join(callers[i].thread, NULL));
}

static void activated(struct flexio_process *p, flexio_func_t *f)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &handles};
	struct flexio_event_handler *eh;
	uint64_t value;

	OK(flexio_event_handler_create(p, &attr, &eh));
	OK(flexio_event_handler_run(eh, 0));
	OK(flexio_process_call(p, f, &value, (uint64_t)flexio_event_handler_get_id(eh)));
	OK(flexio_event_handler_destroy(eh));
}

int main(int argc, char **argv)
{
	static const char *const names[] = {
		[PLAIN] = "plain",	     [ATOMIC] = "atomic", [HALF] = "half",
		[LOCKED] = "locked",	     [HANDED] = "handed", [RELAXED] = "relaxed",
		[FENCED] = "fenced",	     [WINDOW] = "window", [COPIED] = "copied",
		[NEIGHBOURS] = "neighbours",
	};
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct flexio_process *p;
	struct ibv_context *ctx;

	CHECK(argc > 1 && list && list[0]);
	ctx = mlx5dv_open_device(list[0], &attr);
	CHECK(ctx);
	ibv_free_device_list(list);
	OK(flexio_process_create(ctx, race_app, NULL, &p));
	for (uint64_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(argv[1], names[i]))
			both(p, i);
	if (!strcmp(argv[1], "activated"))
		activated(p, &activates);
	if (!strcmp(argv[1], "early"))
		activated(p, &activates_early);
	OK(flexio_process_destroy(p));
	CHECK(!ibv_close_device(ctx));
	return 0;
}
