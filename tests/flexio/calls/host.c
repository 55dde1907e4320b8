// SPDX-License-Identifier: BSD-2-Clause
/* The host program of tests/flexio/calls; the arguments are names of cases. */
#include "host.h"

#include <string.h>

struct ibv_context *host_device(void)
{
	static struct ibv_context *ctx;
	struct ibv_device **list;

	if (ctx)
		return ctx;
	list = ibv_get_device_list(NULL);
	CHECK(list && list[0]);
	ctx = ibv_open_device(list[0]);
	CHECK(ctx);
	ibv_free_device_list(list);
	return ctx;
}

struct flexio_process *host_process(void)
{
	struct flexio_process *p;

	OK(flexio_process_create(host_device(), calls_app, NULL, &p));
	CHECK(p);
	return p;
}

static void case_run(const char *name)
{
	const struct host_case *const all[] = {app_cases,  memory_cases, call_cases, error_cases,
					       cmdq_cases, window_cases, end_cases};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct host_case *c = all[i]; c->name; c++)
			if (!strcmp(c->name, name)) {
				c->run();
				return;
			}
	CHECK_SAY(false, "no case %s", name);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		case_run(argv[i]);
	return 0;
}
