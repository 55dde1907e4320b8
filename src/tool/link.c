// SPDX-License-Identifier: BSD-2-Clause
/*
 * What users change by hand on the subnet's hardware: softhca fabric link, node and port.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "tool/view.h"

/* ---- links and nodes ---- */

#define PORTS_MAX 254u

/* Prints an error of the daemon that is about what was named; the session prints the others. */
static int link_error(const struct session *s, int error, const char *node, const char *port)
{
	switch (error) {
	case -ENOENT:
		tool_error(s->command, "no node '%s' is in the subnet; see softhca fabric show",
			   node);
		break;
	case -ENOTUNIQ:
		session_called_twice(s, node);
		break;
	case -ENXIO:
		tool_error(s->command, "'%s' has no port %s", node, port);
		break;
	case -ENOLINK:
		tool_error(s->command, "'%s' port %s has no cable", node, port);
		break;
	default:
		session_link_error(s, error);
	}
	return EXIT_OURS;
}

static int link_ask(const struct session *s, struct msg *m, enum msg_type type, const char *node,
		    const char *port)
{
	int fds[MSG_MAX_FDS];
	struct view v;
	int ret;

	if (!view_open(s, false, &v))
		return EXIT_OURS;
	ret = link_call(v.sock, m, type, fds);
	view_close(&v);
	return ret ? link_error(s, ret, node, port) : 0;
}

/* Tells which of two words it is, or that it is neither. */
static bool word_of(const struct session *s, const char *word, const char *first, const char *other,
		    bool *is_first)
{
	*is_first = !strcmp(word, first);
	if (*is_first || !strcmp(word, other))
		return true;
	tool_error(s->command, "%s or %s, not '%s'", first, other, word);
	return false;
}

int command_fabric_link(struct session *s, int argc, char **argv)
{
	struct msg m = {0};
	uint32_t port;
	bool up;
	int ret;

	if (argc != 3) {
		tool_error(s->command, "it takes down or up, a node and a port; see %s --help",
			   s->command);
		return EXIT_USAGE;
	}
	if (!word_of(s, argv[0], "up", "down", &up))
		return EXIT_USAGE;
	if (!text_number(argv[2], PORTS_MAX, &port)) {
		tool_error(s->command, "'%s' is not the number of a port", argv[2]);
		return EXIT_USAGE;
	}
	m.link.port = port;
	m.link.up = up;
	if (!text_copy(m.link.node, sizeof(m.link.node), argv[1]))
		return link_error(s, -ENOENT, argv[1], argv[2]);
	ret = link_ask(s, &m, MSG_LINK, argv[1], argv[2]);
	if (!ret)
		printf("the link of %s port %s is %s\n", argv[1], argv[2], argv[0]);
	return ret;
}

int command_fabric_node(struct session *s, int argc, char **argv)
{
	struct msg m = {0};
	bool there;
	int ret;

	if (argc != 2) {
		tool_error(s->command, "it takes remove or add and a node; see %s --help",
			   s->command);
		return EXIT_USAGE;
	}
	if (!word_of(s, argv[0], "add", "remove", &there))
		return EXIT_USAGE;
	m.node.there = there;
	if (!text_copy(m.node.node, sizeof(m.node.node), argv[1]))
		return link_error(s, -ENOENT, argv[1], "");
	ret = link_ask(s, &m, MSG_NODE, argv[1], "");
	if (!ret)
		printf("%s is %s the subnet\n", argv[1], there ? "in" : "out of");
	return ret;
}

/* ---- ports: pulls a cable, or puts it back ---- */

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

bool port_change_read(const struct session *s, int argc, char **argv, struct port_change *out)
{
	if (argc != 2) {
		tool_error(s->command, "it takes a device and a state; see %s --help", s->help);
		return false;
	}
	if (!port_name_read(s, argv[0], &out->name))
		return false;
	if (port_state_of(argv[1], &out->state))
		return true;
	tool_error(s->command, "a port can be taken down or up, not '%s'", argv[1]);
	return false;
}

int port_change_make(const struct session *s, struct view *v, const struct port_change *c)
{
	struct msg_host_reply host;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	uint32_t row;
	int ret;

	if (!port_name_find(s, v, &c->name, &host, &row))
		return EXIT_OURS;
	m.set_port = (struct msg_set_port){.row = row, .state = c->state};
	ret = link_call(v->sock, &m, MSG_SET_PORT, fds);
	if (ret)
		session_link_error(s, ret);
	return ret ? EXIT_OURS : 0;
}

int command_fabric_port(struct session *s, int argc, char **argv)
{
	struct port_change change;
	struct msg_host_reply host;
	struct view v;
	uint32_t row;
	int status;

	if (!port_change_read(s, argc, argv, &change))
		return EXIT_USAGE;
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	status = port_change_make(s, &v, &change);
	if (!status && port_name_find(s, &v, &change.name, &host, &row))
		printf("%s/%s is %s\n", host.name,
		       strchr(argv[0], '/') ? strchr(argv[0], '/') + 1 : argv[0], argv[1]);
	view_close(&v);
	return status;
}
