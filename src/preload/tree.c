// SPDX-License-Identifier: BSD-2-Clause
/*
 * The device tree as the functions of libc see it: which paths are looked up in it, what a file of it
 * is, and how it looks.  Almost every path that a program uses is not ours, so its first characters,
 * or a search for one word, decide that before anything is copied.
 */
#include "preload/libc.h"

#include "preload/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/text.h"
#include "driver/cdev.h"
#include "fabric/device_tree.h"
#include "preload/program_memory.h"

/* Directories whose files the daemon changes while it runs, and such single files. */
static const char *const live_directories[] = {"counters", "hw_counters", "gids",
					       "types",	   "ndevs",	  "pkeys"};
static const char *const live_files[] = {
	"state", "phys_state", "lid",	    "sm_lid", "lid_mask_count",
	"sm_sl", "cap_mask",   "node_desc", "rate",
};

/* A daemon that could not start is not tried again at once, because a listing is many calls. */
#define START_RETRY_NS 1000000000ull

enum { ENV_UNREAD, ENV_READING, ENV_OFF, ENV_ON };
static _Atomic(int) env_state;
static char root[PATH_MAX]; /* valid once ENV_ON */
static void ensure_tree(void);
static _Atomic(bool) held;
static struct view view = {.root = root, .ensure = ensure_tree, .held = &held};
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
	view.root_len = (size_t)n;
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
	if (tree_active())
		tree_directory_changed();
}

/* ---- what a name in the tree means ---- */

static bool name_listed(const char *const *list, size_t count, const char *name, size_t n)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == n && !strncmp(list[i], name, n))
			return true;
	return false;
}

/* Looks at the last component and its directory. */
static bool live_name(const char *path)
{
	const char *name = text_file_name(path);
	const char *dir, *end = name - 1;

	if (name_listed(live_files, array_size(live_files), name, strlen(name)))
		return true;
	if (name == path)
		return false;
	for (dir = end; dir > path && dir[-1] != '/'; dir--)
		;
	return name_listed(live_directories, array_size(live_directories), dir,
			   (size_t)(end - dir));
}

bool tree_live(const char *below, char *name, size_t size)
{
	static const char dir[] = "/" TREE_WORD "/";
	const char *rest = NULL, *next = below;
	int n;

	if (strncmp(below, "sys/", 4) != 0 || !live_name(below))
		return false;
	/* The last of several, in a path through links ("mlx5_0/device/infiniband/mlx5_0/..."). */
	for (; (next = strstr(next, dir)); next++)
		rest = next;
	if (!rest)
		return false;
	/* The class's directory is a symbolic link to where the device is. */
	n = snprintf(name, size, "sys/class%s", rest);
	return n > 0 && (size_t)n < size;
}

/* ---- mapping ---- */

/*
 * The first look of a process always asks for the daemon, even if the directory is there: the
 * daemon then holds the fabric for as long as the process lives, which may be what keeps it from
 * leaving.
 */
static void ensure_tree(void)
{
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

/*
 * Relative paths are looked at once the process has had to do with a directory of the view, because
 * only then its current directory, or a descriptor, can be one.
 */
static _Atomic(bool) near_view;

/* Tells whether a path below /sys may be the tree's; what many programs read there is not. */
static bool sysfs_in_view(const char *path)
{
	static const char *const shared[] = {"class", "bus", "devices", "dev"};
	static const char machines[] = "devices/system/";
	size_t n;

	path += strspn(path, "/");
	n = strcspn(path, "/");
	if (!n || path[0] == '.' || strstr(path, "/.."))
		return true;
	return name_listed(shared, array_size(shared), path, n) &&
	       strncmp(path, machines, strlen(machines)) != 0;
}

/*
 * Of /proc the tree has the settings of rdma_cm, by their absolute names.  Listings of what is above do
 * not show them: sysctl -a takes the first two entries of each directory for "." and "..", which the
 * kernel's file systems list first and the one that the tree is on may not.
 */
static bool settings_in_view(const char *path)
{
	static const char dir[] = "proc/sys/net/rdma_ucm";

	return !strncmp(path, dir, strlen(dir));
}

/* A path that contains the word is looked at in any case. */
static bool begins_in_view(const char *path)
{
	if (path[0] != '/')
		return atomic_load_explicit(&near_view, memory_order_relaxed) && path[0];
	path += strspn(path, "/");
	if (!strncmp(path, "sys", 3) && (!path[3] || path[3] == '/'))
		return sysfs_in_view(path + 3);
	if (settings_in_view(path))
		return true;
	if (strncmp(path, "dev", 3) != 0 || (path[3] && path[3] != '/'))
		return false;
	path += 3;
	path += strspn(path, "/");
	return !*path || *path == '.' || !strncmp(path, "uio", 3);
}

/* Gives the name of the file behind a descriptor, or of the current directory. */
static bool name_of(int fd, char out[static PATH_MAX])
{
	ssize_t n = descriptor_name(fd, out, PATH_MAX - 1);

	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool tree_map_descriptor(int fd, struct tree_path *t)
{
	int saved_errno = errno;
	bool in_tree;

	t->below = NULL;
	t->merged = t->missing = t->looked = false;
	t->error = 0;
	if (fd == -1 || !tree_active())
		return false;
	in_tree = name_of(fd, t->text) && !strncmp(t->text, root, view.root_len) &&
		  t->text[view.root_len] == '/';
	if (in_tree)
		t->below = t->text + view.root_len + 1;
	errno = saved_errno;
	return in_tree;
}

/*
 * Links of /proc lead to open files without a walk.  Programs open a file once more that way, of which
 * they have an O_PATH descriptor.  Returns the descriptor's number, or -1.
 */
static int descriptor_in_path(const char *path)
{
	static const char *const dirs[] = {"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"};

	for (size_t i = 0; i < array_size(dirs); i++) {
		const char *number = path + strlen(dirs[i]);

		if (!strncmp(path, dirs[i], strlen(dirs[i])) && *number &&
		    strspn(number, "0123456789") == strlen(number) && strlen(number) < 10)
			return (int)strtol(number, NULL, 10);
	}
	return -1;
}

/* Tells whether a path may lead into the tree. */
static bool path_in_view(const char *path, uint64_t limits)
{
	if (limits & RESOLVE_IN_ROOT)
		path += strspn(path, "/");
	return begins_in_view(path) || strstr(path, TREE_WORD);
}

const char *tree_map_within(int dirfd, const char *path, bool keep_last, uint64_t limits,
			    struct tree_path *t)
{
	int saved_errno = errno;

	t->below = NULL;
	t->merged = t->missing = t->looked = false;
	t->error = 0;
	/* The kernel says what is wrong with a path that cannot be read. */
	if (!path || !tree_active() || !program_path_is_valid(path))
		return path;
	/* It refuses links of /proc under each of the limits. */
	if (!keep_last && !limits && tree_map_descriptor(descriptor_in_path(path), t)) {
		path = t->text;
	} else if (path_in_view(path, limits)) {
		path = resolve(&view, dirfd, path, keep_last, limits, t);
		if (t->below || t->merged)
			atomic_store_explicit(&near_view, true, memory_order_relaxed);
	}
	errno = saved_errno;
	return path;
}

const char *tree_map(int dirfd, const char *path, bool keep_last, struct tree_path *t)
{
	return tree_map_within(dirfd, path, keep_last, 0, t);
}

bool tree_unmap(char *path)
{
	return tree_active() && resolve_unmap(&view, path);
}

void tree_directory_changed(void)
{
	int saved_errno = errno;
	char path[PATH_MAX];

	if (name_of(AT_FDCWD, path) && (tree_unmap(path) || resolve_in_view(path)))
		atomic_store_explicit(&near_view, true, memory_order_relaxed);
	errno = saved_errno;
}

bool tree_parent_is_there(struct tree_path *t)
{
	size_t end = strlen(t->text);
	int saved_errno = errno;
	bool there;
	char cut;

	while (end > view.root_len && t->text[end - 1] == '/')
		end--;
	while (end > view.root_len && t->text[end - 1] != '/')
		end--;
	cut = t->text[end];
	t->text[end] = '\0';
	there = !real(access)(t->text, F_OK);
	t->text[end] = cut;
	errno = saved_errno;
	return there;
}

/* ---- how a file looks ---- */

void tree_describe(const struct tree_path *t, struct stat *st)
{
	if (t->below)
		device_tree_describe(root, t->below, st);
}

/* Few other files look like that, which saves most programs a slower system call. */
static bool looks_like_of_tree(const struct stat *st)
{
	return (S_ISCHR(st->st_mode) && !st->st_rdev) ||
	       (S_ISREG(st->st_mode) && (st->st_mode & ALLPERMS) == 0444);
}

void tree_describe_descriptor(int fd, struct stat *st)
{
	struct tree_path t;

	if (looks_like_of_tree(st) && tree_map_descriptor(fd, &t))
		tree_describe(&t, st);
}

bool tree_has_descriptor(int fd)
{
	struct tree_path t;
	struct stat st;

	if (cdev_is_ours(fd))
		return true;
	return tree_active() && !real(fstat)(fd, &st) &&
	       (looks_like_of_tree(&st) || S_ISDIR(st.st_mode)) && tree_map_descriptor(fd, &t);
}
