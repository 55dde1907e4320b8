// SPDX-License-Identifier: BSD-2-Clause
/* softhca devices: the HCAs of one host or of all. */
#include <string.h>

#include "fabric/cm.h"
#include "tool/view.h"

struct line {
	const char *host;
	const struct subnet_node *node;
	const struct subnet_port *port;
	char guid[32], state[32], link[32], rate[64], lid[16];
	char address[16], loopback[16]; /* by which rdma_cm finds the port */
};

static void line_fill(struct view *v, struct line *l, const char *host, uint32_t row)
{
	const struct subnet_port *p = &v->subnet.ports[row];
	uint8_t ip[4];

	l->host = host;
	l->port = p;
	l->node = subnet_node_of(&v->subnet, row);
	cm_port_address(l->node->host, p->host_index, ip);
	snprintf(l->address, sizeof(l->address), "%u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
	snprintf(l->loopback, sizeof(l->loopback), "127.%u.%u.%u", ip[1], ip[2], ip[3]);
	view_guid(l->node->guid, l->guid, sizeof(l->guid));
	view_attr(v, row, ATTR_STATE, l->state, sizeof(l->state));
	view_attr(v, row, ATTR_LINK_LAYER, l->link, sizeof(l->link));
	view_attr(v, row, ATTR_RATE, l->rate, sizeof(l->rate));
	view_attr(v, row, ATTR_LID, l->lid, sizeof(l->lid));
}

static const char *state_name(const char *text)
{
	const char *colon = strstr(text, ": ");

	return colon ? colon + 2 : text;
}

static void line_print(const struct line *l)
{
	printf("%-10s %-8s %s  %-10s  %-6s  lid %-6s %-20s %-12s %-12s %s\n", l->host,
	       l->node->name, l->guid, l->link, state_name(l->state), l->lid, l->rate, l->address,
	       l->loopback, l->port->netdev);
}

static void line_json(struct json *j, const struct line *l)
{
	json_open(j, NULL, '{');
	json_string(j, "host", l->host);
	json_string(j, "device", l->node->name);
	json_string(j, "node_guid", l->guid);
	json_string(j, "link_layer", l->link);
	json_string(j, "state", state_name(l->state));
	json_string(j, "lid", l->lid);
	json_string(j, "rate", l->rate);
	json_open(j, "addresses", '[');
	json_string(j, NULL, l->address);
	json_string(j, NULL, l->loopback);
	json_close(j, ']');
	json_string(j, "netdev", l->port->netdev);
	json_close(j, '}');
}

int command_devices(struct session *s, int argc, char **argv)
{
	struct json json = {stdout, true};
	struct msg_host_reply host, only;
	bool found = false;
	struct line line;
	struct view v;

	if (argc) {
		tool_error(s->command, "unexpected argument: %s", argv[0]);
		return EXIT_USAGE;
	}
	if (!view_open(s, true, &v))
		return EXIT_OURS;
	if (s->host && !session_host(s, v.sock, &only)) {
		view_close(&v);
		return EXIT_OURS;
	}
	if (s->json)
		json_open(&json, NULL, '[');
	for (uint32_t h = 0; view_host(&v, h, &host); h++) {
		if (s->host && strcmp(only.name, host.name) != 0)
			continue;
		found = true;
		for (uint32_t i = 0; i < host.nports; i++) {
			line_fill(&v, &line, host.name, host.rows[i]);
			if (s->json)
				line_json(&json, &line);
			else
				line_print(&line);
		}
	}
	if (s->json) {
		json_close(&json, ']');
		putchar('\n');
	}
	view_close(&v);
	if (s->host && !found) {
		tool_error(s->command, "'%s' is a switch, which has no devices", s->host);
		return EXIT_OURS;
	}
	return 0;
}
