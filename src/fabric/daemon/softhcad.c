// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhcad: the daemon of one fabric. `softhca run` or the first program that looks for a device
 * usually starts it; it leaves when its last user has left.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "fabric/daemon/server.h"
#include "prm/model.h"

#define READY_ATTEMPTS 100

struct options {
	const char *dir;
	const char *fabric;
	bool stay;
	int ready_fd; /* -1: stay in the foreground */
};

/* Large tables; as static memory their unused pages cost nothing. */
static struct fabric fabric;
static struct server server = {.listener.fd = -1, .signals.fd = -1, .home.fd = -1, .spare = -1};

static int daemon_usage(void)
{
	fprintf(stderr, "usage: softhcad --dir DIR [--fabric NAME] [--stay] [--ready-fd N]\n"
			"       softhcad --version\n");
	return 2;
}

static bool options_read(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"dir", required_argument, NULL, 'd'}, {"fabric", required_argument, NULL, 'f'},
		{"stay", no_argument, NULL, 's'},      {"ready-fd", required_argument, NULL, 'r'},
		{"version", no_argument, NULL, 'v'},   {0},
	};
	int opt;

	*o = (struct options){.ready_fd = -1};
	while ((opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (opt) {
		case 'd':
			o->dir = optarg;
			break;
		case 'f':
			o->fabric = optarg;
			break;
		case 's':
			o->stay = true;
			break;
		case 'r':
			o->ready_fd = atoi(optarg);
			break;
		case 'v':
			printf("softhcad %s\n", SOFTHCA_VERSION);
			exit(0);
		default:
			return false;
		}
	}
	if (optind != argc || !o->dir || o->dir[0] != '/' || strlen(o->dir) >= RUNDIR_BYTES)
		return false;
	if (!o->fabric)
		o->fabric = strrchr(o->dir, '/') + 1;
	return fabric_name_ok(o->fabric);
}

static void limit_lift(__rlimit_resource_t what)
{
	struct rlimit limit;

	if (getrlimit(what, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(what, &limit);
}

/* The daemon serves everybody, so it drops all that is of the program that started it. */
static void forget_parent(int keep_fd)
{
	cpu_set_t all;
	int null;

	do {
		null = open("/dev/null", O_RDWR);
	} while (null >= 0 && null <= STDERR_FILENO); /* so that no later file becomes stdio */
	if (keep_fd > STDERR_FILENO) {
		if (keep_fd > 3)
			close_range(3, (unsigned)keep_fd - 1, 0);
		close_range((unsigned)keep_fd + 1, UINT_MAX, 0);
	} else {
		close_range(3, UINT_MAX, 0);
	}
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	umask(0); /* the device trees have exactly the modes given */
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	/* The daemon needs a descriptor per process and per pair of processes that talk. */
	limit_lift(RLIMIT_NOFILE);
	limit_lift(RLIMIT_AS);
	/* A device tree that is too long for a file must be an error, not our death. */
	limit_lift(RLIMIT_FSIZE);
	signal(SIGXFSZ, SIG_IGN);
}

static void stdio_replace(int fd, int first, int last)
{
	if (fd < 0)
		return;
	for (int std = first; std <= last; std++)
		dup2(fd, std);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* Up to here somebody reads the errors; from now on only our directory's log does, if any. */
static void stdio_leave(const char *dir)
{
	char path[RUNDIR_BYTES + 8];

	snprintf(path, sizeof(path), "%s/log", dir);
	stdio_replace(open("/dev/null", O_RDWR | O_CLOEXEC), STDIN_FILENO, STDERR_FILENO);
	stdio_replace(open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600),
		      STDERR_FILENO, STDERR_FILENO);
}

/*
 * A pipe needs memory for what is written to it.  A starter that hears nothing takes us for dead,
 * so a failure is one of the daemon; but it does not matter if nobody listens any more.
 */
static int tell_ready(int fd, int status)
{
	const struct timespec nap = {.tv_nsec = 10000000};
	int32_t word = status;

	for (int i = 0; fd >= 0 && i < READY_ATTEMPTS; i++) {
		if (write(fd, &word, sizeof(word)) == sizeof(word) || errno == EPIPE) {
			close(fd);
			return 0;
		}
		nanosleep(&nap, NULL);
	}
	return fd < 0 ? 0 : -errno;
}

static bool somebody_listens(const char *dir)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	bool yes;
	int sock;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return false;
	yes = !connect(sock, (struct sockaddr *)&addr, sizeof(addr)) || errno == EAGAIN;
	close(sock);
	return yes;
}

/*
 * Takes the lock: 0, a negative errno, or FABRIC_ANOTHER_SERVES.  The holder of the lock may also
 * be coming up, leaving or cleaning up, each of which takes milliseconds.
 */
static int become_daemon(const char *dir, int *lock, bool *remains)
{
	const uint64_t deadline = clock_ns() + FABRIC_TIMEOUT_MS * 1000000ull;
	const struct timespec nap = {.tv_nsec = 1000000};
	int ret;

	do {
		ret = rundir_make(dir);
		if (ret)
			return ret;
		*lock = rundir_lock(dir, false);
		*remains = *lock >= 0;
		if (*lock == -ENOENT)
			*lock = rundir_lock(dir, true);
		if (*lock >= 0)
			return 0;
		if (*lock == -EAGAIN && somebody_listens(dir))
			return FABRIC_ANOTHER_SERVES;
		if (*lock != -EAGAIN && *lock != -ENOENT) {
			rundir_abandon(dir);
			return *lock;
		}
		nanosleep(&nap, NULL);
	} while (clock_ns() < deadline);
	return -ETIMEDOUT;
}

static int choose_model(uint32_t *out)
{
	const char *name = getenv("SOFTHCA_MODEL");
	int model = name && *name ? model_find(name) : (int)MODEL_DEFAULT;

	if (model < 0) {
		log_error("SOFTHCA_MODEL: '%s' is not a model; see softhca(1)", name);
		return -EINVAL;
	}
	*out = (uint32_t)model;
	return 0;
}

/* SOFTHCA_SM: who manages the subnet. */
static int choose_sm(struct fabric *f)
{
	const char *text = getenv("SOFTHCA_SM");
	uint32_t priority;

	f->sm_mode = SM_BUILT_IN;
	if (!text || !*text || !strcmp(text, "builtin"))
		return 0;
	if (text_number(text, FABRIC_SM_PRIORITY_MAX, &priority)) {
		f->sm_priority = priority;
		return 0;
	}
	f->sm_mode = SM_EXTERNAL;
	if (!strcmp(text, "external"))
		return 0;
	log_error("SOFTHCA_SM: '%s' is neither builtin nor external nor a priority from 1 to 15",
		  text);
	return -EINVAL;
}

/* SOFTHCA_TOPOLOGY: a file that describes the fabric. */
static int read_topology(struct fabric *f, const char *path)
{
	char error[PLAN_ERROR_BYTES];
	int ret;

	if (!text_copy(f->topology_path, sizeof(f->topology_path), path)) {
		log_error("topology: %.40s...: the path has more than %u characters", path,
			  FABRIC_PATH_BYTES - 1);
		return -ENAMETOOLONG;
	}
	ret = plan_read(&f->plan, path, error);
	if (!ret)
		ret = plan_check(&f->plan, error);
	if (ret)
		log_error("topology: %s", error);
	return ret;
}

/* SOFTHCA_DEVICE_NAMES: what the devices of each host are called. */
static int name_devices(struct fabric *f, uint32_t ndevices, struct device_names *names)
{
	const char *text = getenv("SOFTHCA_DEVICE_NAMES"), *wrong;

	*names = (struct device_names){0};
	if (!text || !*text)
		return 0;
	wrong = device_names_read(text, ndevices, names);
	if (!wrong && text_copy(f->device_names, sizeof(f->device_names), text))
		return 0;
	log_error("SOFTHCA_DEVICE_NAMES: '%s' does not name the %u devices of a host: %s", text,
		  ndevices, wrong);
	return -EINVAL;
}

/* SOFTHCA_LINK_TYPES: what the devices of each host are. */
static int generate_topology(struct fabric *f, uint32_t hosts)
{
	const char *text = getenv("SOFTHCA_LINK_TYPES");
	struct device_names names;
	struct link_types types;
	int ret;

	if (!text || !*text)
		text = LINK_TYPES_DEFAULT;
	if (!link_types_read(text, &types) ||
	    !text_copy(f->link_types, sizeof(f->link_types), text)) {
		log_error("SOFTHCA_LINK_TYPES: '%s' is not a list of ib and eth for up to %u "
			  "devices",
			  text, SLOT_PORTS);
		return -EINVAL;
	}
	ret = name_devices(f, types.ndevices, &names);
	return ret ? ret : topology_generate(&f->topology, hosts, &types, &names);
}

/* SOFTHCA_NETDEV: interfaces of the machine that Ethernet ports stand for. */
static int choose_netdevs(struct fabric *f)
{
	const char *text = getenv("SOFTHCA_NETDEV");

	if (!text || !*text)
		return 0;
	if (!text_copy(f->netdevs, sizeof(f->netdevs), text)) {
		log_error("SOFTHCA_NETDEV: longer than %zu characters", sizeof(f->netdevs) - 1);
		return -EINVAL;
	}
	if (!topology_choose_netdevs(&f->topology, text))
		return 0;
	log_error("SOFTHCA_NETDEV: '%s' is not a list of HOST/DEVICE=INTERFACE, for devices with "
		  "an Ethernet port",
		  text);
	return -EINVAL;
}

/* SOFTHCA_HOSTS: how many hosts, all alike. */
static int choose_topology(struct fabric *f)
{
	const char *text = getenv("SOFTHCA_HOSTS"), *path = getenv("SOFTHCA_TOPOLOGY");
	uint32_t hosts = TOPOLOGY_DEFAULT_HOSTS;
	int ret;

	if (path && *path)
		return read_topology(f, path);
	if (text && *text && !text_number(text, FABRIC_MAX_HOSTS, &hosts)) {
		log_error("SOFTHCA_HOSTS: '%s' is not a number of hosts from 1 to %u", text,
			  FABRIC_MAX_HOSTS);
		return -EINVAL;
	}
	ret = generate_topology(f, hosts);
	return ret ? ret : choose_netdevs(f);
}

/*
 * Removes files before connections end, so that a program that waits for the end finds nothing
 * left.  Only the lock stays if programs go on without us.
 */
static void home_leave(const char *dir, int lock)
{
	/* The directory belongs to another daemon if ours was removed. */
	if (!rundir_lock_stands(dir, lock))
		return;
	if (server_has_programs(&server))
		rundir_clear(dir);
	else
		rundir_remove(dir);
}

/*
 * Where the numbers of a fabric's objects begin.  Two programs may believe that they are in one
 * fabric, and are not: the user, --fabric or XDG_RUNTIME_DIR is another one.  If their queue pairs
 * had the same number, each would take the connection to the other for one to itself.  So numbers
 * follow from the fabric's directory, which differs, and are the same on each run (FNV-1a).
 */
static uint32_t first_number(const char *dir)
{
	uint32_t hash = 2166136261u;

	for (; *dir; dir++)
		hash = (hash ^ (uint8_t)*dir) * 16777619u;
	return hash;
}

static int daemon_serve(const struct options *o)
{
	bool remains;
	int lock, ret;

	ret = choose_model(&fabric.model);
	if (ret)
		return ret;
	ret = choose_sm(&fabric);
	if (!ret)
		ret = choose_topology(&fabric);
	if (ret)
		return ret;
	ret = become_daemon(o->dir, &lock, &remains);
	if (ret)
		return ret;
	rundir_clear(o->dir); /* removes what a killed daemon left */
	text_copy(fabric.dir, sizeof(fabric.dir), o->dir);
	text_copy(fabric.name, sizeof(fabric.name), o->fabric);
	fabric.first_number = first_number(o->dir);
	/* Programs of a daemon that was killed may live on with numbers that it gave out from there, even
	 * if another daemon has come and gone since, and the directory with it. */
	if (remains || rundir_has_survivors(o->dir))
		fabric.first_number += (uint32_t)(clock_ns() / 1000);
	ret = fabric_create(&fabric);
	if (ret)
		goto remove;
	ret = trees_open(&fabric);
	if (ret)
		goto destroy;
	server.stay = o->stay;
	ret = server_open(&server, &fabric, lock);
	if (ret)
		goto destroy;
	ret = tell_ready(o->ready_fd, 0);
	if (ret)
		goto destroy;
	if (o->ready_fd >= 0)
		stdio_leave(o->dir);
	log_info("fabric %s: serving in %s", fabric.name, fabric.dir);
	server_run(&server);
	log_info("fabric %s: leaving", fabric.name);
	home_leave(o->dir, lock);
destroy:
	server_close(&server);
	fabric_destroy(&fabric);
	/* What did not come up goes last: removing it takes descriptors, which may be short. */
	if (ret)
		home_leave(o->dir, lock);
	close(lock);
	return ret;
remove:
	rundir_remove(o->dir);
	close(lock);
	return ret;
}

int main(int argc, char **argv)
{
	struct options o;
	int ret;

	if (!options_read(argc, argv, &o))
		return daemon_usage();
	log_init();
	if (o.ready_fd >= 0)
		setsid();
	forget_parent(o.ready_fd);
	if (chdir("/"))
		log_debug("cannot leave the working directory");
	ret = daemon_serve(&o);
	if (ret < 0)
		log_error("fabric %s: %s: %s", o.fabric, o.dir, strerror(-ret));
	if (ret == FABRIC_ANOTHER_SERVES && o.ready_fd < 0)
		log_error("fabric %s: already served", o.fabric);
	/* After a run the descriptor is closed and this has no effect. */
	if (ret && tell_ready(o.ready_fd, ret))
		log_debug("nobody hears why we end");
	return ret ? 1 : 0;
}
