// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls each function that the preload library interposes with pointers that cannot be used, each
 * call in a child, and prints what came of it.  The same program without the library prints the
 * right answers.  The calls that take a descriptor get that of FILE.
 *
 *	bad_pointers FILE
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <ucontext.h>
#include <unistd.h>

/* The functions by their names in the library: this source must not get another one of a macro. */
#define F(type, name, ...) (((type(*)())dlsym(RTLD_DEFAULT, name))(__VA_ARGS__))

#define PAGE 4096u

static int fd, dir_fd, null_fd, local, set, watches, talk[2];
static struct stat st;
static struct statx sx;
static char buf[PATH_MAX];
static sigset_t none;
static pthread_attr_t attr;
static posix_spawn_file_actions_t actions;
static ucontext_t here;
static struct timespec at_once;
static char true_path[] = "/bin/true";
static char *true_argv[] = {true_path, NULL};
static char fabric[] = "SOFTHCA_DIR=/", preload[] = "LD_PRELOAD=libm.so.6";

/* The C library has openat2 from 2.43 on. */
static long open_how(const char *name, int at, const void *path, const void *how)
{
	if (!dlsym(RTLD_DEFAULT, name))
		return syscall(SYS_openat2, at, path, how, sizeof(uint64_t[3]));
	return F(int, name, at, path, how, sizeof(uint64_t[3]));
}

static int visit_nothing(void)
{
	return 0;
}

/* ---- each function, with p in the place of each pointer that the kernel reads or writes ---- */

struct call {
	const char *name;
	long (*run)(const char *name, void *p);
};

#define CALL(id, expr)                            \
	static long id(const char *name, void *p) \
	{                                         \
		return (long)(expr);              \
	}
#define OPENED(pointer) ((pointer) ? 0l : -1l)
/* Without a time a call would wait for ever. */
#define TIME(p) ((p) ? (p) : &at_once)
/* The datagram that waits stays for the other calls. */
#define PEEK	     (MSG_DONTWAIT | MSG_PEEK)
#define MESSAGE(...) ((struct msghdr){__VA_ARGS__})

CALL(path_flags, F(int, name, p, O_RDONLY))
CALL(path_creat, F(int, name, p, O_WRONLY | O_CREAT | O_TRUNC, 0600))
CALL(at_path_flags, F(int, name, fd, p, O_RDONLY))
CALL(at_path_creat, F(int, name, AT_FDCWD, p, O_RDWR | O_CREAT, 0600))
CALL(at_path_how, open_how(name, fd, p, (uint64_t[3]){O_RDONLY}))
CALL(at_how, open_how(name, AT_FDCWD, "/", p))
CALL(path_mode, F(int, name, p, R_OK))
CALL(at_path_mode, F(int, name, fd, p, R_OK, 0))
CALL(path_only, F(int, name, p))
CALL(path_file, OPENED(F(void *, name, p, "r")))
CALL(path_file_written, OPENED(F(void *, name, p, "w")))
CALL(path_stat_fs, F(int, name, p, buf))
CALL(stat_fs, F(int, name, "/", p))
CALL(cwd_buf, OPENED(F(void *, name, p, 100ul, 100ul)))
CALL(watch_path, F(int, name, watches, p, IN_CREATE))
CALL(path_again, OPENED(F(void *, name, p, "r", stdin)))
CALL(path_dir, OPENED(F(void *, name, p)))
CALL(path_stat, F(int, name, p, &st))
CALL(stat_stat, F(int, name, "/", p))
CALL(path_xstat, F(int, name, 1, p, &st))
CALL(xstat_stat, F(int, name, 1, "/", p))
CALL(fd_stat, F(int, name, fd, p))
CALL(fd_xstat, F(int, name, 1, fd, p))
CALL(at_path_stat, F(int, name, fd, p, &st, 0))
CALL(at_path_stat_empty, F(int, name, fd, p, &st, AT_EMPTY_PATH))
CALL(at_stat, F(int, name, fd, "", p, AT_EMPTY_PATH))
CALL(at_path_xstat, F(int, name, 1, fd, p, &st, 0))
CALL(at_xstat, F(int, name, 1, fd, "", p, AT_EMPTY_PATH))
CALL(statx_path, F(int, name, fd, p, 0, STATX_BASIC_STATS, &sx))
CALL(statx_path_empty, F(int, name, fd, p, AT_EMPTY_PATH, STATX_BASIC_STATS, &sx))
CALL(statx_stat, F(int, name, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, p))
CALL(link_path, F(ssize_t, name, p, buf, 10ul, sizeof(buf)))
CALL(link_buf, F(ssize_t, name, "/proc/self/exe", p, 10ul, 10ul))
CALL(at_link_path, F(ssize_t, name, fd, p, buf, 10ul, sizeof(buf)))
CALL(at_link_buf, F(ssize_t, name, AT_FDCWD, "/proc/self/exe", p, 10ul, 10ul))
CALL(real_path, OPENED(F(void *, name, p, buf, sizeof(buf))))
CALL(change_path, F(int, name, p, 0, 0, 0))
CALL(at_change_path, F(int, name, fd, p, 0, 0, 0))
CALL(make_directory, OPENED(F(void *, name, p)))
CALL(make_path, F(int, name, 0, p, 0, &(dev_t){0}))
CALL(at_make_path, F(int, name, 0, fd, p, 0, &(dev_t){0}))
CALL(link_from, F(int, name, p, "/none/none"))
CALL(link_to, F(int, name, "/none/none", p))
CALL(at_link_from, F(int, name, fd, p, fd, "none", 0))
CALL(at_link_to, F(int, name, fd, "none", fd, p, 0))
CALL(symlink_target, F(int, name, p, fd, "none"))
CALL(symlink_path, F(int, name, "none", fd, p))
CALL(xattr_set_path, F(int, name, p, "user.x", "", 0ul, 0))
CALL(times_times, F(int, name, fd, p))
CALL(fd_xattr_name, F(int, name, fd, p, "", 0ul, 0))
CALL(fd_xattr_value, F(int, name, fd, "user.x", p, 1ul, 0))
CALL(bind_address, F(int, name, local, p, (socklen_t)sizeof(struct sockaddr_un)))
CALL(peer_address, F(int, name, talk[0], p, &(socklen_t){sizeof(struct sockaddr_un)}))
CALL(peer_length, F(int, name, talk[0], buf, p))
CALL(option_value, F(int, name, talk[0], SOL_SOCKET, SO_TYPE, p, &(socklen_t){4}))
CALL(option_length, F(int, name, talk[0], SOL_SOCKET, SO_TYPE, buf, p))
CALL(option_set, F(int, name, talk[0], SOL_SOCKET, SO_PASSCRED, p, (socklen_t)4))
CALL(send_buf, F(ssize_t, name, talk[0], p, 10ul, PEEK, NULL, 0))
CALL(send_address, F(ssize_t, name, talk[0], buf, 10ul, PEEK, p, (socklen_t)10))
CALL(receive_buf, F(ssize_t, name, talk[0], p, 10ul, PEEK, NULL, NULL))
CALL(receive_address, F(ssize_t, name, talk[0], buf, 10ul, PEEK, p, &(socklen_t){10}))
CALL(receive_length, F(ssize_t, name, talk[0], buf, 10ul, PEEK, &st, p))
CALL(receive_chk_buf, F(ssize_t, name, talk[0], p, 10ul, 10ul, PEEK, NULL, NULL))
CALL(message_message, F(ssize_t, name, talk[0], p, PEEK))
CALL(message_name, F(ssize_t, name, talk[0], &MESSAGE(.msg_name = p, .msg_namelen = 10), PEEK))
CALL(message_vector, F(ssize_t, name, talk[0], &MESSAGE(.msg_iov = p, .msg_iovlen = 1), PEEK))
CALL(message_buf,
     F(ssize_t, name, talk[0], &MESSAGE(.msg_iov = &(struct iovec){p, 10}, .msg_iovlen = 1), PEEK))
CALL(message_control,
     F(ssize_t, name, talk[0], &MESSAGE(.msg_control = p, .msg_controllen = 64), PEEK))
CALL(messages_messages, F(int, name, talk[0], p, 1u, PEEK, &at_once))
CALL(messages_buf,
     F(int, name, talk[0],
       &((struct mmsghdr){MESSAGE(.msg_iov = &(struct iovec){p, 10}, .msg_iovlen = 1), 0}), 1u,
       PEEK, &at_once))
CALL(messages_time, F(int, name, talk[0], &((struct mmsghdr){0}), 1u, PEEK, TIME(p)))
CALL(entries_buf, F(ssize_t, name, dir_fd, p, 100ul, &(long){0}))
CALL(entries_place, F(ssize_t, name, dir_fd, buf, sizeof(buf), p))
CALL(spawn_open_actions, F(int, name, p, 3, "/", O_RDONLY, 0))
CALL(spawn_open_path, F(int, name, &actions, 3, p, O_RDONLY, 0))
CALL(spawn_in_actions, F(int, name, p, "/"))
CALL(spawn_in_path, F(int, name, &actions, p))
CALL(xattr_path, F(ssize_t, name, p, "user.x", buf, 10ul))
CALL(xattr_name, F(ssize_t, name, "/", p, buf, 10ul))
CALL(xattrs_path, F(ssize_t, name, p, buf, 10ul))
CALL(scan_path, F(int, name, p, &(void *){NULL}, NULL, NULL))
CALL(at_scan_path, F(int, name, AT_FDCWD, p, &(void *){NULL}, NULL, NULL))
CALL(walk_path, F(int, name, p, visit_nothing, 1, 0))
CALL(walks_paths, OPENED(F(void *, name, p, FTS_PHYSICAL, NULL)))
CALL(walks_path, OPENED(F(void *, name, ((void *[]){p, NULL}), FTS_PHYSICAL, NULL)))
CALL(walks_walk, F(int, name, p, 0))
CALL(glob_path, F(int, name, p, 0, NULL, &(glob_t){0}))
CALL(read_buf, F(ssize_t, name, fd, p, 10ul))
CALL(read_chk_buf, F(ssize_t, name, fd, p, 10ul, 10ul))
CALL(pread_buf, F(ssize_t, name, fd, p, 10ul, 0l, 10ul))
CALL(write_buf, F(ssize_t, name, fd, p, 10ul))
CALL(vector_vector, F(ssize_t, name, fd, p, 2))
CALL(vector_buf, F(ssize_t, name, fd, &((struct iovec){p, 10}), 1))
CALL(vector_many, F(ssize_t, name, fd, p, 1024))
CALL(vector_at_vector, F(ssize_t, name, fd, p, 2, 0l, 0))
CALL(vector_at_buf, F(ssize_t, name, fd, &((struct iovec){p, 10}), 1, 0l, 0))
CALL(ioctl_arg, F(int, name, fd, (unsigned long)FIONREAD, p))
CALL(fcntl_lock, F(int, name, fd, F_GETLK, p))
CALL(poll_fds, F(int, name, p, 1ul, 0))
CALL(poll_chk_fds, F(int, name, p, 1ul, 0, 8ul))
CALL(ppoll_fds, F(int, name, p, 1ul, &at_once, NULL))
CALL(ppoll_chk_fds, F(int, name, p, 1ul, &at_once, NULL, 8ul))
CALL(ppoll_time, F(int, name, &((struct pollfd){.fd = fd}), 1ul, TIME(p), NULL))
CALL(ppoll_mask, F(int, name, &((struct pollfd){.fd = fd}), 1ul, &at_once, p))
CALL(select_read, F(int, name, fd + 1, p, NULL, NULL, &((struct timeval){0, 0})))
CALL(select_write, F(int, name, fd + 1, NULL, p, NULL, &((struct timeval){0, 0})))
CALL(select_time, F(int, name, fd + 1, NULL, NULL, NULL, TIME(p)))
CALL(pselect_read, F(int, name, fd + 1, p, NULL, NULL, &at_once, NULL))
CALL(pselect_time, F(int, name, fd + 1, NULL, NULL, NULL, TIME(p), NULL))
CALL(pselect_mask, F(int, name, fd + 1, NULL, NULL, NULL, &at_once, p))
CALL(epoll_events, F(int, name, set, p, 1, 0, NULL))
CALL(epoll_mask, F(int, name, set, &(struct epoll_event){0}, 1, 0, p))
CALL(epoll2_events, F(int, name, set, p, 1, &at_once, NULL))
CALL(epoll2_time, F(int, name, set, &(struct epoll_event){0}, 1, TIME(p), NULL))
CALL(epoll_ctl_event, F(int, name, set, EPOLL_CTL_ADD, null_fd, p))
CALL(action_new, F(int, name, SIGSEGV, p, NULL))
CALL(action_old, F(int, name, SIGSEGV, NULL, p))
CALL(mask_new, F(int, name, SIG_BLOCK, p, NULL))
CALL(mask_old, F(int, name, SIG_BLOCK, &none, p))
CALL(exec_path, F(int, name, p, true_argv, environ))
CALL(exec_argv, F(int, name, true_path, p, environ))
CALL(exec_env, F(int, name, true_path, true_argv, p))
CALL(exec_env_entry, F(int, name, true_path, true_argv, ((void *[]){fabric, preload, p, NULL})))
CALL(exec_at_path, F(int, name, AT_FDCWD, p, true_argv, environ, 0))
CALL(exec_at_env, F(int, name, AT_FDCWD, true_path, true_argv, p, 0))
CALL(exec_fd_argv, F(int, name, fd, p, environ))
CALL(exec_fd_env, F(int, name, fd, true_argv, p))
CALL(exec_list_path, F(int, name, p, true_path, NULL, environ))
CALL(exec_list_env, F(int, name, true_path, true_path, NULL, p))
CALL(spawn_path, F(int, name, NULL, p, NULL, NULL, true_argv, environ))
CALL(spawn_env, F(int, name, NULL, true_path, NULL, NULL, true_argv, p))
CALL(system_command, F(int, name, p))
CALL(popen_command, OPENED(F(void *, name, p, "r")))
CALL(load_path, OPENED(F(void *, name, p, RTLD_NOW)))
CALL(load_into, OPENED(F(void *, name, LM_ID_NEWLM, p, RTLD_NOW)))
CALL(stack_new, F(int, name, p, NULL))
CALL(stack_old, F(int, name, NULL, p))
CALL(suspend_mask, F(int, name, p))
CALL(attr_mask, F(int, name, &attr, p))
CALL(syscall_mask_set, F(long, name, (long)SYS_rt_sigprocmask, (long)SIG_BLOCK, p, NULL, 8l))
CALL(syscall_mask_old, F(long, name, (long)SYS_rt_sigprocmask, (long)SIG_BLOCK, NULL, p, 8l))
CALL(syscall_action_set, F(long, name, (long)SYS_rt_sigaction, (long)SIGUSR1, p, NULL, 8l))
CALL(syscall_action_old, F(long, name, (long)SYS_rt_sigaction, (long)SIGUSR1, NULL, p, 8l))
CALL(syscall_fault_action_set, F(long, name, (long)SYS_rt_sigaction, (long)SIGSEGV, p, NULL, 8l))
CALL(syscall_fault_action_old, F(long, name, (long)SYS_rt_sigaction, (long)SIGSEGV, NULL, p, 8l))
CALL(syscall_select_mask, F(long, name, (long)SYS_pselect6, 0l, NULL, NULL, NULL, &at_once, p))
CALL(context_to, F(int, name, p))
CALL(context_from_to, F(int, name, &here, p))
CALL(map_fixed, OPENED(F(char *, name, p, (size_t)PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd,
			 0l) != MAP_FAILED))
CALL(unmap, F(int, name, p, (size_t)PAGE))
CALL(remap, OPENED(F(char *, name, p, (size_t)PAGE, (size_t)PAGE, MREMAP_MAYMOVE) != MAP_FAILED))

static const struct call calls[] = {
	{"open", path_flags},
	{"open", path_creat},
	{"open64", path_flags},
	{"open64", path_creat},
	{"openat", at_path_flags},
	{"openat", at_path_creat},
	{"openat64", at_path_flags},
	{"openat64", at_path_creat},
	{"openat2", at_path_how},
	{"openat2", at_how},
	{"__open_2", path_flags},
	{"__open64_2", path_flags},
	{"__openat_2", at_path_flags},
	{"__openat64_2", at_path_flags},
	{"creat", path_mode},
	{"creat64", path_mode},
	{"fopen", path_file},
	{"fopen", path_file_written},
	{"fopen64", path_file},
	{"fopen64", path_file_written},
	{"freopen", path_again},
	{"freopen64", path_again},
	{"opendir", path_dir},
	{"scandir", scan_path},
	{"scandir64", scan_path},
	{"scandirat", at_scan_path},
	{"scandirat64", at_scan_path},
	{"ftw", walk_path},
	{"ftw64", walk_path},
	{"nftw", walk_path},
	{"nftw64", walk_path},
	{"fts_open", walks_paths},
	{"fts64_open", walks_paths},
	{"fts_open", walks_path},
	{"fts64_open", walks_path},
	{"fts_read", walks_walk},
	{"fts_children", walks_walk},
	{"fts_close", walks_walk},
	{"fts64_read", walks_walk},
	{"fts64_children", walks_walk},
	{"fts64_close", walks_walk},
	{"glob", glob_path},
	{"glob64", glob_path},
	{"access", path_mode},
	{"faccessat", at_path_mode},
	{"euidaccess", path_mode},
	{"eaccess", path_mode},
	{"chdir", path_only},
	{"getcwd", cwd_buf},
	{"__getcwd_chk", cwd_buf},
	{"statfs", path_stat_fs},
	{"statfs", stat_fs},
	{"statfs64", path_stat_fs},
	{"statfs64", stat_fs},
	{"statvfs", path_stat_fs},
	{"statvfs64", path_stat_fs},
	{"pathconf", path_mode},
	{"inotify_add_watch", watch_path},
	{"readlink", link_path},
	{"readlink", link_buf},
	{"__readlink_chk", link_path},
	{"__readlink_chk", link_buf},
	{"readlinkat", at_link_path},
	{"readlinkat", at_link_buf},
	{"__readlinkat_chk", at_link_path},
	{"__readlinkat_chk", at_link_buf},
	{"realpath", real_path},
	{"__realpath_chk", real_path},
	{"canonicalize_file_name", real_path},
	{"getxattr", xattr_path},
	{"getxattr", xattr_name},
	{"lgetxattr", xattr_path},
	{"lgetxattr", xattr_name},
	{"listxattr", xattrs_path},
	{"llistxattr", xattrs_path},
	{"chmod", change_path},
	{"lchmod", change_path},
	{"chown", change_path},
	{"lchown", change_path},
	{"mkdir", change_path},
	{"mkfifo", change_path},
	{"mknod", change_path},
	{"utime", change_path},
	{"utimes", change_path},
	{"lutimes", change_path},
	{"truncate", change_path},
	{"truncate64", change_path},
	{"unlink", change_path},
	{"rmdir", change_path},
	{"remove", change_path},
	{"mkstemp", change_path},
	{"mkstemp64", change_path},
	{"mkostemp", change_path},
	{"mkostemp64", change_path},
	{"mkstemps", change_path},
	{"mkstemps64", change_path},
	{"mkostemps", change_path},
	{"mkostemps64", change_path},
	{"mkdirat", at_change_path},
	{"mkfifoat", at_change_path},
	{"mknodat", at_change_path},
	{"fchmodat", at_change_path},
	{"fchownat", at_change_path},
	{"unlinkat", at_change_path},
	{"futimesat", at_change_path},
	{"utimensat", at_change_path},
	{"mkdtemp", make_directory},
	{"__xmknod", make_path},
	{"__xmknodat", at_make_path},
	{"rename", link_from},
	{"rename", link_to},
	{"link", link_from},
	{"link", link_to},
	{"symlink", link_from},
	{"symlink", link_to},
	{"renameat", at_link_from},
	{"renameat", at_link_to},
	{"renameat2", at_link_from},
	{"renameat2", at_link_to},
	{"linkat", at_link_from},
	{"linkat", at_link_to},
	{"symlinkat", symlink_target},
	{"symlinkat", symlink_path},
	{"setxattr", xattr_set_path},
	{"lsetxattr", xattr_set_path},
	{"removexattr", xattr_set_path},
	{"lremovexattr", xattr_set_path},
	{"futimens", times_times},
	{"futimes", times_times},
	{"fsetxattr", fd_xattr_name},
	{"fsetxattr", fd_xattr_value},
	{"fremovexattr", fd_xattr_name},
	{"bind", bind_address},
	{"connect", bind_address},
	{"getsockname", peer_address},
	{"getsockname", peer_length},
	{"getpeername", peer_address},
	{"getpeername", peer_length},
	{"getsockopt", option_value},
	{"getsockopt", option_length},
	{"setsockopt", option_set},
	{"send", send_buf},
	{"sendto", send_buf},
	{"sendto", send_address},
	{"sendmsg", message_message},
	{"sendmsg", message_name},
	{"sendmsg", message_vector},
	{"sendmsg", message_buf},
	{"sendmsg", message_control},
	{"sendmmsg", messages_messages},
	{"sendmmsg", messages_buf},
	{"recv", receive_buf},
	{"recvfrom", receive_buf},
	{"recvfrom", receive_address},
	{"recvfrom", receive_length},
	{"__recv_chk", receive_chk_buf},
	{"__recvfrom_chk", receive_chk_buf},
	{"recvmsg", message_message},
	{"recvmsg", message_name},
	{"recvmsg", message_vector},
	{"recvmsg", message_buf},
	{"recvmsg", message_control},
	{"recvmmsg", messages_messages},
	{"recvmmsg", messages_buf},
	{"recvmmsg", messages_time},
	{"getdents64", entries_buf},
	{"getdirentries", entries_buf},
	{"getdirentries", entries_place},
	{"getdirentries64", entries_buf},
	{"getdirentries64", entries_place},
	{"posix_spawn_file_actions_addopen", spawn_open_actions},
	{"posix_spawn_file_actions_addopen", spawn_open_path},
	{"posix_spawn_file_actions_destroy", path_only},
	{"posix_spawn_file_actions_addchdir_np", spawn_in_actions},
	{"posix_spawn_file_actions_addchdir_np", spawn_in_path},
	{"stat", path_stat},
	{"stat", stat_stat},
	{"lstat", path_stat},
	{"lstat", stat_stat},
	{"stat64", path_stat},
	{"stat64", stat_stat},
	{"lstat64", path_stat},
	{"lstat64", stat_stat},
	{"fstat", fd_stat},
	{"fstat64", fd_stat},
	{"fstatat", at_path_stat},
	{"fstatat", at_path_stat_empty},
	{"fstatat", at_stat},
	{"fstatat64", at_path_stat},
	{"fstatat64", at_path_stat_empty},
	{"fstatat64", at_stat},
	{"__xstat", path_xstat},
	{"__xstat", xstat_stat},
	{"__xstat64", path_xstat},
	{"__xstat64", xstat_stat},
	{"__lxstat", path_xstat},
	{"__lxstat", xstat_stat},
	{"__lxstat64", path_xstat},
	{"__lxstat64", xstat_stat},
	{"__fxstat", fd_xstat},
	{"__fxstat64", fd_xstat},
	{"__fxstatat", at_path_xstat},
	{"__fxstatat", at_xstat},
	{"__fxstatat64", at_path_xstat},
	{"__fxstatat64", at_xstat},
	{"statx", statx_path},
	{"statx", statx_path_empty},
	{"statx", statx_stat},
	{"read", read_buf},
	{"__read_chk", read_chk_buf},
	{"pread", pread_buf},
	{"pread64", pread_buf},
	{"__pread_chk", pread_buf},
	{"__pread64_chk", pread_buf},
	{"write", write_buf},
	{"readv", vector_vector},
	{"readv", vector_buf},
	{"readv", vector_many},
	{"preadv", vector_at_vector},
	{"preadv", vector_at_buf},
	{"preadv64", vector_at_vector},
	{"preadv64", vector_at_buf},
	{"preadv2", vector_at_vector},
	{"preadv2", vector_at_buf},
	{"preadv64v2", vector_at_vector},
	{"preadv64v2", vector_at_buf},
	{"writev", vector_vector},
	{"writev", vector_buf},
	{"writev", vector_many},
	{"ioctl", ioctl_arg},
	{"fcntl", fcntl_lock},
	{"fcntl64", fcntl_lock},
	{"poll", poll_fds},
	{"__poll_chk", poll_chk_fds},
	{"ppoll", ppoll_fds},
	{"ppoll", ppoll_time},
	{"ppoll", ppoll_mask},
	{"__ppoll_chk", ppoll_chk_fds},
	{"select", select_read},
	{"select", select_write},
	{"select", select_time},
	{"pselect", pselect_read},
	{"pselect", pselect_time},
	{"pselect", pselect_mask},
	{"epoll_wait", epoll_events},
	{"epoll_pwait", epoll_events},
	{"epoll_pwait", epoll_mask},
	{"epoll_pwait2", epoll2_events},
	{"epoll_pwait2", epoll2_time},
	{"epoll_ctl", epoll_ctl_event},
	{"sigaction", action_new},
	{"sigaction", action_old},
	{"sigprocmask", mask_new},
	{"sigprocmask", mask_old},
	{"pthread_sigmask", mask_new},
	{"pthread_sigmask", mask_old},
	{"__sigaction", action_new},
	{"execve", exec_path},
	{"execve", exec_argv},
	{"execve", exec_env},
	{"execve", exec_env_entry},
	{"execv", exec_path},
	{"execv", exec_argv},
	{"execvp", exec_path},
	{"execvp", exec_argv},
	{"execvpe", exec_path},
	{"execvpe", exec_env},
	{"execveat", exec_at_path},
	{"execveat", exec_at_env},
	{"fexecve", exec_fd_argv},
	{"fexecve", exec_fd_env},
	{"execl", exec_list_path},
	{"execlp", exec_list_path},
	{"execle", exec_list_path},
	{"execle", exec_list_env},
	{"posix_spawn", spawn_path},
	{"posix_spawn", spawn_env},
	{"posix_spawnp", spawn_path},
	{"posix_spawnp", spawn_env},
/* The C library has these two from 2.39 on. */
#if __GLIBC_PREREQ(2, 39)
	{"pidfd_spawn", spawn_path},
	{"pidfd_spawn", spawn_env},
	{"pidfd_spawnp", spawn_path},
	{"pidfd_spawnp", spawn_env},
#endif
	{"system", system_command},
	{"popen", popen_command},
	{"dlopen", load_path},
	{"dlmopen", load_into},
	{"sigaltstack", stack_new},
	{"sigaltstack", stack_old},
	{"sigsuspend", suspend_mask},
	{"__sigsuspend", suspend_mask},
	{"pthread_attr_setsigmask_np", attr_mask},
	{"syscall", syscall_mask_set},
	{"syscall", syscall_mask_old},
	{"syscall", syscall_action_set},
	{"syscall", syscall_action_old},
	{"syscall", syscall_fault_action_set},
	{"syscall", syscall_fault_action_old},
	{"syscall", syscall_select_mask},
	{"setcontext", context_to},
	{"swapcontext", context_from_to},
	{"mmap", map_fixed},
	{"mmap64", map_fixed},
	{"munmap", unmap},
	{"mremap", remap},
};

/* ---- the pointers ---- */

static void give_up(const char *what)
{
	perror(what);
	exit(1);
}

/* The last byte of a page full of 'fill', before a page without access. */
static char *last_byte(char fill)
{
	char *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE))
		give_up("mmap");
	memset(pages, fill, PAGE);
	return pages + PAGE - 1;
}

static void call_in_child(const struct call *c, void *p)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child) {
		long ret;

		alarm(20);
		errno = 0;
		ret = c->run(c->name, p);
		printf("%ld %s", ret, ret < 0 ? strerrorname_np(errno) : "");
		fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		give_up("fork");
	printf("%s\n", WIFSIGNALED(status) ? "killed" : "");
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void *p;
	} pointers[] = {
		{"a null pointer", NULL},
		{"the address 1", (void *)1},
		{"no canonical address", (void *)(UINT64_C(1) << 63)},
		{"a page without access", last_byte('/') + 1},
		{"a path without an end", last_byte('/')},
	};

	sigemptyset(&none);
	pthread_attr_init(&attr);
	fd = argc == 2 ? open(argv[1], O_RDWR | O_NONBLOCK) : -1;
	dir_fd = open("/usr", O_RDONLY | O_DIRECTORY);
	null_fd = open("/dev/null", O_RDWR);
	local = socket(AF_UNIX, SOCK_STREAM, 0);
	set = epoll_create1(0);
	watches = inotify_init1(IN_CLOEXEC);
	if (fd < 0 || dir_fd < 0 || null_fd < 0 || local < 0 || set < 0 || watches < 0 ||
	    socketpair(AF_UNIX, SOCK_DGRAM, 0, talk) || send(talk[1], "a datagram", 10, 0) != 10)
		give_up("a file");
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		for (size_t k = 0; k < sizeof(pointers) / sizeof(pointers[0]); k++) {
			printf("%s (%zu) with %s: ", calls[i].name, i, pointers[k].name);
			call_in_child(&calls[i], pointers[k].p);
		}
	return 0;
}
