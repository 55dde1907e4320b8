// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the commands share: error lines, options, where the installed parts are, and the connection
 * to the daemon.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "fabric/client/trouble.h"
#include "fabric/options.h"
#include "prm/model.h"
#include "subnet/subnet.h"
#include "tool/tool.h"

/* ---- how each command says that it cannot go on ---- */

void tool_error(const char *command, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", command);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* ---- nodes that share a name ---- */

#define LIST_BYTES 512u

/* Lists as many as there is room for, each by something that it alone has. */
static void candidates_list(const struct subnet *subnet, const char *name, char *list, size_t size)
{
	size_t used = 0;

	list[0] = '\0';
	for (uint32_t i = 0; i < subnet->nnodes; i++) {
		const struct subnet_node *n = &subnet->nodes[i];
		int more;

		if (strncmp(n->description, name, sizeof(n->description)) != 0)
			continue;
		more = snprintf(list + used, size - used, "%s%.*s (0x%lx)", used ? ", " : "",
				(int)sizeof(n->id), n->id, (unsigned long)n->guid);
		if (more < 0 || (size_t)more >= size - used) {
			snprintf(list + used, size - used, ", ...");
			return;
		}
		used += (size_t)more;
	}
}

void session_called_twice(const struct session *s, const char *name)
{
	char list[LIST_BYTES] = "see softhca fabric show";
	int fds[MSG_MAX_FDS];
	struct subnet subnet;
	struct msg m = {0};
	void *memory;
	int sock = link_open(s->dir, NULL, &m, MSG_INFO, fds);

	if (sock >= 0) {
		memory = mmap(NULL, m.info_reply.subnet_bytes, PROT_READ, MAP_SHARED,
			      fds[HELLO_FD_SUBNET], 0);
		if (memory != MAP_FAILED) {
			if (!subnet_attach(&subnet, memory, m.info_reply.subnet_bytes))
				candidates_list(&subnet, name, list, sizeof(list));
			munmap(memory, m.info_reply.subnet_bytes);
		}
		msg_close_fds(fds);
		close(sock);
	}
	tool_error(s->command,
		   "'%s' is several nodes of fabric '%s': %s; name one by its id or GUID", name,
		   s->fabric, list);
}

/* ---- the session ---- */

/* How long a daemon may take to leave after its last user, and how often somebody else may keep it. */
#define LEAVES_MS    500u
#define LEAVES_TRIES 10u

/* In the build tree all lies beside the tool; otherwise it lies where make install puts it. */
static const char *const daemon_places[] = {"softhcad", "../libexec/softhca/softhcad"};
static const char *const preload_places[] = {"libsofthca-preload.so",
					     "../lib/softhca/libsofthca-preload.so"};
static const char *const view_places[] = {"softhca-view", "../libexec/softhca/softhca-view"};

/* Says that a part of softhca is not where it should be, or cannot be looked for. */
void session_missing_part(const struct session *s, const char *name)
{
	if (access("/proc/self/exe", F_OK))
		tool_error(s->command, "/proc is not mounted here, and nothing works without it");
	else
		tool_error(s->command, "%s is not installed where softhca looks for it", name);
}

static void find_part(const char *const *places, size_t n, int mode, char *out)
{
	char exe[TOOL_PATH_BYTES - 64], path[TOOL_PATH_BYTES];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	out[0] = '\0';
	if (len < 0)
		return;
	exe[len] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		slash[1] = '\0';
	for (size_t i = 0; i < n; i++) {
		char *real;

		if (snprintf(path, sizeof(path), "%s%s", exe, places[i]) >= (int)sizeof(path) ||
		    access(path, mode))
			continue;
		real = realpath(path, NULL);
		if (real && !text_copy(out, TOOL_PATH_BYTES, real))
			out[0] = '\0';
		free(real);
		if (out[0])
			return;
	}
}

static int command_help(const struct command *c)
{
	printf("usage: softhca %s %s\n%s\n", c->name, c->synopsis, c->help);
	return 0;
}

/* Prints one line, which names the option as the user wrote it. */
static int bad_option(const struct session *s, const char *why, const char *option)
{
	tool_error(s->command, "%s: %s; see %s --help", why, option, s->command);
	return EXIT_USAGE;
}

static int bad_model(const struct session *s)
{
	char known[256] = "";
	size_t n = 0;

	for (size_t i = 0; i < models_count && n < sizeof(known); i++)
		n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "",
				      models[i].name);
	tool_error(s->command, "no model is called '%s'; there are %s", s->model, known);
	return EXIT_USAGE;
}

/* Of softhca capture: what Wireshark says to programs of its folder extcap; no mask of options has
 * these bits. */
enum capture_option {
	CAPTURE_INTERFACES = 0x1000000,
	CAPTURE_DLTS = 0x2000000,
	CAPTURE_CONFIG = 0x3000000,
	CAPTURE_BEGIN = 0x4000000,
	CAPTURE_INTERFACE = 0x5000000,
	CAPTURE_FIFO = 0x6000000,
	CAPTURE_FILTER = 0x7000000,
	CAPTURE_VERSION = 0x8000000,
};

/* The options of softhca capture and softhca trace; false: it is none of them. */
static bool capture_option(struct capture_options *o, int opt, const char *value)
{
	switch (opt) {
	case 'w':
		o->file = value;
		break;
	case 'c':
		o->count = value;
		break;
	case 's':
		o->snaplen = value;
		break;
	case 'f':
		o->expression = value;
		break;
	case 'B':
		o->buffer = value;
		break;
	case 'e':
		o->events = value;
		break;
	case CAPTURE_INTERFACES:
		o->interfaces = true;
		break;
	case CAPTURE_DLTS:
		o->dlts = true;
		break;
	case CAPTURE_CONFIG:
		o->config = true;
		break;
	case CAPTURE_BEGIN:
		o->capture = true;
		break;
	case CAPTURE_INTERFACE:
		o->interface = value;
		break;
	case CAPTURE_FIFO:
		o->fifo = value;
		break;
	case CAPTURE_FILTER:
		o->filter = value;
		break;
	case CAPTURE_VERSION:
		break;
	default:
		return false;
	}
	return true;
}

/* The options of softhca top; false: it is none of them. */
static bool top_option(struct top_options *o, int opt, const char *value)
{
	if (opt == 'b')
		o->batch = true;
	else if (opt == 'n')
		o->count = value;
	else if (opt == 'd')
		o->seconds = value;
	return opt == 'b' || opt == 'n' || opt == 'd';
}

static int options_read(struct session *s, const struct command *c, int argc, char **argv)
{
	static const struct option longs[] = {
		{"fabric", required_argument, NULL, OPT_FABRIC},
		{"host", required_argument, NULL, OPT_HOST},
		{"json", no_argument, NULL, OPT_JSON},
		{"signature-reports", required_argument, NULL, OPT_REPORTS},
		{"timing", required_argument, NULL, OPT_TIMING},
		{"memory", required_argument, NULL, OPT_MEMORY},
		{"model", required_argument, NULL, OPT_MODEL},
		{"trace", required_argument, NULL, OPT_TRACE},
		{"explain", no_argument, NULL, OPT_EXPLAIN},
		{"faults", required_argument, NULL, OPT_FAULTS},
		{"hosts", required_argument, NULL, OPT_HOSTS},
		{"topology", required_argument, NULL, OPT_TOPOLOGY},
		{"sm", required_argument, NULL, OPT_SM},
		{"link-types", required_argument, NULL, OPT_LINKS},
		{"device-names", required_argument, NULL, OPT_NAMES},
		{"netdev", required_argument, NULL, OPT_NETDEV},
		{"listen", required_argument, NULL, OPT_LISTEN},
		{"peers", required_argument, NULL, OPT_PEERS},
		{"gdb", no_argument, NULL, OPT_GDB},
		{"view", required_argument, NULL, OPT_VIEW},
		{"all", no_argument, NULL, OPT_ALL},
		{"unset", no_argument, NULL, OPT_UNSET},
		{"html", required_argument, NULL, OPT_HTML},
		{"watch", no_argument, NULL, OPT_WATCH},
		{"extcap-interfaces", no_argument, NULL, CAPTURE_INTERFACES},
		{"extcap-dlts", no_argument, NULL, CAPTURE_DLTS},
		{"extcap-config", no_argument, NULL, CAPTURE_CONFIG},
		{"capture", no_argument, NULL, CAPTURE_BEGIN},
		{"extcap-interface", required_argument, NULL, CAPTURE_INTERFACE},
		{"fifo", required_argument, NULL, CAPTURE_FIFO},
		{"extcap-capture-filter", required_argument, NULL, CAPTURE_FILTER},
		{"extcap-version", optional_argument, NULL, CAPTURE_VERSION},
		{"snaplen", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int opt, at = 1;

	opterr = 0;
	/* '+': what follows the program's name is for the program.  ':': getopt tells a missing
	 * value apart. */
	const char *shorts = c->options & OPT_CAPTURE  ? ":hw:c:s:f:B:"
			     : c->options & OPT_RECORD ? "+:hw:e:B:"
			     : c->options & OPT_TOP    ? ":hbn:d:"
						       : "+:h";

	for (; (opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1; at = optind) {
		if (opt == 'h')
			return command_help(c);
		if (c->options & (OPT_CAPTURE | (opt < 256 ? OPT_RECORD : 0)) &&
		    capture_option(&s->capture, opt, optarg))
			continue;
		if (c->options & OPT_TOP && top_option(&s->top, opt, optarg))
			continue;
		if (opt == ':')
			return bad_option(s, "the option needs a value", argv[at]);
		if (opt == '?' || !(c->options & (unsigned)opt))
			return bad_option(s, "bad option", argv[at]);
		if (opt == OPT_FABRIC)
			s->fabric = optarg;
		else if (opt == OPT_HOST)
			s->host = optarg;
		else if (opt == OPT_REPORTS)
			s->reports = optarg;
		else if (opt == OPT_TIMING)
			s->timing = optarg;
		else if (opt == OPT_MEMORY)
			s->memory = optarg;
		else if (opt == OPT_MODEL)
			s->model = optarg;
		else if (opt == OPT_TRACE)
			s->trace = optarg;
		else if (opt == OPT_EXPLAIN)
			s->explain = true;
		else if (opt == OPT_FAULTS)
			s->faults = optarg;
		else if (opt == OPT_HOSTS)
			s->hosts = optarg;
		else if (opt == OPT_TOPOLOGY)
			s->topology = optarg;
		else if (opt == OPT_SM)
			s->sm = optarg;
		else if (opt == OPT_LINKS)
			s->links = optarg;
		else if (opt == OPT_NAMES)
			s->names = optarg;
		else if (opt == OPT_NETDEV)
			s->netdevs = optarg;
		else if (opt == OPT_LISTEN)
			s->listen = optarg;
		else if (opt == OPT_PEERS)
			s->peers = optarg;
		else if (opt == OPT_GDB)
			s->gdb = true;
		else if (opt == OPT_VIEW)
			s->view = optarg;
		else if (opt == OPT_ALL)
			s->all = true;
		else if (opt == OPT_UNSET)
			s->unset = true;
		else if (opt == OPT_HTML)
			s->html = optarg;
		else if (opt == OPT_WATCH)
			s->watch = true;
		else
			s->json = true;
	}
	return -1;
}

/* Inside `softhca run`, a command means the fabric and host that it runs on. */
static int find_fabric(struct session *s)
{
	const char *dir = getenv("SOFTHCA_DIR");
	const char *host = getenv("SOFTHCA_HOST");
	int ret;

	if (!s->fabric && dir && dir[0] == '/' && fabric_name_ok(strrchr(dir, '/') + 1) &&
	    text_copy(s->dir, sizeof(s->dir), dir)) {
		s->fabric = strrchr(s->dir, '/') + 1;
		if (!s->host && host && host[0])
			s->host = host;
		return -1;
	}
	if (!s->fabric)
		s->fabric = FABRIC_DEFAULT;
	ret = rundir_path(s->fabric, s->dir, sizeof(s->dir));
	if (ret == -EINVAL)
		tool_error(s->command, "'%s' is not a name for a fabric", s->fabric);
	else if (ret)
		tool_error(s->command, "the run-time directory's name is too long");
	return ret ? EXIT_USAGE : -1;
}

/* Makes the file's whole name, because the daemon has its own working directory. */
static bool topology_find(struct session *s)
{
	static char path[PATH_MAX];

	if (!s->topology)
		return true;
	if (!realpath(s->topology, path)) {
		tool_error(s->command, "%s: %s", s->topology, strerror(errno));
		return false;
	}
	s->topology = path;
	return true;
}

int session_open(struct session *s, const struct command *c, int argc, char **argv, int *first)
{
	static char command[64];
	struct device_names names;
	struct link_types types;
	const char *wrong;
	uint32_t priority;
	int status;

	snprintf(command, sizeof(command), "softhca %s", c->name);
	s->command = s->help = command;
	status = options_read(s, c, argc, argv);
	if (status >= 0)
		return status;
	*first = optind;
	s->fabric_given = s->fabric;
	if (s->memory && memory_way_find(s->memory) == MEMORY_WAYS)
		return bad_option(s, "memory is " MEMORY_WAY_NAMES ", not", s->memory);
	if (s->reports && strcmp(s->reports, "manual") != 0 && strcmp(s->reports, "hardware") != 0)
		return bad_option(s, "reports are manual or hardware, not", s->reports);
	if (s->timing && strcmp(s->timing, "nominal") != 0 && strcmp(s->timing, "hardware") != 0)
		return bad_option(s, "timing is nominal or hardware, not", s->timing);
	s->mount = s->view && !strcmp(s->view, "mount");
	if (s->view && !s->mount && strcmp(s->view, "preload") != 0)
		return bad_option(s, "the view is preload or mount, not", s->view);
	if (s->model && model_find(s->model) < 0)
		return bad_model(s);
	if (s->hosts && !text_number(s->hosts, FABRIC_MAX_HOSTS, &s->nhosts))
		return bad_option(s, "not a number of hosts", s->hosts);
	if (s->hosts && s->topology)
		return bad_option(s, "--hosts and --topology exclude each other", s->hosts);
	if (s->links && !link_types_read(s->links, &types))
		return bad_option(s, "link types are a list of ib and eth, not", s->links);
	if (s->links && s->topology)
		return bad_option(s, "--link-types and --topology exclude each other", s->links);
	wrong = s->names ? device_names_read(s->names, s->links ? types.ndevices : 0, &names)
			 : NULL;
	if (wrong)
		return bad_option(s, wrong, s->names);
	if (s->names && s->topology)
		return bad_option(s, "--device-names and --topology exclude each other", s->names);
	if (s->netdevs && s->topology)
		return bad_option(s, "--netdev and --topology exclude each other", s->netdevs);
	if (s->sm && strcmp(s->sm, "builtin") != 0 && strcmp(s->sm, "external") != 0 &&
	    !text_number(s->sm, FABRIC_SM_PRIORITY_MAX, &priority))
		return bad_option(
			s,
			"the subnet manager is builtin, external or a priority from 1 to 15, not",
			s->sm);
	if (s->peers && !s->listen)
		return bad_option(s, "--peers says who may send to --listen, which is missing with",
				  s->peers);
	if (s->host && (!s->host[0] || strlen(s->host) >= FABRIC_NAME_BYTES)) {
		tool_error(s->command, "'%s' is not a name for a host", s->host);
		return EXIT_USAGE;
	}
	if (!topology_find(s))
		return EXIT_OURS;
	find_part(daemon_places, array_size(daemon_places), X_OK, s->daemon);
	find_part(preload_places, array_size(preload_places), R_OK, s->preload);
	find_part(view_places, array_size(view_places), X_OK, s->view_server);
	return find_fabric(s);
}

void session_link_error(const struct session *s, int error)
{
	struct trouble t = {.dir = s->dir, .daemon = s->daemon, .host = s->host, .error = error};
	char text[TROUBLE_BYTES];

	if (error == -ECONNREFUSED) {
		tool_error(s->command, "fabric '%s' is not running in %s", s->fabric, s->dir);
		return;
	}
	trouble_text(&t, text, sizeof(text));
	tool_error(s->command, "%s", text);
}

/* Writes it as the option says it. */
static void manager_name(const struct msg_info_reply *info, char *name, size_t size)
{
	if (info->sm_priority)
		snprintf(name, size, "%u", info->sm_priority);
	else
		snprintf(name, size, "%s", info->external_sm ? "external" : "builtin");
}

#define DIFFERS_BYTES (FABRIC_NETDEVS_BYTES + 256u)

/* Says how a running fabric differs from what is asked for. */
static bool session_differs(const struct session *s, char *why, const char *has, const char *what)
{
	snprintf(why, DIFFERS_BYTES,
		 "fabric '%s' runs with %s%s; take it down first, or use another (--fabric)",
		 s->fabric, has, what);
	return false;
}

static bool topology_is_as_asked(const struct session *s, struct msg_info_reply *info, char *why)
{
	char manager[16];

	manager_name(info, manager, sizeof(manager));
	info->topology[sizeof(info->topology) - 1] = '\0';
	if (s->topology && strcmp(info->topology, s->topology) != 0)
		return session_differs(s, why,
				       info->topology[0] ? "the topology " : "no topology file",
				       info->topology);
	info->link_types[sizeof(info->link_types) - 1] = '\0';
	if (s->links && strcmp(info->link_types, s->links) != 0)
		return session_differs(
			s, why, info->link_types[0] ? "devices of link types " : "a topology file",
			info->link_types);
	info->device_names[sizeof(info->device_names) - 1] = '\0';
	if (s->names && strcmp(info->device_names, s->names) != 0)
		return session_differs(
			s, why, info->device_names[0] ? "--device-names " : "no --device-names",
			info->device_names);
	info->netdevs[sizeof(info->netdevs) - 1] = '\0';
	if (s->netdevs && strcmp(info->netdevs, s->netdevs) != 0)
		return session_differs(s, why, info->netdevs[0] ? "--netdev " : "no --netdev",
				       info->netdevs);
	if (s->sm && strcmp(s->sm, manager) != 0)
		return session_differs(s, why, "--sm ", manager);
	return true;
}

/* Tells whether a running fabric fits: it keeps the model and hosts that it was started with.  why:
 * DIFFERS_BYTES, filled if not. */
static bool is_as_asked(const struct session *s, struct msg_info_reply *info, char *why)
{
	char hosts[32];

	info->model[sizeof(info->model) - 1] = '\0';
	if (s->model && strcmp(info->model, s->model) != 0)
		return session_differs(s, why, "devices of model ", info->model);
	snprintf(hosts, sizeof(hosts), "%u hosts", info->nhosts);
	if (s->hosts && info->nhosts != s->nhosts)
		return session_differs(s, why, hosts, "");
	return topology_is_as_asked(s, info, why);
}

static void no_such_host(const struct session *s, int error)
{
	if (error == -ENOTUNIQ && s->host)
		session_called_twice(s, s->host);
	else
		tool_error(s->command, "fabric '%s' has no host '%s'; see softhca devices",
			   s->fabric, s->host ? s->host : "");
}

/* A fabric leaves with its last user.  If that was another program, which has just ended, the daemon
 * may not have got round to it.  Waits until it has left, for a while. */
static void await_leaving(const struct session *s)
{
	char path[sizeof(s->dir) + sizeof("/sock")];

	snprintf(path, sizeof(path), "%s/sock", s->dir);
	for (unsigned ms = 0; ms < LEAVES_MS && !access(path, F_OK); ms++)
		usleep(1000);
}

/* Returns whether a fabric fits.  Says why not, unless it is about to leave and this is not the last
 * try: then *leaves is set. */
static bool session_fits(const struct session *s, struct msg_info_reply *info, bool last,
			 bool *leaves)
{
	char why[DIFFERS_BYTES];

	if (is_as_asked(s, info, why))
		return true;
	*leaves = !last && !info->stay && info->connections == 1;
	if (!*leaves)
		tool_error(s->command, "%s", why);
	return false;
}

/* One try.  Looks whether the fabric fits before it asks for anything, because that may make the
 * fabric stay. */
static int session_try_link(const struct session *s, bool start, struct msg *m, enum msg_type type,
			    int fds[MSG_MAX_FDS], bool last, bool *leaves)
{
	bool asks =
		s->model || s->hosts || s->topology || s->links || s->names || s->netdevs || s->sm;
	struct msg info = {0};
	int sock, ret;

	if (type == MSG_LEASE && s->host)
		text_copy(m->lease.host, sizeof(m->lease.host), s->host);
	sock = link_open(s->dir, start ? s->daemon : NULL, asks ? &info : m, asks ? MSG_INFO : type,
			 fds);
	if (asks && sock >= 0) {
		msg_close_fds(fds);
		ret = session_fits(s, &info.info_reply, last, leaves)
			      ? link_call(sock, m, type, fds)
			      : -ECANCELED;
		if (ret) {
			close(sock);
			sock = ret;
		}
	}
	if ((sock == -ENOENT || sock == -ENOTUNIQ) && type == MSG_LEASE)
		no_such_host(s, sock);
	else if (sock < 0 && sock != -ECANCELED)
		session_link_error(s, sock);
	return sock < 0 ? -1 : sock;
}

int session_link(const struct session *s, bool start, struct msg *m, enum msg_type type,
		 int fds[MSG_MAX_FDS])
{
	const struct msg request = *m;
	int sock;

	if (start && !s->daemon[0]) {
		session_missing_part(s, "softhcad");
		return -1;
	}
	/* for the daemon, if it starts now, or later by a program */
	if ((s->model && setenv("SOFTHCA_MODEL", s->model, 1)) ||
	    (s->hosts && setenv("SOFTHCA_HOSTS", s->hosts, 1)) ||
	    (s->topology && setenv("SOFTHCA_TOPOLOGY", s->topology, 1)) ||
	    (s->links && setenv("SOFTHCA_LINK_TYPES", s->links, 1)) ||
	    (s->names && setenv("SOFTHCA_DEVICE_NAMES", s->names, 1)) ||
	    (s->netdevs && setenv("SOFTHCA_NETDEV", s->netdevs, 1)) ||
	    (s->sm && setenv("SOFTHCA_SM", s->sm, 1))) {
		tool_error(s->command, "%s", strerror(errno));
		return -1;
	}
	for (unsigned tries = 1;; tries++) {
		bool leaves = false;

		*m = request;
		sock = session_try_link(s, start, m, type, fds, tries == LEAVES_TRIES, &leaves);
		if (sock >= 0 || !leaves)
			return sock;
		await_leaving(s);
	}
}

bool session_host(const struct session *s, int sock, struct msg_host_reply *host)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int ret;

	if (s->host)
		text_copy(m.host.name, sizeof(m.host.name), s->host);
	ret = link_call(sock, &m, MSG_HOST, fds);
	if (!ret) {
		*host = m.host_reply;
		host->name[sizeof(host->name) - 1] = '\0';
		return true;
	}
	if (ret == -ENOENT || ret == -ENOTUNIQ)
		no_such_host(s, ret);
	else
		session_link_error(s, ret);
	return false;
}
