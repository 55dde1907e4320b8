// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca fabric tie and untie.  A process that the command leaves behind carries a port's frames,
 * so the command finds, and says, everything that can be wrong with the other end before that.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "tie/end_pcap.h"
#include "tie/end_tap.h"
#include "tool/port_name.h"
#include "tool/tie_spec.h"

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
	struct tie_end *end;
};

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
	const int own[] = {t->tap.tap.fd, t->tap.tap.links, t->tap.tap.query,
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
	if (!(t->spec.tap ? tap_prepare(t) : pcap_prepare(t)))
		return EXIT_OURS;
	tie_spec_text(&t->spec, t->text);
	return -1;
}

int command_fabric_tie(struct session *s, int argc, char **argv)
{
	static struct tying t;
	struct view v;
	int ret;

	t.s = s;
	t.tap.tap = (struct tap_device){.fd = -1, .links = -1, .query = -1};
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

int command_fabric_untie(struct session *s, int argc, char **argv)
{
	static struct tying t;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	struct view v;
	int ret;

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
	ret = link_call(v.sock, &m, MSG_UNTIE, fds);
	view_close(&v);
	if (ret)
		return tie_error(&t, ret);
	printf("%s/%s is not tied\n", t.host.name, t.name.hca);
	return 0;
}
