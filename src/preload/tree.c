// SPDX-License-Identifier: BSD-2-Clause
/*
 * Paths of the device tree.  Almost every path that a program uses is not ours, so a search for one
 * word decides that, before anything is copied.
 */
#include "preload/libc.h"

#include "preload/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "driver/cdev.h"
#include "preload/program_memory.h"

/* A path that is ours contains the word, or begins with SYSFS. */
#define WORD  "infiniband"
#define SYSFS "/sys/"

static const char *const prefixes[] = {
	"/sys/class/infiniband",     "/sys/class/infiniband_verbs",
	"/sys/class/infiniband_mad", "/sys/class/infiniband_cm",
	"/dev/infiniband",
};

/*
 * Directories that the tree shares with the machine: a path that the tree does not have is the
 * machine's, unless it lies below a device of the tree, which has no other files.  A listing is the
 * tree's, which has links to the machine's entries; that of network interfaces is the machine's,
 * because the tree's interfaces are of the machine.
 */
#define NETWORK "/sys/class/net"
static const char *const shared_prefixes[] = {
	"/sys/bus/pci/devices",
	"/sys/bus/pci/drivers/mlx5_core",
	NETWORK,
};

/* Where symbolic links of the prefixes lead.  The machine's own devices are there too: a path that
 * exists is the machine's, and any other path is looked for in the tree. */
#define DEVICES "/sys/devices/"

/* Directories whose files the daemon changes while it runs, and such single files. */
static const char *const live_directories[] = {"counters", "hw_counters", "gids", "pkeys"};
static const char *const live_files[] = {
	"state", "phys_state", "lid",	    "sm_lid", "lid_mask_count",
	"sm_sl", "cap_mask",   "node_desc", "rate",
};

/* A daemon that could not start is not tried again at once, because a listing is many calls. */
#define START_RETRY_NS 1000000000ull

enum { ENV_UNREAD, ENV_READING, ENV_OFF, ENV_ON };
static _Atomic(int) env_state;
static char root[PATH_MAX]; /* valid once ENV_ON */
static size_t root_len;
static _Atomic(uint64_t) start_failed_ns;

static void read_environment(void)
{
	int state = ENV_UNREAD;
	const char *dir, *host;
	int n = 0;

	/* The run-time of a sanitizer opens files before the C library has its environment; what we
	 * would read then must not stand for the program's life. */
	if (!environ)
		return;
	if (!atomic_compare_exchange_strong(&env_state, &state, ENV_READING))
		return;
	dir = secure_getenv("SOFTHCA_DIR");
	host = secure_getenv("SOFTHCA_HOST");
	if (dir && dir[0] == '/' && host && host[0] && !strchr(host, '/'))
		n = snprintf(root, sizeof(root), "%s/hosts/%s", dir, host);
	state = n > 0 && n < (int)sizeof(root) ? ENV_ON : ENV_OFF;
	root_len = (size_t)n;
	atomic_store_explicit(&env_state, state, memory_order_release);
}

bool tree_active(void)
{
	int state = atomic_load_explicit(&env_state, memory_order_acquire);

	if (unlikely(state == ENV_UNREAD)) {
		read_environment();
		state = atomic_load_explicit(&env_state, memory_order_acquire);
	}
	return state == ENV_ON;
}

void tree_missed(void)
{
	(void)cdev_ensure_tree();
}

static __attribute__((constructor)) void tree_init(void)
{
	tree_active();
}

/* ---- lexical work ---- */

static bool path_listed(const char *const *list, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(path, list[i]))
			return true;
	return false;
}

struct walk {
	char *out;
	size_t len, size;
	bool inside;	/* the path so far is a prefix or below one */
	size_t shared;	/* length of that prefix if the machine shares it; 0: it does not */
	bool left;	/* ".." led out of a prefix */
	unsigned depth; /* components below the prefix */
};

static bool walk_append(struct walk *w, const char *name, size_t n)
{
	if (!range_inside(w->len, n + 2, w->size))
		return false;
	w->out[w->len++] = '/';
	memcpy(w->out + w->len, name, n);
	w->len += n;
	w->out[w->len] = '\0';
	return true;
}

static void walk_drop(struct walk *w)
{
	while (w->len && w->out[--w->len] != '/')
		;
	w->out[w->len] = '\0';
}

static bool walk_step(struct walk *w, const char *name, size_t n)
{
	bool up = n == 2 && name[0] == '.' && name[1] == '.';

	if (n == 0 || (n == 1 && name[0] == '.'))
		return true;
	if (!w->inside && up) {
		walk_drop(w);
		return true;
	}
	if (w->inside && up && w->depth-- == 0) {
		walk_drop(w);
		w->inside = false;
		w->left = true;
		return true;
	}
	if (!walk_append(w, name, n))
		return false;
	if (!w->inside) {
		w->shared = path_listed(shared_prefixes, array_size(shared_prefixes), w->out)
				    ? w->len
				    : 0;
		w->inside = w->shared || path_listed(prefixes, array_size(prefixes), w->out);
	} else if (!up)
		w->depth++;
	return true;
}

/*
 * Normalises as far as needed to see a prefix.  Below a prefix, ".." stays as it is, because the
 * step before it may be a symbolic link ("device/..").
 */
static bool walk_path(struct walk *w, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (!walk_step(w, path, n))
			return false;
		path += n;
		path += *path == '/';
	}
	return true;
}

static bool name_listed(const char *const *list, size_t count, const char *name, size_t n)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == n && !strncmp(list[i], name, n))
			return true;
	return false;
}

/* Looks at the last component and its directory, if the path names one. */
static bool live_name(const char *path, bool unknown_directory)
{
	const char *name = text_file_name(path);
	const char *dir, *end = name - 1;

	if (name_listed(live_files, array_size(live_files), name, strlen(name)))
		return true;
	if (name == path)
		return unknown_directory;
	for (dir = end; dir > path && dir[-1] != '/'; dir--)
		;
	return name_listed(live_directories, array_size(live_directories), dir,
			   (size_t)(end - dir));
}

bool tree_live(const char *below, char *name, size_t size)
{
	static const char dir[] = "/" WORD "/";
	const char *rest = strstr(below, dir);
	int n;

	if (!rest || strncmp(below, "sys/", 4) != 0 || !live_name(below, false))
		return false;
	/* The class's directory is a symbolic link into DEVICES, which a path may go around. */
	n = snprintf(name, size, "sys/class%s", rest);
	return n > 0 && (size_t)n < size;
}

bool tree_written(const char *path)
{
	return path && program_path_is_valid(path) && !strcmp(text_file_name(path), "node_desc");
}

const char *tree_device(const char *below)
{
	static const char dir[] = "dev/infiniband/";
	const char *name = below + sizeof(dir) - 1;

	if (strncmp(below, dir, sizeof(dir) - 1) != 0 || !*name || strchr(name, '/'))
		return NULL;
	return name;
}

/* ---- mapping ---- */

/*
 * The first look of a process always asks for the daemon, even if the directory is there: the
 * daemon then holds the fabric for as long as the process lives, which may be what keeps it from
 * leaving.
 */
static void ensure_tree(void)
{
	static _Atomic(bool) held;
	uint64_t failed;

	if (atomic_load(&held) && !real(access)(root, F_OK))
		return;
	failed = atomic_load(&start_failed_ns);
	if (failed && clock_ns() - failed < START_RETRY_NS)
		return;
	if (cdev_ensure_tree())
		atomic_store(&start_failed_ns, clock_ns());
	else
		atomic_store(&held, true);
}

/* Gives the directory from which a relative path starts. */
static bool directory_of(int dirfd, char *out, size_t size)
{
	char link[40];
	ssize_t n;

	if (dirfd == AT_FDCWD)
		snprintf(link, sizeof(link), "/proc/thread-self/cwd");
	else
		snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", dirfd);
	n = real(readlink)(link, out, size - 1);
	if (n <= 0 || out[0] != '/')
		return false;
	out[n] = '\0';
	return true;
}

/* Tells whether the path, which is in a shared directory, lies below a device of the tree. */
static bool is_below_device(const struct walk *w, const struct tree_path *t)
{
	char *device = strchr(w->out + w->shared, '/');
	char *end = device ? strchr(device + 1, '/') : NULL;
	bool ours;

	/* Most of an interface is the machine's, also what it gets later. */
	if (end && !strncmp(w->out, NETWORK, w->shared))
		end = strncmp(end, "/device/", 8) ? NULL : strchr(end + 1, '/');
	if (!end)
		return false;
	*end = '\0';
	ours = !real(access)(t->text, F_OK);
	*end = '/';
	return ours;
}

/* The path stands behind the root in t->text. */
static bool is_machines(const struct walk *w, const struct tree_path *t)
{
	if (!strcmp(w->out, NETWORK))
		return true;
	ensure_tree();
	return w->shared && real(access)(t->text, F_OK) && !is_below_device(w, t);
}

static bool below_root(const char *path)
{
	return !strncmp(path, root, root_len) && path[root_len] == '/';
}

static bool is_devices_path(const char *path)
{
	return !strncmp(path, DEVICES, sizeof(DEVICES) - 1);
}

static bool is_sysfs_path(const char *path)
{
	return !strncmp(path, SYSFS, sizeof(SYSFS) - 1);
}

static const char *path_resolve(int dirfd, const char *path, struct tree_path *t)
{
	/* We build the normalised path behind the root, so that a match is mapped already. */
	struct walk w = {.out = t->text + root_len, .size = sizeof(t->text) - root_len};
	char base[PATH_MAX];

	memcpy(t->text, root, root_len);
	w.out[0] = '\0';
	if (path[0] != '/' && (!directory_of(dirfd, base, sizeof(base)) || !walk_path(&w, base)))
		return path;
	if (!walk_path(&w, path))
		return path;
	if (w.inside && is_machines(&w, t))
		return path;
	if (w.inside) {
		t->below = w.out + 1;
		return t->text;
	}
	/* "/dev/infiniband/..": the kernel would not find the first part. */
	if (w.left && path[0] == '/')
		return w.len ? w.out : "/";
	if (is_devices_path(w.out) && real(access)(w.out, F_OK) && !real(access)(t->text, F_OK)) {
		t->below = w.out + 1;
		return t->text;
	}
	/* Through the current or an open directory, the kernel finds the path without us. */
	if (below_root(w.out))
		t->below = w.out + root_len + 1;
	return path;
}

static bool may_be_live(const char *path)
{
	return path[0] && path[0] != '/' && live_name(path, true);
}

/* The kernel says what is wrong with a path that cannot be read. */
static const char *path_map(int dirfd, const char *path, struct tree_path *t, bool live)
{
	int saved_errno = errno;

	t->below = NULL;
	if (!path || !tree_active() || !program_path_is_valid(path))
		return path;
	if (strstr(path, WORD) || is_sysfs_path(path) || (live && may_be_live(path)))
		path = path_resolve(dirfd, path, t);
	errno = saved_errno;
	return path;
}

const char *tree_map(int dirfd, const char *path, struct tree_path *t)
{
	return path_map(dirfd, path, t, false);
}

const char *tree_map_live(int dirfd, const char *path, struct tree_path *t)
{
	return path_map(dirfd, path, t, true);
}

void tree_unmap(char *path)
{
	struct tree_path t;
	struct walk w = {.out = t.text, .size = sizeof(t.text)};
	char *rest = path + root_len;

	t.text[0] = '\0';
	if (tree_active() && below_root(path) &&
	    (is_sysfs_path(rest) || (walk_path(&w, rest) && w.inside)))
		memmove(path, rest, strlen(rest) + 1);
}

/* ---- device files ---- */

bool tree_device_number(const char *name, dev_t *out)
{
	static const char *const classes[] = {"infiniband_verbs", "infiniband_mad", "infiniband_cm",
					      "misc", "uio"};
	int saved_errno = errno;
	bool found = false;

	for (size_t i = 0; i < array_size(classes) && !found; i++) {
		char text[PATH_MAX];
		unsigned major_no, minor_no;
		ssize_t n;
		int fd;

		if (snprintf(text, sizeof(text), "%s/sys/class/%s/%s/dev", root, classes[i],
			     name) >= (int)sizeof(text))
			break;
		fd = real(open)(text, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		real(close)(fd);
		text[n > 0 ? n : 0] = '\0';
		if (sscanf(text, "%u:%u", &major_no, &minor_no) == 2) {
			*out = makedev(major_no, minor_no);
			found = true;
		}
	}
	errno = saved_errno;
	return found;
}
