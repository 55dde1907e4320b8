/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks through all objects and transfers, and says on standard output what was refused and at last
 * "done".  What has gone wrong it says on standard error, and ends with status 1; 3: something did
 * not end.
 *
 *   walk DEVICE warm      without faults, with those that the injector makes, and without again:
 *                         after the last round the process must have as many descriptors, mappings
 *                         and pieces of memory as after the first
 *   walk DEVICE cold      begins with the faults
 *   walk DEVICE served    once; everything may be refused
 *   walk DEVICE strict    once; nothing may be
 *   walk DEVICE innocent  goes on with a connection that it has until it may read from its standard
 *                         input, which must not fail
 */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inject.h"
#include "walk.h"

#pragma weak inject_hold
#pragma weak inject_live
#pragma weak inject_live_print

enum { STATUS_WRONG = 1, STATUS_HUNG = 3 };

static const struct walk_step *const tables[] = {walk_verbs, walk_qps,	  walk_mlx5, walk_devx,
						 walk_data,  walk_remote, walk_mads};
#define TABLES (sizeof(tables) / sizeof(*tables))

static int wrong;

/* ---- what a driver of the kernel may answer for want of memory, descriptors or a daemon ---- */

static bool refusal_is_plausible(const char *step, int error)
{
	static const int good[] = {ENOMEM, EMFILE, ENFILE, ENOSPC, EAGAIN, ENODEV, EIO};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		if (error == good[i])
			return true;
	/* Of commands of DEVX, whose status says the rest. */
	if (error == EREMOTEIO)
		return !strncmp(step, "devx", strlen("devx"));
	/* libmlx5 goes without what it could not ask the device for when it was opened. */
	if (error == EOPNOTSUPP)
		return !strcmp(step, "sig_mkey");
	/* Of files of a device that has gone. */
	if (error == ENXIO || error == EPIPE)
		return !strcmp(step, "umad") || !strcmp(step, "mad_agents") ||
		       !strcmp(step, "issm");
	/* Of what libibverbs tries instead of a file that cannot be opened, on any driver. */
	return error == ENOENT && !strcmp(step, "open");
}

static void step_result(const struct walk *w, const char *verb, const char *name, int ret)
{
	if (ret == WALK_SKIP && !w->faulty)
		printf("left out: %s\n", name);
	if (!ret || ret == WALK_SKIP)
		return;
	if (ret == WALK_HUNG) {
		fprintf(stderr, "%s %s: does not end\n", verb, name);
		exit(STATUS_HUNG);
	}
	if (w->faulty && ret > 0 && refusal_is_plausible(name, ret) && strcmp(verb, "drop") != 0) {
		printf("refused: %s: %s\n", name, strerror(ret));
		return;
	}
	fprintf(stderr, "%s %s: %s\n", verb, name, ret > 0 ? strerror(ret) : "wrong");
	wrong = STATUS_WRONG;
}

static void steps_make(struct walk *w, const struct walk_step *table)
{
	for (const struct walk_step *s = table; s->name; s++)
		step_result(w, "make", s->name, s->make(w));
}

static void steps_drop(struct walk *w, const struct walk_step *table)
{
	size_t n = 0;

	while (table[n].name)
		n++;
	while (n--)
		if (table[n].drop)
			step_result(w, "drop", table[n].name, table[n].drop(w));
}

static void round_walk(struct walk *w)
{
	for (size_t i = 0; i < TABLES; i++)
		steps_make(w, tables[i]);
	for (size_t i = TABLES; i--;)
		steps_drop(w, tables[i]);
}

/* ---- what a round leaves ---- */

#define DESCRIPTORS 4096u

struct remains {
	size_t memory, descriptors, mappings;
};

/* Printing says which are there since the last count. */
static size_t descriptors_count(bool print)
{
	static unsigned char seen_at[DESCRIPTORS], counts;
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t n = 0;

	counts += !print;
	while (dir && (entry = readdir(dir))) {
		char path[300], target[200] = "";
		unsigned long fd = strtoul(entry->d_name, NULL, 10) % DESCRIPTORS;

		n++;
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (print && readlink(path, target, sizeof(target) - 1) > 0)
			fprintf(stderr, "descriptor %s: %s%s\n", entry->d_name, target,
				seen_at[fd] == counts ? ", new" : "");
		else if (!print && !seen_at[fd])
			seen_at[fd] = counts;
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Those of the device: anonymous ones are the C library's to keep, as stacks for further threads. */
static size_t mappings_count(bool print)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	size_t n = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/memfd:"))
			continue;
		n++;
		if (print)
			fputs(line, stderr);
	}
	if (maps)
		fclose(maps);
	return n;
}

static struct remains remains_count(void)
{
	return (struct remains){
		.memory = inject_live ? inject_live() : 0,
		.descriptors = descriptors_count(false),
		.mappings = mappings_count(false),
	};
}

static void remains_compare(const struct remains *measure, const struct remains *is)
{
	if (is->memory > measure->memory) {
		fprintf(stderr, "%zu pieces of memory more\n", is->memory - measure->memory);
		inject_live_print();
		wrong = STATUS_WRONG;
	}
	if (is->descriptors > measure->descriptors) {
		fprintf(stderr, "%zu descriptors more\n", is->descriptors - measure->descriptors);
		descriptors_count(true);
		wrong = STATUS_WRONG;
	}
	if (is->mappings > measure->mappings) {
		fprintf(stderr, "%zu mappings more\n", is->mappings - measure->mappings);
		mappings_count(true);
		wrong = STATUS_WRONG;
	}
}

/* ---- the other process ---- */

static pid_t peer_start(struct walk *w, char *self)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	pid = fork();
	if (!pid) {
		char *argv[] = {self, (char *)(uintptr_t)w->device, (char *)(uintptr_t) "peer",
				NULL};

		dup2(pair[1], STDIN_FILENO);
		unsetenv("INJECT_INTO");
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	close(pair[1]);
	w->peer = pair[0];
	return pid;
}

static void peer_end(struct walk *w, pid_t pid)
{
	int status = 0;

	close(w->peer);
	if (waitpid(pid, &status, 0) == pid && (!status || (w->peer_may_fail && WIFEXITED(status))))
		return;
	fprintf(stderr, "the other process: status %#x\n", (unsigned)status);
	wrong = STATUS_WRONG;
}

static void *map_pages(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		exit(2);
	return at;
}

static void faulty_round(struct walk *w)
{
	const char *last = getenv("INJECT_LAST");

	w->faulty = true;
	w->lasting = last && !strcmp(last, "0");
	if (inject_hold)
		inject_hold(false);
	round_walk(w);
	if (inject_hold)
		inject_hold(true);
	w->faulty = w->lasting = false;
}

/* ---- what it may be asked to do ---- */

static void walk_with_faults(struct walk *w, bool cold)
{
	struct remains measure, is;

	if (cold)
		faulty_round(w);
	round_walk(w);
	measure = remains_count();
	if (!cold)
		faulty_round(w);
	round_walk(w);
	is = remains_count();
	/* A second after it has failed, the process tries again to hold the fabric, which may be in any
	 * round; what is lost in each round is lost in one more. */
	if (cold && is.descriptors > measure.descriptors) {
		measure = is;
		round_walk(w);
		is = remains_count();
	}
	remains_compare(&measure, &is);
}

static void walk_cold(struct walk *w)
{
	walk_with_faults(w, true);
}

static void walk_warm(struct walk *w)
{
	walk_with_faults(w, false);
}

static void walk_served(struct walk *w)
{
	w->peer_may_fail = true;
	faulty_round(w);
}

static void walk_innocent(struct walk *w)
{
	struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};

	for (size_t i = 0; i < TABLES; i++)
		steps_make(w, tables[i]);
	puts("ready");
	while (!wrong && !poll(&end, 1, 1))
		step_result(w, "make", "remote data again", walk_remote_again(w));
	for (size_t i = TABLES; i--;)
		steps_drop(w, tables[i]);
}

static const struct {
	const char *name;
	void (*walk)(struct walk *w);
} modes[] = {
	{"cold", walk_cold},	{"warm", walk_warm},	     {"served", walk_served},
	{"strict", round_walk}, {"innocent", walk_innocent},
};
#define MODES (sizeof(modes) / sizeof(*modes))

int main(int argc, char **argv)
{
	static struct walk w = {.umad = -1, .issm = -1};
	size_t mode = 0;
	pid_t peer;

	if (argc < 3)
		return 2;
	w.device = argv[1];
	if (!strcmp(argv[2], "peer"))
		walk_peer(w.device, STDIN_FILENO);
	while (mode < MODES && strcmp(modes[mode].name, argv[2]) != 0)
		mode++;
	if (mode == MODES)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	w.memory = map_pages(WALK_BYTES);
	w.rings = map_pages((size_t)3 * WALK_PAGE);
	peer = peer_start(&w, argv[0]);
	modes[mode].walk(&w);
	peer_end(&w, peer);
	if (!wrong)
		puts("done");
	return wrong;
}
