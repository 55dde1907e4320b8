// SPDX-License-Identifier: BSD-2-Clause
/* See ucma.h. */
#include "driver/ucma/ucma.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/descriptor.h"
#include "base/explain.h"
#include "base/thread.h"
#include "driver/file/cdev_file.h"
#include "driver/runtime/user.h"
#include "fabric/client/link.h"
#include "fabric/cm.h"
#include "usermem/usermem.h"

/* Who opened a file.  The kernel refuses commands of others, as it refuses a child of fork: it compares
 * the credentials, which each process has a copy of (ib_safe_file_access). */
struct ucma_opener {
	pid_t pid;
	uid_t uid, euid;
	gid_t gid, egid;
};

struct ucma_file {
	struct cdev_file cdev;
	uint64_t token;
	struct ucma_opener opener;
};

static const struct cdev_ops ucma_ops;

static struct ucma_file *ucma_file_of(struct cdev_file *f)
{
	return container_of(f, struct ucma_file, cdev);
}

static struct ucma_opener opener_self(void)
{
	return (struct ucma_opener){getpid(), getuid(), geteuid(), getgid(), getegid()};
}

static bool opener_is_self(const struct ucma_opener *o)
{
	const struct ucma_opener self = opener_self();

	return o->pid == self.pid && o->uid == self.uid && o->euid == self.euid &&
	       o->gid == self.gid && o->egid == self.egid;
}

/* ---- requests to the daemon ---- */

/* One connection for all files of the process: connecting takes as long as a command. */
static struct {
	pthread_mutex_t lock; /* guards sock */
	struct hidden sock;
	_Atomic(pid_t) owner; /* the process that has them; 0: none yet */
} ucma_link = {.lock = PTHREAD_MUTEX_INITIALIZER, .sock = HIDDEN_NONE};

/* A child of fork begins anew: a thread that is not there may hold the lock. */
static void ucma_link_lock(void)
{
	const pid_t self = getpid();

	if (atomic_load(&ucma_link.owner) != self) {
		pthread_mutex_init(&ucma_link.lock, NULL);
		ucma_link.sock = HIDDEN_NONE;
		atomic_store(&ucma_link.owner, self);
	}
	pthread_mutex_lock(&ucma_link.lock);
}

/* Makes a request; the reply replaces it.  Returns 0, what the daemon says, or -EIO without it. */
static int ucma_ask(struct msg *m)
{
	no_cancellation();
	const struct fabric_environment *env = fabric_environment();
	int fds[MSG_MAX_FDS], ret;
	uint64_t signals;

	if (!env)
		return -ENODEV;
	/* No handler may jump away from the lock. */
	signals_hold(&signals);
	ucma_link_lock();
	if (hidden_ours(&ucma_link.sock)) {
		ret = link_call(ucma_link.sock.fd, m, MSG_CM_CALL, fds);
	} else {
		ret = link_open(env->dir, NULL, m, MSG_CM_CALL, fds);
		if (ret >= 0) {
			ucma_link.sock = hidden_keep(ret);
			ret = 0;
		}
	}
	if (ret == -ECONNRESET || ret == -EPIPE || ret == -ETIMEDOUT || ret == -EBADMSG)
		hidden_close(&ucma_link.sock);
	pthread_mutex_unlock(&ucma_link.lock);
	signals_release(&signals);
	switch (ret) {
	case -ECONNRESET:
	case -ECONNREFUSED:
	case -EPIPE:
	case -EBADMSG:
	case -EPROTO:
		return -EIO;
	default:
		return ret;
	}
}

/* ---- commands ---- */

struct ucma_command {
	uint16_t in;	   /* bytes of the command */
	uint16_t in_least; /* what the program must say that it gives; 0: anything */
	uint16_t out;	   /* the least room for an answer; 0: it has none */
	uint16_t response; /* where in the command the answer's address is */
};

#define IN(name)  sizeof(struct rdma_ucm_##name)
#define OUT(name) sizeof(struct rdma_ucm_##name##_resp)
#define AT(name)  offsetof(struct rdma_ucm_##name, response)

static const struct ucma_command ucma_commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = {IN(create_id), 0, OUT(create_id), AT(create_id)},
	[RDMA_USER_CM_CMD_DESTROY_ID] = {IN(destroy_id), 0, OUT(destroy_id), AT(destroy_id)},
	[RDMA_USER_CM_CMD_BIND_IP] = {IN(bind_ip), 0, 0, 0},
	[RDMA_USER_CM_CMD_RESOLVE_IP] = {IN(resolve_ip), 0, 0, 0},
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {IN(resolve_route), 0, 0, 0},
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = {IN(query), 0,
					  offsetof(struct rdma_ucm_query_route_resp, ibdev_index),
					  AT(query)},
	[RDMA_USER_CM_CMD_CONNECT] = {IN(connect), offsetof(struct rdma_ucm_connect, ece), 0, 0},
	[RDMA_USER_CM_CMD_LISTEN] = {IN(listen), 0, 0, 0},
	[RDMA_USER_CM_CMD_ACCEPT] = {IN(accept), offsetof(struct rdma_ucm_accept, ece), 0, 0},
	[RDMA_USER_CM_CMD_REJECT] = {IN(reject), 0, 0, 0},
	[RDMA_USER_CM_CMD_DISCONNECT] = {IN(disconnect), 0, 0, 0},
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = {IN(init_qp_attr), 0, sizeof(struct ib_uverbs_qp_attr),
					   AT(init_qp_attr)},
	[RDMA_USER_CM_CMD_GET_EVENT] = {IN(get_event), 0,
					offsetof(struct rdma_ucm_event_resp, reserved),
					AT(get_event)},
	[RDMA_USER_CM_CMD_SET_OPTION] = {IN(set_option), 0, 0, 0},
	[RDMA_USER_CM_CMD_NOTIFY] = {IN(notify), 0, 0, 0},
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {IN(join_ip_mcast), 0, OUT(create_id),
					    AT(join_ip_mcast)},
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = {IN(destroy_id), 0, OUT(destroy_id), AT(destroy_id)},
	[RDMA_USER_CM_CMD_MIGRATE_ID] = {IN(migrate_id), 0, sizeof(struct rdma_ucm_migrate_resp),
					 AT(migrate_id)},
	[RDMA_USER_CM_CMD_QUERY] = {IN(query), 0, sizeof(struct rdma_ucm_query_path_resp),
				    AT(query)},
	[RDMA_USER_CM_CMD_BIND] = {IN(bind), 0, 0, 0},
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {IN(resolve_addr), 0, 0, 0},
	[RDMA_USER_CM_CMD_JOIN_MCAST] = {IN(join_mcast), 0, OUT(create_id), AT(join_mcast)},
	[CM_COMMAND_WRITE_EVENT] = {sizeof(struct cm_write_event), 0, 0, 0},
};

/* One call of write(2). */
struct ucma_call {
	struct ucma_file *file;
	int fd;
	const struct ucma_command *command;
	struct rdma_ucm_cmd_hdr head;
	struct msg m;
	void *response;
};

/* Can the answer be stored?  Then nothing is lost that the program does not get. */
static bool response_is_there(const struct ucma_call *c)
{
	return !user_is_guarded() ||
	       (usermem_touch(c->response, true) &&
		usermem_touch((uint8_t *)c->response + c->command->out - 1, true));
}

/* The value of an option goes behind its command. */
static int option_load(struct ucma_call *c)
{
	struct rdma_ucm_set_option o;
	const size_t room = sizeof(c->m.cm_call.bytes) - sizeof(o);

	memcpy(&o, c->m.cm_call.bytes, sizeof(o));
	if (o.optlen > room)
		return -EINVAL;
	if (user_load(c->m.cm_call.bytes + sizeof(o), (const void *)(uintptr_t)o.optval, o.optlen))
		return -EFAULT;
	c->m.cm_call.in = (uint16_t)(sizeof(o) + o.optlen);
	return 0;
}

/* The file that a MIGRATE_ID takes the id from. */
static int origin_find(struct ucma_call *c)
{
	struct rdma_ucm_migrate_id m;
	struct cdev_file *f;
	int fd, ret = 0;

	memcpy(&m, c->m.cm_call.bytes, sizeof(m));
	fd = (int)m.fd;
	if (syscall(SYS_fcntl, fd, F_GETFD) < 0)
		return -ENOENT;
	f = cdev_table_is_true(fd) ? cdev_get(fd) : NULL;
	if (f && f->ops == &ucma_ops)
		c->m.cm_call.other = ucma_file_of(f)->token;
	else
		ret = -EINVAL;
	if (f)
		cdev_put(f);
	return ret;
}

/* Takes a byte of the pipe.  read(2) would lead to the file's own read.  A thread may be cancelled while
 * it waits, as in read(2).  Returns 1, or a negative errno. */
static int byte_take(int fd)
{
	uint8_t byte;
	int type, ret;
	ssize_t n;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	n = syscall(SYS_read, fd, &byte, 1);
	ret = n < 0 ? -errno : n ? 1 : -EIO;
	pthread_setcanceltype(type, NULL);
	return ret;
}

/* Waits for a byte in the pipe, which stands for an event, and asks for the event.  Another thread may
 * have destroyed the id meanwhile. */
static int event_await(struct ucma_call *c)
{
	const struct msg request = c->m;
	int ret;

	do {
		ret = byte_take(c->fd);
		if (ret < 0)
			return ret;
		c->m = request;
		ret = ucma_ask(&c->m);
	} while (ret == -EAGAIN);
	/* The daemon knows no file that another thread has closed since the byte was taken. */
	return ret == -EIO && syscall(SYS_fcntl, c->fd, F_GETFD) < 0 ? -EBADF : ret;
}

static int ucma_execute(struct ucma_call *c)
{
	const uint32_t command = c->head.cmd;
	int ret = 0;

	if (command == RDMA_USER_CM_CMD_SET_OPTION)
		ret = option_load(c);
	else if (command == RDMA_USER_CM_CMD_MIGRATE_ID)
		ret = origin_find(c);
	if (ret)
		return ret;
	ret = command == RDMA_USER_CM_CMD_GET_EVENT ? event_await(c) : ucma_ask(&c->m);
	if (ret)
		return ret;
	if (c->m.cm_call_reply.why[0])
		explain_line(0, "rdma_cm: %.*s", (int)sizeof(c->m.cm_call_reply.why),
			     c->m.cm_call_reply.why);
	if (!c->command->out)
		return 0;
	if (c->m.cm_call_reply.length > c->head.out)
		c->m.cm_call_reply.length = c->head.out;
	return user_store(c->response, c->m.cm_call_reply.bytes, c->m.cm_call_reply.length);
}

/* Reads the command.  Returns 0 or a negative errno. */
static int command_load(struct ucma_call *c, const uint8_t *buf)
{
	uint64_t response;

	if (c->head.out < c->command->out)
		return -ENOSPC;
	if (c->head.in < c->command->in_least)
		return -EINVAL;
	c->m.cm_call.command = c->head.cmd;
	/* Those with a shorter form say how much they give; of the others the kernel reads all. */
	c->m.cm_call.in =
		c->command->in_least && c->head.in < c->command->in ? c->head.in : c->command->in;
	c->m.cm_call.out = c->head.out;
	if (user_load(c->m.cm_call.bytes, buf, c->m.cm_call.in))
		return -EFAULT;
	if (!c->command->out)
		return 0;
	memcpy(&response, c->m.cm_call.bytes + c->command->response, sizeof(response));
	c->response = (void *)(uintptr_t)response;
	return response_is_there(c) ? 0 : -EFAULT;
}

/* May the caller bind to privileged ports?  The daemon cannot know. */
static bool may_bind_low(uint32_t command)
{
	switch (command) {
	case RDMA_USER_CM_CMD_BIND_IP:
	case RDMA_USER_CM_CMD_BIND:
	case RDMA_USER_CM_CMD_RESOLVE_IP:
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		return capability_is_effective(CAP_NET_BIND_SERVICE);
	default:
		return false;
	}
}

static ssize_t ucma_write(struct cdev_file *f, int fd, const void *buf, size_t count)
{
	struct ucma_call c = {.file = ucma_file_of(f), .fd = fd};
	int ret;

	if (!opener_is_self(&c.file->opener))
		return -EACCES;
	if (count < sizeof(c.head))
		return -EINVAL;
	if (user_load(&c.head, buf, sizeof(c.head)))
		return -EFAULT;
	if (c.head.cmd >= array_size(ucma_commands) || c.head.in + sizeof(c.head) > count)
		return -EINVAL;
	c.command = &ucma_commands[c.head.cmd];
	if (!c.command->in)
		return -ENOSYS;
	c.m.cm_call.token = c.file->token;
	c.m.cm_call.privileged = may_bind_low(c.head.cmd);
	c.m.cm_call.explain = explaining();
	ret = command_load(&c, (const uint8_t *)buf + sizeof(c.head));
	if (!ret)
		ret = ucma_execute(&c);
	return ret ? ret : (ssize_t)count;
}

/* ---- the file ---- */

static ssize_t ucma_read(struct cdev_file *f, int fd, void *buf, size_t count)
{
	(void)f, (void)fd, (void)buf, (void)count;
	return -EINVAL;
}

static int ucma_ioctl(struct cdev_file *f, unsigned long request, void *arg)
{
	(void)f, (void)request, (void)arg;
	return -ENOTTY;
}

static void ucma_fstat(struct cdev_file *f, struct stat *st)
{
	(void)f;
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(CM_MAJOR, CM_MINOR);
	st->st_size = 0;
	st->st_blocks = 0;
}

static void ucma_release(struct cdev_file *f)
{
	free(ucma_file_of(f));
}

static const struct cdev_ops ucma_ops = {
	.ioctl = ucma_ioctl,
	.read = ucma_read,
	.write = ucma_write,
	.fstat = ucma_fstat,
	/* No last_close: the daemon sees when the last process has closed the pipe. */
	.release = ucma_release,
	.shared = true,
};

/* Gets the pipe's end of a new file; returns it or a negative errno. */
static int ucma_pipe(uint64_t *token)
{
	const struct fabric_environment *env = fabric_environment();
	int fds[MSG_MAX_FDS], sock;
	struct msg m = {0};

	if (!env)
		return -ENODEV;
	memcpy(m.cm_open.host, env->host, sizeof(m.cm_open.host));
	sock = link_open(env->dir, env->daemon[0] ? env->daemon : NULL, &m, MSG_CM_OPEN, fds);
	if (sock < 0)
		return sock == -ECONNREFUSED ? -ENXIO : sock;
	*token = m.cm_open_reply.token;
	close(sock);
	return fds[0];
}

int ucma_file_open(const char *name, int flags)
{
	struct ucma_file *f;
	int fd, ret;

	if (strcmp(name, "rdma_cm") != 0)
		return -ENOENT;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	user_guard();
	explain_init();
	f->opener = opener_self();
	cdev_file_init(&f->cdev, &ucma_ops);
	fd = ucma_pipe(&f->token);
	if (fd >= 0)
		fd = cdev_descriptor(fd, flags);
	ret = fd < 0 ? fd : cdev_install(fd, &f->cdev);
	if (!ret)
		return fd;
	if (fd >= 0)
		close(fd);
	free(f);
	return ret;
}

bool ucma_is_foreign(int fd)
{
	const struct fabric_environment *env = fabric_environment();
	int fds[MSG_MAX_FDS], sock;
	struct msg m = {0};
	struct stat st;

	if (!env || syscall(SYS_fstat, fd, &st) || !S_ISFIFO(st.st_mode))
		return false;
	m.cm_is_file.inode = st.st_ino;
	sock = link_open(env->dir, NULL, &m, MSG_CM_IS_FILE, fds);
	if (sock >= 0)
		close(sock);
	return sock >= 0;
}
