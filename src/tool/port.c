// SPDX-License-Identifier: BSD-2-Clause
/* softhca fabric port: pulls a port's cable, or puts it back. */
#include <string.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "tool/view.h"

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

/* Splits "HOST/HCA" or "HCA"; the host goes into the session. */
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

/* Splits "HCA:PORT", or "HCA" for port 1.  False if PORT is no number of a port. */
static bool split_port(char *hca, uint32_t *port)
{
	char *colon = strchr(hca, ':');

	*port = 1;
	if (!colon)
		return true;
	*colon = '\0';
	return text_number(colon + 1, UINT8_MAX, port);
}

static bool find_row(const struct session *s, struct view *v, const char *hca, uint32_t port,
		     struct msg_host_reply *host, uint32_t *row)
{
	if (!session_host(s, v->sock, host))
		return false;
	/* Asks once more, because view_host checks the rows. */
	for (uint32_t i = 0; view_host(v, host->index, host) && i < host->nports; i++) {
		const struct subnet_node *node = subnet_node_of(&v->subnet, host->rows[i]);

		*row = host->rows[i];
		if (!strncmp(node->name, hca, sizeof(node->name)) &&
		    v->subnet.ports[*row].number == port)
			return true;
	}
	tool_error(s->command, "host '%s' has no device '%s' with a port %u; see softhca devices",
		   host->name, hca, port);
	return false;
}

int command_fabric_port(struct session *s, int argc, char **argv)
{
	struct msg_host_reply host;
	enum ib_port_state state;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	char hca[FABRIC_NAME_BYTES];
	const char *name;
	uint32_t row, port;
	struct view v;
	int ret;

	if (argc != 2) {
		tool_error(s->command, "it takes a device and a state; see %s --help", s->command);
		return EXIT_USAGE;
	}
	name = split_name(s, argv[0]);
	if (!name || !text_copy(hca, sizeof(hca), name) || !split_port(hca, &port) ||
	    !fabric_name_ok(hca)) {
		tool_error(s->command, "'%s' is not the name of a port, [HOST/]HCA[:PORT]",
			   argv[0]);
		return EXIT_USAGE;
	}
	if (!port_state_of(argv[1], &state)) {
		tool_error(s->command, "a port can be taken down or up, not '%s'", argv[1]);
		return EXIT_USAGE;
	}
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	if (!find_row(s, &v, hca, port, &host, &row)) {
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
	printf("%s/%s is %s\n", host.name, name, argv[1]);
	return 0;
}
