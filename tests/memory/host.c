// SPDX-License-Identifier: BSD-2-Clause
/*
 * See host.h.
 *
 *	host DEVICE CASE
 *	host --list
 */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_S 180 /* nothing may hang */

static const struct host_case *const lists[] = {page_cases,  process_cases, kernel_cases,
						limit_cases, flow_cases,    space_cases};

#define LISTS (sizeof(lists) / sizeof(*lists))

/* ---- the program ---- */

static const struct host_case *find_case(const char *name)
{
	for (size_t i = 0; i < LISTS; i++)
		for (const struct host_case *c = lists[i]; c->name; c++)
			if (!strcmp(c->name, name))
				return c;
	device_die("no case is called '%s'", name);
}

static int list_cases(void)
{
	for (size_t i = 0; i < LISTS; i++)
		for (const struct host_case *c = lists[i]; c->name; c++)
			puts(c->name);
	return 0;
}

int main(int argc, char **argv)
{
	const struct host_case *c;
	struct host h = {0};

	peer_program(argc, argv);
	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list_cases();
	if (argc == 4 && !strcmp(argv[1], "--image"))
		return host_image(atoi(argv[2]), atoi(argv[3]));
	if (argc != 3)
		device_die("usage: host DEVICE CASE | --list");
	c = find_case(argv[2]);
	h.device = argv[1];
	alarm(LIMIT_S);
	peer_start(&h.peer, &h.side, h.device);
	if (c->early)
		c->early(&h);
	side_open(&h.side, h.device);
	peer_connect(&h.peer);
	c->run(&h);
	peer_end(&h.peer);
	side_close(&h.side);
	return 0;
}
