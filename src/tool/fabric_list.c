// SPDX-License-Identifier: BSD-2-Clause
/* softhca fabric list and down: all fabrics of this user, as their directories name them. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "fabric/client/link.h"
#include "fabric/client/trouble.h"
#include "registry/registry.h"
#include "tool/tool.h"

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

static int fabric_down(struct session *s)
{
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int sock, ret;

	sock = link_open(s->dir, NULL, &m, MSG_SHUTDOWN, fds);
	if (sock == -ECONNREFUSED)
		return fabric_sweep(s);
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
