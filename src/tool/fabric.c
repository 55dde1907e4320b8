// SPDX-License-Identifier: BSD-2-Clause
/* softhca fabric up, status, list and down. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "fabric/client/trouble.h"
#include "registry/registry.h"
#include "tool/reach.h"
#include "tool/tool.h"
#include "tool/view.h"

/* ---- up and status ---- */

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
	if (s->listen && !listen_prepare(s))
		return EXIT_OURS;
	sock = session_link(s, true, &m, MSG_STAY, fds);
	if (sock < 0)
		return EXIT_OURS;
	close(sock);
	printf("fabric %s is up in %s\n", s->fabric, s->dir);
	return s->listen ? listen_tie(s) : 0;
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

/* ---- list and down: all fabrics of this user, as their directories name them ---- */

/* A fabric that was found. */
struct found {
	char name[FABRIC_NAME_BYTES];
	char dir[RUNDIR_BYTES];
	int error; /* 0: it runs */
	struct msg_info_reply info;
	uint32_t programs;
	const char *state;	 /* if it does not: */
	char why[TROUBLE_BYTES]; /* what is wrong with it */
};

/* ---- finding ---- */

/* Gives the directory that has the directories of fabrics. */
static void fabrics_parent(const struct session *s, char *buf, size_t size)
{
	text_copy(buf, size, s->dir);
	*strrchr(buf, '/') = '\0';
}

static int name_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Returns the names, sorted, to be freed; NULL: no memory. */
static char (*fabric_names(const char *parent, size_t *n))[FABRIC_NAME_BYTES]
{
	char(*names)[FABRIC_NAME_BYTES] = calloc(1, sizeof(*names)), (*more)[FABRIC_NAME_BYTES];
	DIR *d = opendir(parent);
	struct dirent *e;

	*n = 0;
	while (d && names && (e = readdir(d))) {
		if (!fabric_name_ok(e->d_name) || !text_copy(names[*n], sizeof(*names), e->d_name))
			continue;
		more = reallocarray(names, ++*n + 1, sizeof(*names));
		if (!more)
			free(names);
		names = more;
	}
	if (d)
		closedir(d);
	if (names)
		qsort(names, *n, sizeof(*names), name_compare);
	return names;
}

static uint32_t programs_count(int fd)
{
	const struct registry *r = mmap(NULL, sizeof(*r), PROT_READ, MAP_SHARED, fd, 0);
	uint32_t n = 0;

	if (r == MAP_FAILED)
		return 0;
	for (unsigned i = 0; i < REGISTRY_SLOTS / 64; i++)
		n += (uint32_t)__builtin_popcountll(atomic_load(&r->slots_used[i]));
	munmap((void *)(uintptr_t)r, sizeof(*r));
	return n;
}

/* Tells whether a file of that name is in the fabric's directory. */
static bool found_has(const struct found *f, const char *name)
{
	char path[RUNDIR_BYTES + 8];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	return !access(path, F_OK);
}

/* False: there is no fabric, or no more. */
static bool found_trouble(const struct session *s, struct found *f)
{
	struct trouble t = {.dir = f->dir, .daemon = s->daemon, .error = f->error};
	bool refused = f->error == -ECONNREFUSED;

	f->state = "broken";
	if (refused && rundir_check(f->dir))
		t.error = -EPERM;
	if (!refused || t.error == -EPERM)
		trouble_text(&t, f->why, sizeof(f->why));
	else if (!found_has(f, "lock"))
		return false;
	else if (found_has(f, "sock"))
		snprintf(f->why, sizeof(f->why),
			 "its daemon was killed; softhca fabric down --fabric %s removes what it "
			 "left",
			 f->name);
	else {
		f->state = "left";
		snprintf(f->why, sizeof(f->why),
			 "its daemon has gone, and programs that it served may go on without it");
	}
	/* The fabric may have left while we looked. */
	return !access(f->dir, F_OK);
}

/* Looks at a fabric.  False: there is no such directory. */
static bool fabric_look(const struct session *s, const char *parent, const char *name,
			struct found *f)
{
	int fds[MSG_MAX_FDS], sock;
	struct msg m = {0};

	*f = (struct found){0};
	text_copy(f->name, sizeof(f->name), name);
	if (snprintf(f->dir, sizeof(f->dir), "%s/%s", parent, name) >= (int)sizeof(f->dir))
		return false;
	sock = link_open(f->dir, NULL, &m, MSG_INFO, fds);
	if (sock < 0) {
		f->error = sock;
		return found_trouble(s, f);
	}
	f->info = m.info_reply;
	f->programs = programs_count(fds[HELLO_FD_REGISTRY]);
	msg_close_fds(fds);
	close(sock);
	return true;
}

/* ---- list ---- */

static void found_print(const struct found *f)
{
	if (f->error)
		printf("%-16s %s: %s; in %s\n", f->name, f->state, f->why, f->dir);
	else
		printf("%-16s %u hosts, %u programs, pid %d%s, in %s\n", f->name, f->info.nhosts,
		       f->programs, f->info.pid, f->info.stay ? ", stays up" : "", f->dir);
}

static void found_json(const struct found *f, struct json *j)
{
	json_open(j, NULL, '{');
	json_string(j, "fabric", f->name);
	json_bool(j, "running", !f->error);
	json_string(j, "directory", f->dir);
	if (f->error) {
		json_string(j, "why", f->why);
	} else {
		json_number(j, "hosts", f->info.nhosts);
		json_number(j, "programs", f->programs);
		json_number(j, "pid", (uint64_t)f->info.pid);
		json_bool(j, "stay", f->info.stay);
	}
	json_close(j, '}');
}

int command_fabric_list(struct session *s, int argc, char **argv)
{
	struct json json = {stdout, true};
	char parent[RUNDIR_BYTES];
	size_t n, shown = 0;
	struct found f;

	if (argc) {
		tool_error(s->command, "unexpected argument: %s", argv[0]);
		return EXIT_USAGE;
	}
	fabrics_parent(s, parent, sizeof(parent));
	char(*names)[FABRIC_NAME_BYTES] = fabric_names(parent, &n);
	if (s->json)
		json_open(&json, NULL, '[');
	for (size_t i = 0; names && i < n; i++) {
		if (!fabric_look(s, parent, names[i], &f))
			continue;
		shown++;
		if (s->json)
			found_json(&f, &json);
		else
			found_print(&f);
	}
	free(names);
	if (s->json) {
		json_close(&json, ']');
		putchar('\n');
	} else if (!shown) {
		printf("no fabric is running in %s\n", parent);
	}
	return 0;
}

/* ---- down ---- */

/* How often we nap while a daemon that leaves, or was killed, may still hold its lock. */
#define LOCK_NAPS   500u
#define LOCK_NAP_US 10000u

/* Cleans up after a daemon that was killed and could not do so itself. */
static int fabric_sweep(const struct session *s)
{
	int lock = rundir_check(s->dir);

	if (lock == -EPERM) {
		session_link_error(s, lock);
		return EXIT_OURS;
	}
	lock = rundir_lock(s->dir, false);
	for (unsigned i = 0; lock == -EAGAIN && i < LOCK_NAPS; i++) {
		usleep(LOCK_NAP_US);
		lock = rundir_lock(s->dir, false);
	}
	if (lock == -EAGAIN) {
		tool_error(s->command, "the daemon of fabric '%s' lives and does not answer in %s",
			   s->fabric, s->dir);
		return EXIT_OURS;
	}
	if (lock >= 0) {
		rundir_remove(s->dir);
		close(lock);
	} else {
		rundir_abandon(s->dir); /* a daemon was killed before it had a lock */
	}
	printf("fabric %s is not running\n", s->fabric);
	return 0;
}

/* Sends SIGTERM to the process that accepted the connection, which ends a daemon of any version.  0 or a negative errno. */
static int daemon_terminate(int sock)
{
	struct pollfd p = {.fd = sock};
	struct ucred peer;
	socklen_t len = sizeof(peer);
	int pidfd, ret = 0;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	/* 0: it is in another PID namespace */
	if (peer.pid <= 0)
		return -ESRCH;
	pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	if (pidfd < 0)
		return -errno;
	/* As long as the connection stands, the number is still that process's. */
	if (poll(&p, 1, 0) || syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0))
		ret = -ESRCH;
	close(pidfd);
	return ret;
}

/* Takes down a fabric whose daemon is of another version and understands no request of ours. */
static int fabric_down_foreign(struct session *s)
{
	int sock = link_connect(s->dir), ret = sock;
	char byte;

	if (sock >= 0) {
		ret = daemon_terminate(sock);
		/* It closes the connection when its files are removed. */
		if (!ret && recv(sock, &byte, sizeof(byte), 0) < 0 && errno != ECONNRESET)
			ret = -errno;
		close(sock);
	}
	if (ret < 0) {
		tool_error(s->command,
			   "the softhcad that serves the fabric in %s is of another version, and "
			   "cannot be "
			   "ended from here (%s): use the softhca that it came with",
			   s->dir, strerror(-ret));
		return EXIT_OURS;
	}
	printf("fabric %s is down\n", s->fabric);
	return 0;
}

static int fabric_down(struct session *s)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int sock, ret;

	sock = link_open(s->dir, NULL, &m, MSG_SHUTDOWN, fds);
	if (sock == -ECONNREFUSED)
		return fabric_sweep(s);
	if (sock == -EPROTO)
		return fabric_down_foreign(s);
	if (sock < 0) {
		session_link_error(s, sock);
		return EXIT_OURS;
	}
	/* The daemon removes its files before the connection ends. */
	do {
		ret = msg_recv(sock, &m, fds, 1u << MSG_NOTE, 0);
	} while (!ret);
	close(sock);
	if (ret != -ECONNRESET) {
		session_link_error(s, ret == -EAGAIN ? -ETIMEDOUT : ret);
		return EXIT_OURS;
	}
	printf("fabric %s is down\n", s->fabric);
	return 0;
}

static int fabric_down_all(struct session *s)
{
	char parent[RUNDIR_BYTES];
	int status = 0;
	size_t n;

	fabrics_parent(s, parent, sizeof(parent));
	char(*names)[FABRIC_NAME_BYTES] = fabric_names(parent, &n);
	for (size_t i = 0; names && i < n; i++) {
		s->fabric = names[i];
		if (snprintf(s->dir, sizeof(s->dir), "%s/%s", parent, names[i]) >=
		    (int)sizeof(s->dir))
			continue;
		/* A fabric that cannot be taken down does not keep us from the others. */
		if (fabric_down(s))
			status = EXIT_OURS;
	}
	if (!n)
		printf("no fabric is running in %s\n", parent);
	free(names);
	return status;
}

int command_fabric_down(struct session *s, int argc, char **argv)
{
	if (argc) {
		tool_error(s->command, "unexpected argument: %s", argv[0]);
		return EXIT_USAGE;
	}
	if (s->all && s->fabric_given) {
		tool_error(s->command, "--all and --fabric do not go together");
		return EXIT_USAGE;
	}
	return s->all ? fabric_down_all(s) : fabric_down(s);
}
