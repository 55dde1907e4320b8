// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lays the device tree over /sys and /dev of a mount namespace.
 *
 * A FUSE file system (softhca-view, tree_server.c) shows the tree.  Where the machine has no name of that kind, or
 * the name is the tree's only, the tree's directory or file is bound there.  A directory that
 * lacks an entry of the tree cannot get one (sysfs makes none), so a tmpfs takes its place, to which
 * all entries of the machine are bound back.
 *
 * This process enters the namespace and becomes the program.  The server stays outside: it would
 * keep the namespace alive, and it ends when the last mount of its file system has gone with the
 * namespace.
 */
#include "tool/mount_view.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdnoreturn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/text.h"
#include "fabric/client/client.h"
#include "fabric/client/link.h"
#include "fabric/device_tree.h"

struct mount_view {
	const struct session *session;
	/* The tree's own directory.  While the view is made, a tmpfs lies over it, with "tree", where
	 * the file system is mounted, and "new", where a directory is put together. */
	char root[RUNDIR_BYTES + FABRIC_NAME_BYTES + 8];
	bool failed;
};

/* Prints the first error. */
static void printf_like(2, 3) view_failed(struct mount_view *v, const char *fmt, ...)
{
	char text[2 * PATH_MAX];
	va_list ap;

	if (!v->failed) {
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		tool_error(v->session->command, "--view=mount: %s", text);
	}
	v->failed = true;
}

/* A path; what is too long is an error. */
static void printf_like(3, 4)
	view_path(struct mount_view *v, char out[static PATH_MAX], const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, PATH_MAX, fmt, ap);
	va_end(ap);
	if (n >= PATH_MAX)
		view_failed(v, "%s: %s", out, strerror(ENAMETOOLONG));
}

/*
 * The machine's files are looked at by bare system calls, because a softhca that a program of a fabric
 * started has the preload library's view.
 */
static mode_t machine_type(const char *path)
{
	struct stat st;

	return syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW)
		       ? 0
		       : st.st_mode & (mode_t)S_IFMT;
}

static DIR *machine_opendir(const char *path)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* ---- layers ---- */

static void bind_to(struct mount_view *v, const char *from, const char *to)
{
	if (!v->failed && mount(from, to, NULL, MS_BIND | MS_REC, NULL))
		view_failed(v, "cannot bind %s to %s: %s", from, to, strerror(errno));
}

static void link_copy(struct mount_view *v, const char *from, const char *to)
{
	char text[PATH_MAX];
	ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, from, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	if (n < 0 || symlink(text, to))
		view_failed(v, "cannot copy the link %s: %s", from, strerror(errno));
}

/* Makes an entry of a new directory that is the file 'from'. */
static void entry_add(struct mount_view *v, const char *from, const char *to)
{
	mode_t type = machine_type(from);
	int ret;

	if (v->failed || !type) /* it went meanwhile */
		return;
	if (S_ISLNK(type)) {
		link_copy(v, from, to);
		return;
	}
	ret = S_ISDIR(type) ? mkdir(to, 0755) : mknod(to, S_IFREG | 0444, 0);
	if (ret)
		view_failed(v, "cannot make %s: %s", to, strerror(errno));
	bind_to(v, from, to);
}

/* Tells whether the tree's entry takes the place of the machine's, whatever is in it. */
static bool is_whole(const char *path)
{
	const char *own = device_tree_own(path);

	return (own && !*own) || device_tree_is_complete(path);
}

enum entry { ENTRY_NEW, ENTRY_WHOLE, ENTRY_BOTH };

/* What the tree's entry is to the machine's directory: one that it lacks, or another file; a
 * directory that takes the place of the machine's; or a directory of both. */
static enum entry entry_kind(const char *tree, const char *machine)
{
	if (!S_ISDIR(machine_type(tree)) || !S_ISDIR(machine_type(machine)))
		return ENTRY_NEW;
	return is_whole(machine) ? ENTRY_WHOLE : ENTRY_BOTH;
}

struct layer {
	char tree[PATH_MAX];	/* the tree's entry */
	char machine[PATH_MAX]; /* the machine's entry */
	char new[PATH_MAX];	/* its place in the new directory */
};

static void layer_entry(struct mount_view *v, struct layer *l, const char *path, const char *name)
{
	view_path(v, l->tree, "%s/tree%s/%s", v->root, path, name);
	view_path(v, l->machine, "%s/%s", path, name);
	view_path(v, l->new, "%s/new/%s", v->root, name);
}

/* Puts a tmpfs at new/ with the entries of both. */
static void directory_fill(struct mount_view *v, const char *path, DIR *tree, DIR *machine)
{
	const struct dirent *e;
	struct layer l;

	while ((e = readdir(machine)) && !v->failed) {
		if (text_is_dots(e->d_name))
			continue;
		layer_entry(v, &l, path, e->d_name);
		if (!machine_type(l.tree) || entry_kind(l.tree, l.machine) == ENTRY_BOTH)
			entry_add(v, l.machine, l.new);
	}
	while ((e = readdir(tree)) && !v->failed) {
		layer_entry(v, &l, path, e->d_name);
		if (!text_is_dots(e->d_name) && entry_kind(l.tree, l.machine) != ENTRY_BOTH)
			entry_add(v, l.tree, l.new);
	}
}

static void directory_replace(struct mount_view *v, const char *path, DIR *tree)
{
	bool read_only = !strncmp(path, "/sys", strlen("/sys"));
	unsigned long flags = MS_NOSUID | MS_NOEXEC | (read_only ? MS_NODEV : 0);
	DIR *machine = machine_opendir(path);
	char new[PATH_MAX];

	view_path(v, new, "%s/new", v->root);
	if (!machine || mount("softhca", new, "tmpfs", flags, "mode=755"))
		view_failed(v, "cannot replace %s: %s", path, strerror(errno));
	else
		directory_fill(v, path, tree, machine);
	if (machine)
		closedir(machine);
	if (v->failed)
		return;
	if (mount(new, path, NULL, MS_MOVE, NULL) ||
	    (read_only && mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, NULL)))
		view_failed(v, "cannot replace %s: %s", path, strerror(errno));
}

/*
 * Lays a directory of the tree over the machine's of that path ("" for the root directory).  What
 * lies deeper comes first, because a replaced directory shows the tree's entries as its own.
 */
static void directory_lay(struct mount_view *v, const char *path)
{
	bool replaced = false;
	const struct dirent *e;
	struct layer l;
	DIR *tree;

	view_path(v, l.tree, "%s/tree%s", v->root, path);
	tree = v->failed ? NULL : opendir(l.tree);
	if (!tree) {
		view_failed(v, "cannot list %s: %s", l.tree, strerror(errno));
		return;
	}
	while (!v->failed && (e = readdir(tree))) {
		enum entry kind;

		if (text_is_dots(e->d_name))
			continue;
		layer_entry(v, &l, path, e->d_name);
		kind = entry_kind(l.tree, l.machine);
		replaced |= kind == ENTRY_NEW;
		/* What is mounted below /proc would keep the program from mounting a /proc of its own. */
		if (kind == ENTRY_BOTH && strcmp(l.machine, "/proc") != 0)
			directory_lay(v, l.machine);
	}
	rewinddir(tree);
	if (replaced)
		directory_replace(v, path, tree);
	while (!v->failed && !replaced && (e = readdir(tree))) {
		layer_entry(v, &l, path, e->d_name);
		if (!text_is_dots(e->d_name) && entry_kind(l.tree, l.machine) == ENTRY_WHOLE)
			bind_to(v, l.tree, l.machine);
	}
	closedir(tree);
}

/* ---- the namespace ---- */

static bool map_write(const char *path, const char *fmt, unsigned id)
{
	char text[32];
	int n = snprintf(text, sizeof(text), fmt, id, id);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Who may not mount gets a user namespace, in which the user stays the same. */
static void user_namespace_enter(struct mount_view *v)
{
	unsigned uid = geteuid(), gid = getegid();

	if (unshare(CLONE_NEWUSER)) {
		view_failed(v, "you may not mount here, nor make a user namespace to do it in: %s",
			    strerror(errno));
		return;
	}
	if (!map_write("/proc/self/setgroups", "deny", 0) ||
	    !map_write("/proc/self/uid_map", "%u %u 1", uid) ||
	    !map_write("/proc/self/gid_map", "%u %u 1", gid))
		view_failed(v, "cannot map the user in a user namespace: %s", strerror(errno));
}

static void tree_mount(struct mount_view *v, int fuse)
{
	char path[PATH_MAX], options[128];

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL)) {
		view_failed(v, "cannot make a mount namespace: %s", strerror(errno));
		return;
	}
	if (mount("softhca", v->root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=700")) {
		view_failed(v, "cannot mount a tmpfs: %s", strerror(errno));
		return;
	}
	view_path(v, path, "%s/new", v->root);
	(void)mkdir(path, 0700);
	view_path(v, path, "%s/tree", v->root);
	(void)mkdir(path, 0700);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other,default_permissions",
		 fuse, geteuid(), getegid());
	if (mount("softhca", path, "fuse", MS_NOSUID | MS_NODEV | MS_NOEXEC, options))
		view_failed(v, "cannot mount the devices: %s", strerror(errno));
}

/* ---- the server ---- */

static noreturn void server_execute(const struct mount_view *v, int sock, int fuse)
{
	char name[] = "softhca-view";
	char *argv[] = {name, (char *)(uintptr_t)v->root, NULL};
	/* Both may have numbers that the server's get. */
	int socket_copy = fcntl(sock, F_DUPFD, VIEW_FUSE_FD + 1);
	int fuse_copy = fcntl(fuse, F_DUPFD, VIEW_FUSE_FD + 1);

	(void)dup2(socket_copy, VIEW_SOCKET_FD);
	(void)dup2(fuse_copy, VIEW_FUSE_FD);
	(void)syscall(SYS_close_range, VIEW_FUSE_FD + 1, ~0u, 0);
	(void)setsid();
	(void)unsetenv("LD_PRELOAD");
	execv(v->session->view_server, argv);
	_exit(EXIT_CANNOT_RUN);
}

/* Starts the server as an orphan, because the program must not find a child that it has not made.
 * Returns the other end of its socket, or -1. */
static int server_start(struct mount_view *v, int fuse)
{
	int ends[2];
	char byte;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		view_failed(v, "cannot make a socket: %s", strerror(errno));
		return -1;
	}
	pid = fork();
	if (!pid) {
		if (!fork())
			server_execute(v, ends[1], fuse);
		_exit(0);
	}
	close(ends[1]);
	if (pid < 0)
		view_failed(v, "cannot fork: %s", strerror(errno));
	else if (waitpid(pid, NULL, 0) != pid || read(ends[0], &byte, 1) != 1)
		view_failed(v, "%s did not start", v->session->view_server);
	return ends[0];
}

/* The current directory is the one of before, which may lie under a mount now. */
static void directory_enter_again(void)
{
	char path[PATH_MAX];

	if (getcwd(path, sizeof(path)))
		(void)!chdir(path);
}

static void view_make(struct mount_view *v)
{
	int fuse, server;

	if (!capability_is_effective(CAP_SYS_ADMIN))
		user_namespace_enter(v);
	if (v->failed)
		return;
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0) {
		view_failed(v, "cannot open /dev/fuse, which shows the devices: %s",
			    strerror(errno));
		return;
	}
	server = server_start(v, fuse);
	if (!v->failed)
		tree_mount(v, fuse);
	close(fuse);
	if (!v->failed && send(server, "", 1, MSG_NOSIGNAL) != 1)
		view_failed(v, "%s has gone", v->session->view_server);
	if (server >= 0)
		close(server);
	if (!v->failed)
		directory_lay(v, "");
	if (!v->failed && umount2(v->root, MNT_DETACH))
		view_failed(v, "cannot unmount %s: %s", v->root, strerror(errno));
	directory_enter_again();
}

int mount_view_enter(const struct session *s, const char *host)
{
	struct mount_view v = {.session = s};
	ssize_t held;

	if (!s->view_server[0]) {
		session_missing_part(s, "softhca-view, which needs libfuse3 to be built,");
		return EXIT_OURS;
	}
	fabric_environment_renew();
	/* Holds the fabric for as long as this process lives, and makes the daemon write the tree. */
	held = fabric_read_attr(".", NULL, 0);
	if (held < 0) {
		session_link_error(s, (int)held);
		return EXIT_OURS;
	}
	snprintf(v.root, sizeof(v.root), "%s/hosts/%s", s->dir, host);
	view_make(&v);
	return v.failed ? EXIT_OURS : 0;
}
