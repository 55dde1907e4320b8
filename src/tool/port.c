// SPDX-License-Identifier: BSD-2-Clause
/* softhca fabric port: pulls a port's cable, or puts it back. */
#include <string.h>

#include "fabric/client/link.h"
#include "tool/port_name.h"

static const struct {
	const char *word;
	enum ib_port_state state;
} states[] = {
	{"down", IB_PORT_DOWN},
	{"up", IB_PORT_ACTIVE},
};

static bool port_state_of(const char *word, enum ib_port_state *state)
{
	for (size_t i = 0; i < array_size(states); i++) {
		if (strcmp(states[i].word, word) != 0)
			continue;
		*state = states[i].state;
		return true;
	}
	return false;
}

int command_fabric_port(struct session *s, int argc, char **argv)
{
	struct msg_host_reply host;
	enum ib_port_state state;
	struct port_name name;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	struct view v;
	uint32_t row;
	int ret;

	if (argc != 2) {
		tool_error(s->command, "it takes a device and a state; see %s --help", s->command);
		return EXIT_USAGE;
	}
	if (!port_name_read(s, argv[0], &name))
		return EXIT_USAGE;
	if (!port_state_of(argv[1], &state)) {
		tool_error(s->command, "a port can be taken down or up, not '%s'", argv[1]);
		return EXIT_USAGE;
	}
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	if (!port_name_find(s, &v, &name, &host, &row)) {
		view_close(&v);
		return EXIT_OURS;
	}
	m.set_port = (struct msg_set_port){.row = row, .state = state};
	ret = link_call(v.sock, &m, MSG_SET_PORT, fds);
	view_close(&v);
	if (ret) {
		session_link_error(s, ret);
		return EXIT_OURS;
	}
	printf("%s/%s is %s\n", host.name,
	       strchr(argv[0], '/') ? strchr(argv[0], '/') + 1 : argv[0], argv[1]);
	return 0;
}
