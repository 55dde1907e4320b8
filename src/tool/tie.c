// SPDX-License-Identifier: BSD-2-Clause
/* Ties of ports: softhca fabric tie and untie, and what status shows of a tie. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "fabric/client/link.h"
#include "tie/pcap.h"
#include "tie/tap.h"
#include "tie/udp.h"
#include "tool/tool.h"
#include "tool/view.h"
#include "wire/tied_peers.h"

struct tie_spec {
	const char *tap; /* each of these may be NULL */
	bool udp;
	const char *address, *peers, *gso;
	const char *port;
	const char *in, *out;
	const char *pace_text, *loop_text;
	enum pcap_pace pace;
	uint32_t rate;
	uint32_t loops;
};

/* ---- what ports are tied to, for status ---- */

static const char *const carried_names[CARRIED_COUNTS] = {
	[CARRIED_IN] = "in",
	[CARRIED_OUT] = "out",
	[CARRIED_IN_DROPPED] = "in_dropped",
	[CARRIED_OUT_DROPPED] = "out_dropped",
	[CARRIED_IN_BAD] = "in_bad",
	[CARRIED_IN_CHECKSUM] = "in_checksum",
	[CARRIED_IN_FOREIGN] = "in_foreign",
};

static const char *const peer_names[PEER_COUNTS] = {
	[PEER_IN] = "in",
	[PEER_IN_BYTES] = "in_bytes",
	[PEER_OUT] = "out",
	[PEER_OUT_BYTES] = "out_bytes",
	[PEER_IN_DROPPED] = "in_dropped",
	[PEER_IN_CHECKSUM] = "in_checksum",
	[PEER_IN_REPEATED] = "in_repeated",
	[PEER_OUT_REPEATED] = "out_repeated",
	[PEER_IN_MISSED] = "in_missed",
	[PEER_OUT_MISSED] = "out_missed",
	[PEER_UNREACHABLE] = "unreachable",
};

static bool tied_ask(struct view *v, uint32_t row, struct msg_tied_reply *out)
{
	struct msg m = {.index.index = row};
	int fds[MSG_MAX_FDS];

	if (!v->subnet.ports[row].ethernet ||
	    !atomic_load_explicit(&v->subnet.ports[row].tie_plus_1, memory_order_acquire) ||
	    link_call(v->sock, &m, MSG_TIED, fds) || !m.tied_reply.tied)
		return false;
	*out = m.tied_reply;
	out->text[sizeof(out->text) - 1] = '\0';
	out->warning[sizeof(out->warning) - 1] = '\0';
	return true;
}

/* Writes the name of the port at the other end of a cable. */
static void peer_text(const struct view *v, const struct msg_tied_reply *t, char *text, size_t size)
{
	char name[SUBNET_PORT_TEXT];

	(void)snprintf(text, size, "port=%s", subnet_port_text(&v->subnet, t->peer, name));
}

/* Maps what the carrier of the port knows of other machines; NULL: nothing. */
static const struct tied_peers *peers_map(struct view *v, uint32_t row)
{
	const struct tied_peers *p = NULL;
	struct view_segments segments;

	if (!view_segments_map(v, &segments))
		return NULL;
	for (uint32_t slot = 0; slot < REGISTRY_SLOTS && !p; slot++) {
		const struct slot *s = &segments.slots[slot];

		if (atomic_load(&s->alive) && atomic_load(&s->carries_plus_1) == row + 1)
			p = tied_peers_map(s);
	}
	view_segments_unmap(&segments);
	return p;
}

static void peer_address(const struct tied_peer *t, char text[INET6_ADDRSTRLEN])
{
	bool ipv4 = ib_gid_is_ipv4(&t->gid);

	text[0] = '\0';
	(void)inet_ntop(ipv4 ? AF_INET : AF_INET6, t->gid.raw + (ipv4 ? 12 : 0), text,
			INET6_ADDRSTRLEN);
}

/* Milliseconds since then. */
static uint64_t ago_ms(uint64_t ns)
{
	uint64_t now = clock_ns();

	return now > ns ? (now - ns) / 1000000 : 0;
}

static void peer_print(const struct tied_peer *t)
{
	uint64_t heard = atomic_load(&t->heard_ns), rtt = atomic_load(&t->rtt_ns);
	char address[INET6_ADDRSTRLEN];

	peer_address(t, address);
	printf("      %s:", address);
	for (int i = 0; i < PEER_COUNTS; i++) {
		uint64_t n = atomic_load(&t->count[i]);

		if (n || i <= PEER_OUT_BYTES)
			printf("%s %s %" PRIu64, i ? "," : "", peer_names[i], n);
	}
	if (rtt)
		printf(", round trip %" PRIu64 " us", (rtt + 500) / 1000);
	if (heard)
		printf(", heard %" PRIu64 " ms ago\n", ago_ms(heard));
	else
		printf(", never heard\n");
}

#define PEERS_PRINTED 64u

static void peers_print(struct view *v, uint32_t row)
{
	const struct tied_peers *p = peers_map(v, row);
	uint32_t n = p ? atomic_load(&p->n) : 0;
	uint64_t unlisted = p ? atomic_load(&p->unlisted) : 0;

	for (uint32_t i = 0; i < n && i < TIED_PEERS && i < PEERS_PRINTED; i++)
		peer_print(&p->peer[i]);
	if (n > PEERS_PRINTED)
		printf("      and %u more (--json lists them)\n", n - PEERS_PRINTED);
	if (unlisted)
		printf("      %" PRIu64 " packets of further addresses\n", unlisted);
	tied_peers_unmap(p);
}

static void peer_json(struct json *j, const struct tied_peer *t)
{
	uint64_t heard = atomic_load(&t->heard_ns), rtt = atomic_load(&t->rtt_ns);
	char address[INET6_ADDRSTRLEN];

	peer_address(t, address);
	json_open(j, NULL, '{');
	json_string(j, "address", address);
	for (int i = 0; i < PEER_COUNTS; i++)
		json_number(j, peer_names[i], atomic_load(&t->count[i]));
	if (rtt) {
		json_number(j, "rtt_ns", rtt);
		json_number(j, "rtt_least_ns", atomic_load(&t->rtt_least_ns));
	}
	if (heard)
		json_number(j, "heard_ms_ago", ago_ms(heard));
	json_close(j, '}');
}

static void peers_json(struct view *v, struct json *j, uint32_t row)
{
	const struct tied_peers *p = peers_map(v, row);
	uint32_t n = p ? atomic_load(&p->n) : 0;

	if (!p)
		return;
	json_open(j, "peers", '[');
	for (uint32_t i = 0; i < n && i < TIED_PEERS; i++)
		peer_json(j, &p->peer[i]);
	json_close(j, ']');
	json_number(j, "unlisted", atomic_load(&p->unlisted));
	tied_peers_unmap(p);
}

static void tied_write(FILE *out, const struct view *v, const struct msg_tied_reply *t)
{
	char peer[SUBNET_PORT_TEXT + 8];

	peer_text(v, t, peer, sizeof(peer));
	fprintf(out, "tied to %s", t->peer == SUBNET_NONE ? t->text : peer);
	if (t->peer == SUBNET_NONE && !t->pid)
		fprintf(out, ", whose carrier has ended");
	else if (t->pid)
		fprintf(out, " by pid %d%s", t->pid, t->all ? ", all in" : "");
	for (int i = 0; t->pid && i < CARRIED_COUNTS; i++)
		fprintf(out, ", %s %" PRIu64, carried_names[i], t->carried[i]);
}

bool tied_line(struct view *v, uint32_t row, char text[TIED_LINE_BYTES])
{
	struct msg_tied_reply t;
	FILE *out;

	if (!tied_ask(v, row, &t))
		return false;
	out = fmemopen(text, TIED_LINE_BYTES, "w");
	if (!out)
		return false;
	tied_write(out, v, &t);
	if (t.warning[0])
		fprintf(out, "; %s", t.warning);
	fclose(out);
	return true;
}

void tied_print(struct view *v, uint32_t row)
{
	struct msg_tied_reply t;

	if (!tied_ask(v, row, &t))
		return;
	printf("    ");
	tied_write(stdout, v, &t);
	putchar('\n');
	if (t.warning[0])
		printf("      %s\n", t.warning);
	if (t.pid)
		peers_print(v, row);
}

void tied_json(struct view *v, struct json *j, uint32_t row)
{
	char peer[SUBNET_PORT_TEXT + 8];
	struct msg_tied_reply t;

	if (!tied_ask(v, row, &t))
		return;
	peer_text(v, &t, peer, sizeof(peer));
	json_open(j, "tie", '{');
	json_string(j, "to", t.peer == SUBNET_NONE ? t.text : peer);
	json_number(j, "pid", (uint64_t)t.pid);
	json_bool(j, "all_in", t.all);
	if (t.warning[0])
		json_string(j, "warning", t.warning);
	for (int i = 0; i < CARRIED_COUNTS; i++)
		json_number(j, carried_names[i], t.carried[i]);
	if (t.pid)
		peers_json(v, j, row);
	json_close(j, '}');
}

/* ---- the arguments ---- */

#define RATE_MAX  100000000u
#define LOOPS_MAX 100000000u

/* Takes WORD=VALUE; false: it is not one of the words, or comes twice, or has no value. */
static bool word_take(struct tie_spec *t, const char *argument)
{
	const struct {
		const char *word;
		const char **value;
	} words[] = {
		{"tap=", &t->tap},     {"port=", &t->port},	 {"in=", &t->in},
		{"out=", &t->out},     {"pace=", &t->pace_text}, {"loop=", &t->loop_text},
		{"udp=", &t->address}, {"peers=", &t->peers},	 {"gso=", &t->gso},
	};
	if (!strcmp(argument, "udp")) {
		t->udp = true;
		return true;
	}

	for (size_t i = 0; i < array_size(words); i++) {
		size_t n = strlen(words[i].word);

		if (strncmp(argument, words[i].word, n) != 0)
			continue;
		if (*words[i].value || !argument[n])
			return false;
		*words[i].value = argument + n;
		return true;
	}
	return false;
}

static bool pace_read(struct tie_spec *t)
{
	t->pace = PACE_ORIGINAL;
	if (!t->pace_text || !strcmp(t->pace_text, "original"))
		return true;
	t->pace = strcmp(t->pace_text, "top") == 0 ? PACE_TOP : PACE_RATE;
	return t->pace == PACE_TOP || text_number(t->pace_text, RATE_MAX, &t->rate);
}

static bool loop_read(struct tie_spec *t)
{
	t->loops = 1;
	if (!t->loop_text)
		return true;
	t->loops = 0;
	return !strcmp(t->loop_text, "forever") || text_number(t->loop_text, LOOPS_MAX, &t->loops);
}

/* Reads the arguments; false after an error line. */
static bool tie_spec_read(const struct session *s, int argc, char **argv, struct tie_spec *out)
{
	int kinds;

	*out = (struct tie_spec){0};
	for (int i = 0; i < argc; i++) {
		if (word_take(out, argv[i]))
			continue;
		tool_error(s->command, "'%s' is nothing to tie a port to; see %s --help", argv[i],
			   s->command);
		return false;
	}
	out->udp |= out->address != NULL;
	kinds = !!out->tap + !!out->port + out->udp + (out->in || out->out);
	if (kinds != 1 || (!out->in && (out->pace_text || out->loop_text)) ||
	    (!out->udp && (out->peers || out->gso))) {
		tool_error(s->command,
			   "a port is tied to a tap, a port, udp (peers and gso are of it), or "
			   "files (in, out; pace and loop are of in); see %s --help",
			   s->command);
		return false;
	}
	if (out->gso && strcmp(out->gso, "on") != 0 && strcmp(out->gso, "off") != 0) {
		tool_error(s->command, "gso is on or off, not '%s'", out->gso);
		return false;
	}
	if (!pace_read(out)) {
		tool_error(s->command, "the pace is original, top or frames a second, not '%s'",
			   out->pace_text);
		return false;
	}
	if (!loop_read(out)) {
		tool_error(s->command, "loop is a number or forever, not '%s'", out->loop_text);
		return false;
	}
	return true;
}

/* ---- the commands ---- */

/*
 * softhca fabric tie and untie.  A process that the command leaves behind carries a port's frames,
 * so the command finds, and says, everything that can be wrong with the other end before that.
 */

/* The data of one tie. */
struct tying {
	const struct session *s;
	struct port_name name;
	struct msg_host_reply host;
	uint32_t row;
	struct tie_spec spec;
	char text[FABRIC_TIE_BYTES];
	struct end_tap tap;
	struct end_pcap pcap;
	struct end_udp udp;
	struct tie_end *end;
};

/* Writes what the port is tied to in words, for status. */
static void tie_spec_text(const struct tying *t, char text[FABRIC_TIE_BYTES])
{
	const struct tie_spec *spec = &t->spec;

	if (spec->tap)
		(void)snprintf(text, FABRIC_TIE_BYTES, "tap=%s", spec->tap);
	else if (spec->udp)
		(void)text_copy(text, FABRIC_TIE_BYTES, t->udp.socket.text);
	else
		(void)snprintf(text, FABRIC_TIE_BYTES, "%s%.50s%s%s%.50s", spec->in ? "in=" : "",
			       spec->in ? spec->in : "", spec->in && spec->out ? " " : "",
			       spec->out ? "out=" : "", spec->out ? spec->out : "");
}

static int tie_error(const struct tying *t, int error)
{
	const struct session *s = t->s;

	switch (error) {
	case -EBUSY:
		tool_error(s->command, "the port is tied already; see softhca fabric untie");
		break;
	case -EPROTONOSUPPORT:
		tool_error(s->command,
			   "%s/%s is a port of InfiniBand; see --link-types of softhca run",
			   t->host.name, t->name.hca);
		break;
	case -EADDRINUSE:
		tool_error(s->command,
			   "another port of this fabric has that address; 'softhca devices' shows "
			   "which, and that port can be tied to it");
		break;
	case -ELOOP:
		tool_error(s->command, "a port cannot be tied to itself");
		break;
	case -ENOLINK:
		tool_error(s->command, "the port is not tied");
		break;
	default:
		session_link_error(s, error);
	}
	return EXIT_OURS;
}

/* ---- the other end ---- */

static bool tap_prepare(struct tying *t)
{
	char error[TAP_ERROR_BYTES];
	struct tap_device tap;

	if (!tap_open(&tap, t->spec.tap, error)) {
		tool_error(t->s->command, "%s: %s", t->spec.tap, error);
		return false;
	}
	end_tap_init(&t->tap, &tap);
	t->end = &t->tap.end;
	return true;
}

static bool udp_prepare(struct tying *t)
{
	char error[UDP_ERROR_BYTES];
	struct udp_socket u;

	if (!udp_open(&u, t->spec.address, t->spec.peers, error)) {
		tool_error(t->s->command, "%s", error);
		return false;
	}
	end_udp_init(&t->udp, &u, t->spec.gso && !strcmp(t->spec.gso, "off"));
	t->end = &t->udp.end;
	return true;
}

static bool same_file(const char *one, const char *other)
{
	struct stat a, b;

	return !stat(one, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool out_prepare(struct tying *t)
{
	int ret;

	if (t->spec.in && same_file(t->spec.in, t->spec.out)) {
		tool_error(t->s->command, "%s: frames cannot go where they come from", t->spec.out);
		return false;
	}
	t->pcap.out = fopen(t->spec.out, "we");
	ret = t->pcap.out ? pcap_begin(t->pcap.out) : -errno;
	if (ret)
		tool_error(t->s->command, "%s: %s", t->spec.out, strerror(-ret));
	return !ret;
}

static bool pcap_prepare(struct tying *t)
{
	char error[PCAP_ERROR_BYTES];

	if (t->spec.in && !pcap_open(&t->pcap.in, t->spec.in, error)) {
		tool_error(t->s->command, "%s: %s", t->spec.in, error);
		return false;
	}
	if (t->spec.out && !out_prepare(t))
		return false;
	t->pcap.pace = t->spec.pace;
	t->pcap.rate = t->spec.rate;
	t->pcap.loops = t->spec.loops;
	end_pcap_init(&t->pcap);
	t->end = &t->pcap.end;
	return true;
}

/* ---- the carrier ---- */

static struct carrier *running;

static void carrier_signalled(int sig)
{
	(void)sig;
	carrier_stop(running);
}

/* The carrier belongs to no terminal, and keeps of the command's files only its own. */
static bool carrier_detach(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	prctl(PR_SET_NAME, "softhca-carrier");
	if (null < 0 || chdir("/"))
		return false;
	for (int std = 0; std <= STDERR_FILENO; std++)
		if (dup2(null, std) < 0)
			return false;
	return true;
}

static void carrier_child(struct tying *t, int ready)
{
	const struct sigaction stop = {.sa_handler = carrier_signalled};
	struct carrier_attr attr = {.row = t->row, .text = t->text, .end = t->end};
	struct carrier *c;
	int ret;

	text_copy(attr.where.dir, sizeof(attr.where.dir), t->s->dir);
	text_copy(attr.where.host, sizeof(attr.where.host), t->host.name);
	ret = carrier_open(&attr, &c);
	if (!ret) {
		running = c;
		sigaction(SIGTERM, &stop, NULL);
		sigaction(SIGINT, &stop, NULL);
		sigaction(SIGHUP, &stop, NULL);
		ret = carrier_detach() ? 0 : -errno;
	}
	if (write(ready, &ret, sizeof(ret)) != sizeof(ret) || ret)
		_exit(EXIT_OURS);
	close(ready);
	carrier_run(c);
	carrier_close(c);
	exit(0);
}

/* Closes descriptors that the command inherited, because they would stay open in the carrier. */
static void inherited_close(const struct tying *t)
{
	const int own[] = {t->tap.tap.fd,
			   t->tap.tap.links,
			   t->tap.tap.query,
			   t->udp.socket.fd,
			   t->udp.socket.links,
			   t->pcap.in.file ? fileno(t->pcap.in.file) : -1,
			   t->pcap.out ? fileno(t->pcap.out) : -1};
	int limit = (int)sysconf(_SC_OPEN_MAX);

	for (int fd = STDERR_FILENO + 1; fd < limit && fd < 1024; fd++) {
		bool keep = false;

		for (size_t i = 0; i < array_size(own); i++)
			keep |= own[i] == fd;
		if (!keep)
			close(fd);
	}
}

/* Starts the carrier: 0, or an exit status after an error line. */
static int carrier_start(struct tying *t)
{
	int ready[2], ret = -EPIPE;
	pid_t pid;

	/* Done before there is a descriptor of ours that is not in the list. */
	inherited_close(t);
	if (pipe2(ready, O_CLOEXEC)) {
		tool_error(t->s->command, "%s", strerror(errno));
		return EXIT_OURS;
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(ready[0]);
		carrier_child(t, ready[1]);
	}
	close(ready[1]);
	if (pid < 0)
		ret = -errno;
	else if (read(ready[0], &ret, sizeof(ret)) != sizeof(ret))
		ret = -EPIPE;
	close(ready[0]);
	return ret ? tie_error(t, ret) : 0;
}

/* ---- the commands ---- */

static int cable_tie(struct tying *t, struct view *v)
{
	struct msg_host_reply host;
	struct port_name peer;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int ret;

	if (!port_name_read(t->s, t->spec.port, &peer))
		return EXIT_USAGE;
	m.tie.row = t->row;
	if (!port_name_find(t->s, v, &peer, &host, &m.tie.peer))
		return EXIT_OURS;
	ret = link_call(v->sock, &m, MSG_TIE, fds);
	return ret ? tie_error(t, ret) : 0;
}

static int tie_made(struct tying *t, struct view *v)
{
	if (!port_name_find(t->s, v, &t->name, &t->host, &t->row))
		return EXIT_OURS;
	if (!v->subnet.ports[t->row].ethernet)
		return tie_error(t, -EPROTONOSUPPORT);
	if (t->spec.port)
		return cable_tie(t, v);
	/* A file that is to be written stays as it is if the port is not free. */
	if (atomic_load(&v->subnet.ports[t->row].tie_plus_1) &&
	    subnet_port_active(&v->subnet, t->row))
		return tie_error(t, -EBUSY);
	if (!(t->spec.tap ? tap_prepare(t) : t->spec.udp ? udp_prepare(t) : pcap_prepare(t)))
		return EXIT_OURS;
	tie_spec_text(t, t->text);
	return -1;
}

int command_fabric_tie(struct session *s, int argc, char **argv)
{
	static struct tying t;
	struct view v;
	int ret;

	t.s = s;
	t.tap.tap = (struct tap_device){.fd = -1, .links = -1, .query = -1};
	t.udp.socket.fd = t.udp.socket.links = -1;
	if (argc < 2) {
		tool_error(s->command, "it takes a port and what to tie it to; see %s --help",
			   s->command);
		return EXIT_USAGE;
	}
	if (!port_name_read(s, argv[0], &t.name) || !tie_spec_read(s, argc - 1, argv + 1, &t.spec))
		return EXIT_USAGE;
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	ret = tie_made(&t, &v);
	view_close(&v);
	if (ret < 0)
		ret = carrier_start(&t);
	if (!ret)
		printf("%s/%s is tied to %s%s\n", t.host.name, t.name.hca, t.text,
		       t.spec.port ? t.spec.port : "");
	return ret;
}

/* ---- fabric up --listen ---- */

static struct tying listening = {.tap.tap = {.fd = -1, .links = -1, .query = -1},
				 .udp.socket = {.fd = -1, .links = -1}};

bool listen_prepare(const struct session *s)
{
	struct tying *t = &listening;

	t->s = s;
	t->spec = (struct tie_spec){.udp = true, .peers = s->peers};
	if (strcmp(s->listen, "auto") != 0)
		t->spec.address = s->listen;
	return udp_prepare(t);
}

/* Finds the last Ethernet port of the first host, and whether it is free. */
static int listen_port(struct tying *t, struct view *v)
{
	bool found = false;

	if (!view_host(v, 0, &t->host))
		return tie_error(t, -ENOENT);
	for (uint32_t i = 0; i < t->host.nports; i++) {
		if (!v->subnet.ports[t->host.rows[i]].ethernet)
			continue;
		t->row = t->host.rows[i];
		found = true;
	}
	(void)text_copy(t->name.hca, sizeof(t->name.hca),
			subnet_node_of(&v->subnet, t->host.rows[0])->name);
	if (!found)
		return tie_error(t, -EPROTONOSUPPORT);
	(void)text_copy(t->name.hca, sizeof(t->name.hca), subnet_node_of(&v->subnet, t->row)->name);
	return 0;
}

int listen_tie(const struct session *s)
{
	struct tying *t = &listening;
	struct view v;
	int ret;

	if (!view_open(s, false, &v))
		return EXIT_OURS;
	ret = listen_port(t, &v);
	view_close(&v);
	tie_spec_text(t, t->text);
	if (!ret)
		ret = carrier_start(t);
	if (!ret)
		printf("%s/%s is tied to %s\n", t->host.name, t->name.hca, t->text);
	return ret;
}

#define ENDS_MS 2000 /* for a carrier to end, unless it is stopped */

/* Returns a descriptor that is readable when the carrier of the port has ended, or -1. */
static int carrier_watch(struct view *v, uint32_t row)
{
	struct msg_tied_reply t;

	return tied_ask(v, row, &t) && t.pid ? (int)syscall(SYS_pidfd_open, t.pid, 0) : -1;
}

/* Who ties the port next may want the socket, the interface or the file that the carrier has. */
static void carrier_wait(int pidfd)
{
	struct pollfd p = {pidfd, POLLIN, 0};

	if (pidfd < 0)
		return;
	(void)poll(&p, 1, ENDS_MS);
	close(pidfd);
}

int command_fabric_untie(struct session *s, int argc, char **argv)
{
	static struct tying t;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	struct view v;
	int ret, carrier;

	t.s = s;
	if (argc != 1) {
		tool_error(s->command, "it takes a port; see %s --help", s->command);
		return EXIT_USAGE;
	}
	if (!port_name_read(s, argv[0], &t.name))
		return EXIT_USAGE;
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	if (!port_name_find(s, &v, &t.name, &t.host, &m.index.index)) {
		view_close(&v);
		return EXIT_OURS;
	}
	carrier = carrier_watch(&v, m.index.index);
	ret = link_call(v.sock, &m, MSG_UNTIE, fds);
	view_close(&v);
	if (!ret)
		carrier_wait(carrier);
	if (ret)
		return tie_error(&t, ret);
	printf("%s/%s is not tied\n", t.host.name, t.name.hca);
	return 0;
}
