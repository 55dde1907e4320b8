// SPDX-License-Identifier: BSD-2-Clause
/*
 * Resolves a path as path_resolution(7) says, in the view of the program: the machine's root
 * directory with the tree of the host laid over it (docs/design/files.md).
 *
 * It allocates nothing, takes no lock and makes bare system calls, as a handler of a signal and a
 * child of vfork may open files.
 */
#include "preload/libc.h"

#include "preload/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/text.h"
#include "fabric/device_tree.h"

/* As many as the kernel follows in one path. */
#define LINKS_MAX 40u

#define NET_CLASS "/sys/class"
#define NET_DIR	  "/net/"
#define UIO_FILES "/dev/uio"

/* Directories that have the machine's devices, too: the tree must be there before they are looked
 * into. */
static const char *const shared[] = {
	"/sys/bus/pci/devices", "/sys/bus/pci/drivers/mlx5_core",
	"/sys/class/misc",	"/sys/class/net",
	"/sys/dev/char",
};

enum step { STEP_ON, STEP_STOP, STEP_TOO_LONG, STEP_REFUSED };

struct walk {
	const struct view *view;
	struct tree_path *t;
	/* The path so far, "" for "/": behind the tree's directory in t->text. */
	char *at;
	size_t len, size;
	bool in_tree;	   /* the tree has it */
	bool crossed;	   /* the kernel would not come here by the program's path */
	bool is_directory; /* the path says that it must be one */
	bool keep_last;	   /* does not follow a link at the end of the path */
	bool is_link;	   /* there is one, which was not followed */
	unsigned links;
	uint64_t limits;   /* RESOLVE_* of openat2(2) */
	size_t root_len;   /* of 'at' where RESOLVE_BENEATH and RESOLVE_IN_ROOT keep the walk */
	const char *mount; /* where RESOLVE_NO_XDEV keeps it */
	char *rest;	   /* what has yet to be walked, at the end of 'pending' */
	char pending[PATH_MAX];
};

static ssize_t link_read(const char *path, char *buf, size_t size)
{
	return syscall(SYS_readlinkat, AT_FDCWD, path, buf, size);
}

static bool is_there(const char *path)
{
	return !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
}

static bool is_at_or_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

/* Asks for the daemon at the first name that needs the tree, which may not have been there before. */
static void ensure_tree(struct walk *w)
{
	const char *own = device_tree_own(w->at);
	bool needed = (own && !*own) || !strncmp(w->at, UIO_FILES, strlen(UIO_FILES));

	for (size_t i = 0; i < array_size(shared); i++)
		needed |= !strcmp(w->at, shared[i]);
	if (!needed)
		return;
	w->view->ensure();
	w->in_tree = own || is_there(w->t->text);
}

static bool walk_append(struct walk *w, const char *name, size_t n)
{
	if (!range_inside(w->len, n + 3, w->size))
		return false;
	w->at[w->len++] = '/';
	memcpy(w->at + w->len, name, n);
	w->len += n;
	w->at[w->len] = '\0';
	return true;
}

static void walk_drop(struct walk *w)
{
	while (w->len && w->at[--w->len] != '/')
		;
	w->at[w->len] = '\0';
}

static const char *walk_file(const struct walk *w)
{
	const char *file = w->in_tree ? w->t->text : w->at;

	return *file ? file : "/";
}

static enum step walk_refused(struct walk *w, int error)
{
	w->t->error = error;
	return STEP_REFUSED;
}

static bool is_scoped(const struct walk *w)
{
	return w->limits & (RESOLVE_BENEATH | RESOLVE_IN_ROOT);
}

static bool is_at_root(const struct walk *w)
{
	return is_scoped(w) && w->len == w->root_len;
}

/*
 * The file system of a directory of the program's view, as far as the tree has a part of it.  It is not
 * asked for by stat: the tree's files all lie in one of their own.
 */
static const char *mount_of(const char *path)
{
	static const char *const mounts[] = {"/sys", "/dev", "/proc"};

	for (size_t i = 0; i < array_size(mounts); i++)
		if (is_at_or_below(path, mounts[i]))
			return mounts[i];
	return NULL;
}

/* What comes before ".." must be a directory, which only a look behind it shows. */
static bool walk_up(struct walk *w)
{
	bool is_directory;

	if (is_at_root(w))
		return true;
	memcpy(w->at + w->len, "/.", sizeof("/."));
	is_directory = is_there(walk_file(w));
	w->at[w->len] = '\0';
	if (!is_directory)
		return false;
	w->crossed |= w->in_tree && (device_tree_own(w->at) || !is_there(w->at));
	walk_drop(w);
	w->in_tree = w->in_tree || is_there(w->t->text);
	return true;
}

/* A link of /proc may lead to what has no name. */
static bool is_magic(const struct walk *w, const char *target, size_t n)
{
	return is_at_or_below(w->at, "/proc") && (!n || target[0] != '/');
}

/* Puts the target of the link, which is at the beginning of 'pending', in front of the rest. */
static enum step walk_follow(struct walk *w, size_t n, bool parent_in_tree)
{
	char *target = w->pending;

	if (target[0] == '/' && w->limits & RESOLVE_BENEATH)
		return walk_refused(w, EXDEV);
	w->rest -= n;
	memmove(w->rest, target, n);
	walk_drop(w);
	w->in_tree = parent_in_tree;
	if (w->rest[0] != '/')
		return STEP_ON;
	w->at[w->len = w->root_len] = '\0';
	w->in_tree = !w->len || device_tree_own(w->at) || is_there(w->t->text);
	if (!is_scoped(w) && is_at_or_below(w->rest, w->view->root) && n >= w->view->root_len) {
		w->rest += w->view->root_len;
		w->crossed = true;
	}
	return STEP_ON;
}

/*
 * Follows a link of the tree whose target, at the beginning of 'pending', is relative.  The daemon wrote
 * it: it leads from directory to directory, with no link on the way, so one look at its end is enough.
 */
static enum step walk_jump(struct walk *w, size_t n)
{
	const char *name = w->pending, *end = name + n;

	walk_drop(w);
	while (name < end) {
		const char *slash = memchr(name, '/', (size_t)(end - name));
		size_t len = (size_t)((slash ? slash : end) - name);

		if (len == 2 && !memcmp(name, "..", 2)) {
			if (is_at_root(w) && w->limits & RESOLVE_BENEATH)
				return walk_refused(w, EXDEV);
			if (!is_at_root(w))
				walk_drop(w);
		} else if (!walk_append(w, name, len)) {
			return STEP_TOO_LONG;
		}
		name += len + 1;
	}
	w->in_tree = device_tree_own(w->at) || is_there(w->t->text);
	return STEP_ON;
}

/*
 * What the tree does not have of an interface is the machine's.  The directory of the interface is
 * below the device in the tree, and anywhere on the machine.
 */
static bool walk_to_interface(struct walk *w)
{
	const char *net = strstr(w->at, NET_DIR);

	if (!net || !strchr(net + strlen(NET_DIR), '/') || is_there(w->at))
		return false;
	memmove(w->at + strlen(NET_CLASS), net, strlen(net) + 1);
	memcpy(w->at, NET_CLASS, strlen(NET_CLASS));
	w->len = strlen(w->at);
	w->crossed = true;
	return true;
}

/* What is missing in a directory that only the tree has would be the tree's. */
static bool machine_has_parent(struct walk *w)
{
	char *slash = strrchr(w->at, '/');
	bool there;

	*slash = '\0';
	there = slash == w->at || is_there(w->at);
	*slash = '/';
	return there;
}

static enum step walk_into(struct walk *w, const char *name, size_t name_len)
{
	bool parent_in_tree;
	/* Room for the target of a link, with the name itself out of the way. */
	size_t room;
	ssize_t n = -1;

	if (!walk_append(w, name, name_len))
		return STEP_TOO_LONG;
	ensure_tree(w);
	parent_in_tree = w->in_tree;
	room = (size_t)(w->rest - w->pending);
	if (w->in_tree) {
		n = link_read(w->t->text, w->pending, room);
		if (n >= 0)
			w->crossed = true;
		else if (errno != EINVAL && device_tree_own(w->at))
			return STEP_STOP;
		else if (errno != EINVAL) {
			w->in_tree = false;
			if (walk_to_interface(w))
				return STEP_STOP;
			w->in_tree = !machine_has_parent(w);
			if (w->in_tree)
				return STEP_STOP;
		}
	}
	if (!w->in_tree)
		n = link_read(w->at, w->pending, room);
	if (n < 0)
		return errno == EINVAL ? STEP_ON : STEP_STOP;
	w->is_link = w->keep_last && !*w->rest;
	if (w->is_link)
		return STEP_ON;
	if (w->limits & RESOLVE_NO_SYMLINKS)
		return walk_refused(w, ELOOP);
	if (++w->links > LINKS_MAX || is_magic(w, w->pending, (size_t)n))
		return STEP_STOP;
	if ((size_t)n == room)
		return STEP_TOO_LONG;
	if (w->in_tree && w->pending[0] != '/')
		return walk_jump(w, (size_t)n);
	return walk_follow(w, (size_t)n, parent_in_tree);
}

static enum step walk_step(struct walk *w)
{
	const char *name = w->rest;
	size_t n = strcspn(name, "/");

	w->rest += n;
	w->is_directory = *w->rest == '/';
	if (n == 1 && name[0] == '.') {
		w->is_directory = true;
		return STEP_ON;
	}
	if (n == 2 && name[0] == '.' && name[1] == '.') {
		if (is_at_root(w) && w->limits & RESOLVE_BENEATH)
			return walk_refused(w, EXDEV);
		if (walk_up(w))
			return STEP_ON;
		w->rest -= n;
		return STEP_STOP;
	}
	return walk_into(w, name, n);
}

/* The kernel finds out what is wrong with the rest of the path. */
static enum step walk_rest_append(struct walk *w)
{
	size_t n = strlen(w->rest);

	if (!range_inside(w->len, n + 2, w->size))
		return STEP_TOO_LONG;
	if (n && w->rest[0] != '/')
		w->at[w->len++] = '/';
	memcpy(w->at + w->len, w->rest, n + 1);
	w->len += n;
	return STEP_STOP;
}

static enum step walk_path(struct walk *w)
{
	enum step step = STEP_ON;

	while (step == STEP_ON) {
		while (*w->rest == '/')
			w->rest++;
		if (!*w->rest)
			break;
		step = walk_step(w);
		if (w->limits & RESOLVE_NO_XDEV && step == STEP_ON && mount_of(w->at) != w->mount)
			step = walk_refused(w, EXDEV);
	}
	if (step == STEP_STOP)
		return walk_rest_append(w);
	if (step == STEP_ON && w->is_directory && w->len && range_inside(w->len, 2, w->size))
		memcpy(w->at + w->len, "/", sizeof("/"));
	return step;
}

/* A directory of both is opened and described as the machine's. */
static bool is_merged(const struct walk *w)
{
	bool merged;

	if (w->is_link || device_tree_own(w->at) || device_tree_is_complete(w->at) ||
	    !is_there(*w->at ? w->at : "/"))
		return false;
	memcpy(w->at + w->len, "/.", sizeof("/."));
	merged = is_there(w->t->text) && is_there(w->at);
	memcpy(w->at + w->len, w->is_directory ? "/" : "", w->is_directory ? 2 : 1);
	return merged;
}

bool resolve_unmap(const struct view *view, char *path)
{
	if (!is_at_or_below(path, view->root))
		return false;
	if (path[view->root_len])
		memmove(path, path + view->root_len, strlen(path + view->root_len) + 1);
	else
		memcpy(path, "/", sizeof("/"));
	return true;
}

/* Gives the directory from which a relative path starts, in the program's view. */
static bool walk_begin_at(struct walk *w, int dirfd)
{
	ssize_t n = descriptor_name(dirfd, w->at, w->size - 1);

	if (n <= 0 || (size_t)n >= w->size - 1 || w->at[0] != '/')
		return false;
	w->at[n] = '\0';
	w->crossed = resolve_unmap(w->view, w->at);
	w->len = w->at[1] ? strlen(w->at) : 0;
	w->at[w->len] = '\0';
	/*
	 * Nobody gets the tree's part of a merged directory from us: who has one opened the host's
	 * directory by its real name, as this library does when it removes what a daemon left, and
	 * means the files that are there.  The machine's must not be taken for them.
	 */
	return !w->crossed || !is_merged(w);
}

bool resolve_in_view(const char *dir)
{
	return !*dir || !strcmp(dir, "/") || is_at_or_below(dir, "/sys") ||
	       is_at_or_below(dir, "/dev");
}

static bool walk_begin(struct walk *w, int dirfd, const char *path)
{
	size_t n;

	/* The kernel refuses absolute paths beneath a directory. */
	if (path[0] == '/' && w->limits & RESOLVE_BENEATH)
		return false;
	if (w->limits & RESOLVE_IN_ROOT)
		path += strspn(path, "/");
	n = strlen(path);
	w->at = w->t->text + w->view->root_len;
	w->size = sizeof(w->t->text) - w->view->root_len;
	memcpy(w->t->text, w->view->root, w->view->root_len);
	w->at[0] = '\0';
	w->len = 0;
	if (path[0] != '/' && !walk_begin_at(w, dirfd))
		return false;
	if (path[0] != '/' && !resolve_in_view(w->at) && !strstr(path, "..") &&
	    !strstr(path, TREE_WORD))
		return false;
	if (path[0] == '/' && is_at_or_below(path, w->view->root))
		return false;
	w->in_tree = device_tree_own(w->at) || is_there(w->t->text);
	w->root_len = is_scoped(w) ? w->len : 0;
	w->mount = mount_of(w->at);
	w->rest = w->pending + sizeof(w->pending) - n - 1;
	memcpy(w->rest, path, n + 1);
	return true;
}

/*
 * One look instead of a walk.  All links that the daemon writes are relative, so the kernel walks
 * through the tree as we do if the tree has each name of the path.  Not for a directory, which the
 * machine may have, too, by the name that the walk finds, nor with "..", which may lead out of the tree.
 */
static bool tree_has_file(const struct view *view, const char *path, bool keep_last,
			  struct tree_path *t)
{
	int flags = keep_last ? AT_SYMLINK_NOFOLLOW : 0;

	if (!device_tree_own(path) || strstr(path, "..") ||
	    !range_inside(view->root_len, strlen(path) + 1, sizeof(t->text)))
		return false;
	memcpy(t->text, view->root, view->root_len);
	memcpy(t->text + view->root_len, path, strlen(path) + 1);
	return !syscall(SYS_newfstatat, AT_FDCWD, t->text, &t->st, flags) &&
	       !S_ISDIR(t->st.st_mode) && !S_ISLNK(t->st.st_mode);
}

const char *resolve(const struct view *view, int dirfd, const char *path, bool keep_last,
		    uint64_t limits, struct tree_path *t)
{
	struct walk w;
	enum step step;

	if (!limits && atomic_load(view->held) && tree_has_file(view, path, keep_last, t)) {
		t->looked = true;
		t->below = t->text + view->root_len + 1;
		return t->text;
	}
	w.view = view;
	w.t = t;
	w.in_tree = w.crossed = w.is_directory = w.is_link = false;
	w.links = 0;
	w.keep_last = keep_last;
	w.limits = limits;
	if (!walk_begin(&w, dirfd, path))
		return path;
	step = walk_path(&w);
	if (step == STEP_TOO_LONG || step == STEP_REFUSED)
		return path;
	if (w.in_tree && step == STEP_ON)
		t->merged = is_merged(&w);
	if (w.in_tree && !t->merged) {
		t->missing = step == STEP_STOP;
		t->below = w.at + (*w.at == '/');
		return t->text;
	}
	if (!w.crossed)
		return path;
	return *w.at ? w.at : "/";
}
