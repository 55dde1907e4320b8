// SPDX-License-Identifier: BSD-2-Clause
/* See devx/async.h. */
#include "driver/devx/async.h"

#include <errno.h>
#include <pthread.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "driver/file/cdev_file.h"
#include "driver/devx/devx.h"

#define UNREAD_BYTES (1 << 20) /* as mlx5_ib; the system may grant less */

struct devx_async {
	struct cdev_file cdev;
	const struct ufile *file; /* identity only */
	pthread_mutex_t lock;	  /* a leaf */
	struct hidden writer;
};

static void async_last_close(struct cdev_file *cdev)
{
	struct devx_async *a = container_of(cdev, struct devx_async, cdev);

	pthread_mutex_lock(&a->lock);
	hidden_close(&a->writer);
	pthread_mutex_unlock(&a->lock);
}

static void async_release(struct cdev_file *cdev)
{
	struct devx_async *a = container_of(cdev, struct devx_async, cdev);

	pthread_mutex_destroy(&a->lock);
	free(a);
}

static const struct cdev_ops async_ops = {
	.last_close = async_last_close,
	.release = async_release,
};

int devx_async_create(struct ufile *f)
{
	struct devx_async *a = calloc(1, sizeof(*a));
	const int room = UNREAD_BYTES;
	int fd[2], ret;

	if (!a)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) < 0) {
		ret = -errno;
		free(a);
		return ret;
	}
	(void)setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	cdev_file_init(&a->cdev, &async_ops);
	pthread_mutex_init(&a->lock, NULL);
	a->file = f;
	a->writer = hidden_keep(fd[1]);
	ret = cdev_install(fd[0], &a->cdev);
	if (ret == 0)
		return fd[0];
	close(fd[0]);
	hidden_close(&a->writer);
	pthread_mutex_destroy(&a->lock);
	free(a);
	return ret;
}

int devx_async_find(struct ufile *f, int64_t fd, struct devx_async **out)
{
	struct cdev_file *cdev = fd >= 0 && fd <= INT32_MAX ? cdev_get((int)fd) : NULL;

	if (!cdev)
		return -EBADF;
	*out = container_of(cdev, struct devx_async, cdev);
	if (cdev->ops == &async_ops && (*out)->file == f)
		return 0;
	cdev_put(cdev);
	return -EBADF;
}

void devx_async_put(struct devx_async *a)
{
	cdev_put(&a->cdev);
}

int devx_async_post(struct devx_async *a, uint64_t wr_id, const uint8_t *answer, size_t len)
{
	struct iovec parts[] = {{&wr_id, sizeof(wr_id)}, {(void *)(uintptr_t)answer, len}};
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = array_size(parts)};
	int ret = -EBADF;

	pthread_mutex_lock(&a->lock);
	if (hidden_ours(&a->writer))
		ret = syscall(SYS_sendmsg, a->writer.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0
			      ? -errno
			      : 0;
	pthread_mutex_unlock(&a->lock);
	return ret == -EMSGSIZE || ret == -ENOBUFS ? -EAGAIN : ret;
}

static int method_devx_async_alloc(struct ureq *req)
{
	int fd = devx_async_create(req->file);
	int ret;

	if (fd < 0)
		return fd;
	ret = ureq_put_handle(req, MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, fd);
	if (ret < 0)
		uchannel_drop_fd(fd);
	return ret;
}

/* ---- what requests reach this family ---- */

static const struct attr_spec async_cmd_attrs[] = {
	{MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, ATTR_FD_NEW},
};

static const struct method_spec methods[] = {
	METHOD(MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC,
	       method_devx_async_alloc, async_cmd_attrs),
};

const struct uverbs_family udevx_async_family = {METHODS(methods)};
