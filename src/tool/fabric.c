// SPDX-License-Identifier: BSD-2-Clause
/* softhca fabric up and status. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/client/link.h"
#include "tool/reach.h"
#include "tool/tied.h"
#include "tool/view.h"

static bool no_arguments(const struct session *s, int argc, char **argv)
{
	if (argc)
		tool_error(s->command, "unexpected argument: %s", argv[0]);
	return !argc;
}

int command_fabric_up(struct session *s, int argc, char **argv)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int sock;

	if (!no_arguments(s, argc, argv))
		return EXIT_USAGE;
	sock = session_link(s, true, &m, MSG_STAY, fds);
	if (sock < 0)
		return EXIT_OURS;
	close(sock);
	printf("fabric %s is up in %s\n", s->fabric, s->dir);
	return 0;
}

/* ---- status ---- */

static uint64_t lid_of(const struct subnet_port *p)
{
	return atomic_load_explicit(&p->lid, memory_order_relaxed);
}

/* Prints the counters that are not zero. */
static void counters_print(const struct counter_attr *table, uint32_t n,
			   const struct msg_counters_reply *c)
{
	for (uint32_t i = 0; i < n; i++)
		if (table[i].counter >= 0 && c->total[table[i].counter])
			printf("    %s %" PRIu64 "\n", table[i].name, c->total[table[i].counter]);
}

static void port_print(struct view *v, uint32_t row)
{
	const struct subnet_port *p = &v->subnet.ports[row];
	const struct subnet_node *node = subnet_node_of(&v->subnet, row);
	struct subnet_gid_entry gid;
	char state[32], link[32], rate[64], text[64];
	const struct msg_counters_reply *c = &v->counters[row];

	view_attr(v, row, ATTR_STATE, state, sizeof(state));
	view_attr(v, row, ATTR_LINK_LAYER, link, sizeof(link));
	view_attr(v, row, ATTR_RATE, rate, sizeof(rate));
	view_guid(p->guid, text, sizeof(text));
	printf("  %s port %u: %s, %s, lid 0x%" PRIx64 ", sm lid 0x%x, %s, guid %s", node->name,
	       p->number, link, state, lid_of(p), atomic_load(&p->sm_lid), rate, text);
	printf(p->netdev[0] ? ", netdev %s\n" : "\n", p->netdev);
	tied_print(v, row);
	for (uint32_t i = 0; i < subnet_port_gids(p); i++) {
		if (!subnet_gid(&v->subnet, row, i, &gid))
			continue;
		view_gid(&gid.gid, text, sizeof(text));
		printf("    gid %-2u %s  %s\n", i, text, view_gid_type(p, gid.type));
	}
	counters_print(counter_attrs, ncounter_attrs, c);
	counters_print(violation_attrs, nviolation_attrs, c);
	counters_print(hw_counter_attrs, nhw_counter_attrs, c);
}

static void counters_json(struct json *j, const char *key, const struct counter_attr *table,
			  uint32_t n, const struct msg_counters_reply *c)
{
	json_open(j, key, '{');
	for (uint32_t i = 0; i < n; i++)
		json_number(j, table[i].name,
			    table[i].counter < 0 ? table[i].fixed : c->total[table[i].counter]);
	json_close(j, '}');
}

static void port_json(struct view *v, struct json *j, uint32_t row)
{
	const struct subnet_port *p = &v->subnet.ports[row];
	const struct subnet_node *node = subnet_node_of(&v->subnet, row);
	struct subnet_gid_entry gid;
	const struct msg_counters_reply *c = &v->counters[row];
	char text[64];

	json_open(j, NULL, '{');
	json_string(j, "device", node->name);
	json_number(j, "port", p->number);
	tied_json(v, j, row);
	for (uint32_t i = 0; i < PORT_ATTRS; i++) {
		view_attr(v, row, (enum port_attr)i, text, sizeof(text));
		json_string(j, port_attr_name[i], text);
	}
	view_guid(node->guid, text, sizeof(text));
	json_string(j, "node_guid", text);
	view_guid(p->guid, text, sizeof(text));
	json_string(j, "port_guid", text);
	json_string(j, "netdev", p->netdev);
	json_open(j, "gids", '[');
	for (uint32_t i = 0; i < subnet_port_gids(p); i++) {
		if (!subnet_gid(&v->subnet, row, i, &gid))
			continue;
		view_gid(&gid.gid, text, sizeof(text));
		json_open(j, NULL, '{');
		json_number(j, "index", i);
		json_string(j, "gid", text);
		json_string(j, "type", view_gid_type(p, gid.type));
		json_close(j, '}');
	}
	json_close(j, ']');
	counters_json(j, "counters", counter_attrs, ncounter_attrs, c);
	counters_json(j, "violations", violation_attrs, nviolation_attrs, c);
	counters_json(j, "hw_counters", hw_counter_attrs, nhw_counter_attrs, c);
	json_close(j, '}');
}

/* Says what a client lays open, if we can tell. */
static void client_reach(const struct reach *r, uint32_t slot, struct json *j)
{
	const struct reach_process *p = r ? reach_find(r, slot) : NULL;

	if (p && j)
		reach_json(j, r, p);
	else if (p)
		reach_print(r, p);
}

static void clients_show(struct view *v, const struct reach *r, struct json *j)
{
	int fds[MSG_MAX_FDS];

	if (j)
		json_open(j, "clients", '[');
	for (uint32_t i = 0; i < REGISTRY_SLOTS; i++) {
		struct msg m = {.index.index = i};
		struct msg_host_reply host;

		if (link_call(v->sock, &m, MSG_SLOT, fds) || !m.slot_reply.used ||
		    !view_host(v, m.slot_reply.host, &host))
			continue;
		if (!j) {
			printf("client: slot %u, pid %d, %s\n", i, m.slot_reply.pid, host.name);
			client_reach(r, i, NULL);
			continue;
		}
		json_open(j, NULL, '{');
		json_number(j, "slot", i);
		json_number(j, "pid", (uint64_t)m.slot_reply.pid);
		json_string(j, "host", host.name);
		client_reach(r, i, j);
		json_close(j, '}');
	}
	if (j)
		json_close(j, ']');
}

static void reach_show(struct view *v, struct json *j)
{
	struct reach *r = malloc(sizeof(*r));
	bool known = r && reach_open(v, r);

	clients_show(v, known ? r : NULL, j);
	if (known)
		reach_close(r);
	free(r);
}

static void status_json(const struct session *s, struct view *v)
{
	struct json j = {stdout, true};
	struct msg_host_reply host;

	json_open(&j, NULL, '{');
	json_string(&j, "fabric", s->fabric);
	json_bool(&j, "running", true);
	json_string(&j, "directory", s->dir);
	json_string(&j, "version", v->info.release);
	json_string(&j, "model", v->info.model);
	json_number(&j, "pid", (uint64_t)v->info.pid);
	json_bool(&j, "stay", v->info.stay);
	json_number(&j, "connections", v->info.connections - 1);
	json_open(&j, "hosts", '[');
	for (uint32_t h = 0; view_host(v, h, &host); h++) {
		json_open(&j, NULL, '{');
		json_string(&j, "name", host.name);
		json_open(&j, "ports", '[');
		for (uint32_t i = 0; i < host.nports; i++)
			port_json(v, &j, host.rows[i]);
		json_close(&j, ']');
		json_close(&j, '}');
	}
	json_close(&j, ']');
	reach_show(v, &j);
	json_close(&j, '}');
	putchar('\n');
}

static void status_print(const struct session *s, struct view *v)
{
	struct msg_host_reply host;

	/* Does not count our own connection, which nobody wants to hear of. */
	printf("fabric %s: %s, softhcad %s, pid %d, in %s, %u connections%s\n", s->fabric,
	       v->info.model, v->info.release, v->info.pid, s->dir, v->info.connections - 1,
	       v->info.stay ? ", stays up" : "");
	for (uint32_t h = 0; view_host(v, h, &host); h++) {
		printf("%s\n", host.name);
		for (uint32_t i = 0; i < host.nports; i++)
			port_print(v, host.rows[i]);
	}
	reach_show(v, NULL);
}

static int status_absent(const struct session *s)
{
	struct json j = {stdout, true};

	if (s->json) {
		json_open(&j, NULL, '{');
		json_string(&j, "fabric", s->fabric);
		json_bool(&j, "running", false);
		json_close(&j, '}');
		putchar('\n');
	} else {
		printf("fabric %s is not running\n", s->fabric);
	}
	return 1;
}

int command_fabric_status(struct session *s, int argc, char **argv)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	struct view v;
	bool loaded;
	int sock;

	if (!no_arguments(s, argc, argv))
		return EXIT_USAGE;
	sock = link_open(s->dir, NULL, &m, MSG_INFO, fds);
	if (sock == -ECONNREFUSED)
		return status_absent(s);
	if (sock < 0) {
		session_link_error(s, sock);
		return EXIT_OURS;
	}
	if (!view_take(s, sock, &m, fds, &v))
		return EXIT_OURS;
	loaded = view_load(s, &v);
	if (loaded && s->json)
		status_json(s, &v);
	else if (loaded)
		status_print(s, &v);
	view_close(&v);
	return loaded ? 0 : EXIT_OURS;
}
