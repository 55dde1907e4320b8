// SPDX-License-Identifier: BSD-2-Clause
/* Programs that live in other namespaces than their peer: one may not look into the other, or does
 * not know it by its number. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

enum { OLD = 0x11, NEW = 0x22, PEER = 0x33 };

#define ROUNDS	10
#define PROGRAM 16 /* arguments, at most */

/* ---- this program in a namespace of its own ---- */

static void write_line(const char *path, const char *line)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line))
		device_die("%s: %m", path);
	close(fd);
}

/* Root there, as with unshare -Ur; nobody's master outside. */
static void enter_user_namespace(struct host *h)
{
	unsigned uid = geteuid(), gid = getegid();
	char line[32];

	(void)h;
	if (unshare(CLONE_NEWUSER))
		host_skip("no user namespace: %s", strerror(errno));
	write_line("/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "0 %u 1", uid);
	write_line("/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "0 %u 1", gid);
	write_line("/proc/self/gid_map", line);
}

/* The peer hammers; what is taken back stays as it is. */
static void taken_back(struct host *h, uint8_t *at)
{
	h->peer.patient = false;
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_mr *mr;

		memset(at, OLD, HOST_BYTES);
		mr = host_reg(h, at, HOST_BYTES);
		peer_connect(&h->peer);
		peer_hammer(&h->peer, at, mr->rkey, HOST_BYTES, PEER_HITS_WRITE | PEER_HITS_READ);
		usleep((useconds_t)(random() % 20000));
		host_dereg(mr);
		memset(at, PEER_POISON, HOST_BYTES);
		usleep(5000);
		host_want(!peer_rest(&h->peer).wrong, "the peer reads what is not its own");
		host_want_all(at, HOST_BYTES, PEER_POISON, "what was taken back");
	}
	h->peer.patient = true;
	peer_connect(&h->peer);
}

static void all_traffic(struct host *h)
{
	uint8_t *at = host_map(HOST_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_BYTES);

	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_exchange(h, at, mr, sizeof(uint64_t), NEW);
	host_messages(h, at, mr);
	host_messages_in(h, at, mr, sizeof(uint64_t));
	host_dereg(mr);
	taken_back(h, at);
	mr = host_reg(h, at, HOST_BYTES);
	host_exchange(h, at, mr, HOST_BYTES, PEER);
	host_messages(h, at, mr);
	host_dereg(mr);
}

/* ---- the peer in one ---- */

static int run_under(const char *const *program, const char *what)
{
	char *argv[PROGRAM + 2];
	unsigned n = 0;
	int status;
	pid_t child = fork();

	if (!child) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		dup2(null, STDERR_FILENO);
		while (*program && n < PROGRAM)
			argv[n++] = strdup(*program++);
		argv[n++] = strdup(what);
		argv[n] = NULL;
		execvp(argv[0], argv);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		device_die("no child: %m");
	return status;
}

static bool same_namespace(pid_t other, const char *kind)
{
	char path[64], ours[64] = "", theirs[64] = "";

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	if (readlink(path, ours, sizeof(ours) - 1) < 0)
		device_die("%s: %m", path);
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)other, kind);
	if (readlink(path, theirs, sizeof(theirs) - 1) < 0)
		device_die("%s: %m", path);
	return !strcmp(ours, theirs);
}

/* Of the kind there is another namespace of the peer. */
static void peer_elsewhere(struct host *h, const char *const *program, const char *kind)
{
	if (run_under(program, "true"))
		host_skip("%s cannot make the namespace here", program[0]);
	peer_end(&h->peer);
	peer_start_under(&h->peer, &h->side, h->device, program);
	peer_connect(&h->peer);
	host_want(!same_namespace(h->peer.pid, kind), "the peer lives in the same namespace");
	all_traffic(h);
}

static void peer_user(struct host *h)
{
	static const char *const program[] = {"unshare", "-Ur", NULL};

	peer_elsewhere(h, program, "user");
}

static void peer_pid(struct host *h)
{
	static const char *const program[] = {"unshare", "-Urp", "--fork", "--mount-proc", NULL};

	peer_elsewhere(h, program, "pid_for_children");
}

/* The host's numbers are those of other processes there. */
static void peer_pid_alone(struct host *h)
{
	static const char *const program[] = {"unshare", "-Urp", "--fork", NULL};

	peer_elsewhere(h, program, "pid_for_children");
}

static void peer_time(struct host *h)
{
	static const char *const program[] = {"unshare", "-UrT",   "--boottime",
					      "1000000", "--fork", NULL};

	peer_elsewhere(h, program, "time_for_children");
}

const struct host_case space_cases[] = {
	{"user namespace", all_traffic, enter_user_namespace},
	{"peer's user namespace", peer_user, NULL},
	{"peer's PID namespace", peer_pid, NULL},
	{"peer's PID namespace, our /proc", peer_pid_alone, NULL},
	{"peer's time namespace", peer_time, NULL},
	{NULL, NULL, NULL},
};
