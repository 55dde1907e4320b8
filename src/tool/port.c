// SPDX-License-Identifier: BSD-2-Clause
/* softhca fabric port: pulls a port's cable, or puts it back. */
#include <string.h>

#include "fabric/client/link.h"
#include "tool/view.h"

static const struct {
	const char *word;
	enum ib_port_state state;
} states[] = {
	{"down", IB_PORT_DOWN},
	{"up", IB_PORT_ACTIVE},
};

static bool state_of(const char *word, enum ib_port_state *state)
{
	for (size_t i = 0; i < array_size(states); i++) {
		if (strcmp(states[i].word, word) != 0)
			continue;
		*state = states[i].state;
		return true;
	}
	return false;
}

/* "HOST/HCA" or "HCA"; the host goes into the session. */
static const char *split_name(struct session *s, const char *name)
{
	static char host[FABRIC_NAME_BYTES];
	const char *slash = strchr(name, '/');
	size_t n;

	if (!slash)
		return name;
	n = (size_t)(slash - name);
	if (n >= sizeof(host))
		return NULL;
	memcpy(host, name, n);
	host[n] = '\0';
	if (!fabric_name_ok(host))
		return NULL;
	s->host = host;
	return slash + 1;
}

static bool find_row(const struct session *s, struct view *v, const char *hca,
		     struct msg_host_reply *host, uint32_t *row)
{
	uint32_t index;

	if (!session_host(s, v->sock, host, &index))
		return false;
	/* Once more, with its rows checked. */
	for (uint32_t i = 0; view_host(v, index, host) && i < host->nports; i++) {
		*row = host->rows[i];
		if (!strncmp(v->registry->ports[*row].hca, hca, sizeof(v->registry->ports[0].hca)))
			return true;
	}
	tool_error(s->command, "host '%s' has no device '%s'; see softhca devices", host->name,
		   hca);
	return false;
}

int command_fabric_port(struct session *s, int argc, char **argv)
{
	struct msg_host_reply host;
	enum ib_port_state state;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	const char *hca;
	uint32_t row;
	struct view v;
	int ret;

	if (argc != 2) {
		tool_error(s->command, "it takes a device and a state; see %s --help", s->command);
		return EXIT_USAGE;
	}
	hca = split_name(s, argv[0]);
	if (!hca || !fabric_name_ok(hca)) {
		tool_error(s->command, "'%s' is not the name of a device, [HOST/]HCA", argv[0]);
		return EXIT_USAGE;
	}
	if (!state_of(argv[1], &state)) {
		tool_error(s->command, "a port can be taken down or up, not '%s'", argv[1]);
		return EXIT_USAGE;
	}
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	if (!find_row(s, &v, hca, &host, &row)) {
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
	printf("%s/%s is %s\n", host.name, hca, argv[1]);
	return 0;
}
