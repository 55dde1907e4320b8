// SPDX-License-Identifier: BSD-2-Clause
/*
 * The channels of DEVX: of events that a program subscribes to, and of answers of asynchronous
 * queries.
 */
#include "driver/devx/devx.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "driver/devx/eq.h"
#include "driver/file/cdev_file.h"
#include "usermem/usermem.h"

/* ---- events ---- */

/*
 * Events of DEVX: a program subscribes to types of events of an object, or of the device as a
 * whole.  It gets the event queue entry through a channel, or a count in its own eventfd.
 */

#define TYPES_MAX 16u /* the most types in one subscription, as in mlx5_ib */

struct devx_subscription {
	struct devx_subscription *next;
	struct uport_listener port; /* for events of the device as a whole */
	uint16_t type;		    /* enum eqe_type */
	uint64_t cookie;
	struct uchannel *channel; /* holds a reference; or NULL, and then */
	struct hidden eventfd;	  /* a duplicate of the program's */
};

/* Types that programs may ask for, because the device does not have the capability event_cap. */
static bool is_object_event(uint16_t type)
{
	switch ((enum eqe_type)type) {
	case EQE_COMP:
	case EQE_PATH_MIG:
	case EQE_COMM_EST:
	case EQE_SQ_DRAINED:
	case EQE_CQ_ERROR:
	case EQE_WQ_CATAS_ERROR:
	case EQE_PATH_MIG_FAILED:
	case EQE_WQ_INVAL_REQ_ERROR:
	case EQE_WQ_ACCESS_ERROR:
	case EQE_SRQ_CATAS_ERROR:
	case EQE_SRQ_LAST_WQE:
	case EQE_SRQ_RQ_LIMIT:
	case EQE_XRQ_ERROR:
	case EQE_DCT_DRAINED:
	case EQE_DCT_KEY_VIOLATION:
	case EQE_OBJECT_CHANGE:
		return true;
	default:
		return false;
	}
}

/* ---- delivery ---- */

static void subscription_deliver(const struct devx_subscription *s, const uint8_t eqe[EQE_BYTES])
{
	const uint64_t one = 1;

	if (s->channel)
		uchannel_post_devx(s->channel, s->cookie, eqe);
	else if (hidden_ours(&s->eventfd))
		(void)!syscall(SYS_write, s->eventfd.fd, &one, sizeof(one));
}

void devx_event(struct devx_obj *obj, enum eqe_type type, const uint8_t eqe[EQE_BYTES])
{
	spin_lock(&obj->events_lock);
	for (struct devx_subscription *s = obj->events; s; s = s->next)
		if (s->type == type)
			subscription_deliver(s, eqe);
	spin_unlock(&obj->events_lock);
	/* A completion goes to the event queue that the CQ names. */
	if (type != EQE_COMP)
		eq_push_all(obj->uobj.file, type, eqe);
}

void devx_queue_event(struct devx_obj *obj, enum ib_event event)
{
	static const struct {
		enum ib_event event;
		enum eqe_type type;
	} names[] = {
		{IB_EVENT_QP_FATAL, EQE_WQ_CATAS_ERROR},
		{IB_EVENT_QP_REQ_ERR, EQE_WQ_INVAL_REQ_ERROR},
		{IB_EVENT_QP_ACCESS_ERR, EQE_WQ_ACCESS_ERROR},
		{IB_EVENT_COMM_EST, EQE_COMM_EST},
		{IB_EVENT_SQ_DRAINED, EQE_SQ_DRAINED},
		{IB_EVENT_PATH_MIG, EQE_PATH_MIG},
		{IB_EVENT_PATH_MIG_ERR, EQE_PATH_MIG_FAILED},
		{IB_EVENT_SRQ_ERR, EQE_SRQ_CATAS_ERROR},
		{IB_EVENT_SRQ_LIMIT_REACHED, EQE_SRQ_RQ_LIMIT},
		{IB_EVENT_QP_LAST_WQE_REACHED, EQE_SRQ_LAST_WQE},
		{IB_EVENT_WQ_FATAL, EQE_WQ_CATAS_ERROR},
	};
	uint8_t eqe[EQE_BYTES] = {0};

	for (size_t i = 0; i < array_size(names); i++)
		if (names[i].event == event) {
			prm_set(eqe, EQE_TYPE, names[i].type);
			prm_set(eqe, EQE_QUEUE, obj->class->queue);
			prm_set(eqe, EQE_QUEUE_NR, obj->number);
			devx_event(obj, names[i].type, eqe);
		}
}

static void subscription_port_event(struct uport_listener *l, uint32_t number, enum ib_event event)
{
	static const struct {
		enum ib_event event;
		enum eqe_port_change change;
	} names[] = {
		{IB_EVENT_PORT_ACTIVE, EQE_PORT_ACTIVE},
		{IB_EVENT_PORT_ERR, EQE_PORT_DOWN},
		{IB_EVENT_LID_CHANGE, EQE_PORT_LID},
		{IB_EVENT_PKEY_CHANGE, EQE_PORT_PKEY},
		{IB_EVENT_GID_CHANGE, EQE_PORT_GUID},
		{IB_EVENT_CLIENT_REREGISTER, EQE_PORT_CLIENT_REREGISTER},
	};
	uint8_t eqe[EQE_BYTES] = {0};

	for (size_t i = 0; i < array_size(names); i++)
		if (names[i].event == event) {
			prm_set(eqe, EQE_TYPE, EQE_PORT_CHANGE);
			prm_set(eqe, EQE_SUB_TYPE, names[i].change);
			prm_set(eqe, EQE_PORT, number);
			subscription_deliver(container_of(l, struct devx_subscription, port), eqe);
		}
}

/* ---- subscription ---- */

static void subscription_drop(struct devx_subscription *s)
{
	if (s->channel)
		cdev_put(uchannel_cdev(s->channel));
	hidden_close(&s->eventfd);
	free(s);
}

void devx_events_drop(struct devx_obj *obj)
{
	while (obj->events) {
		struct devx_subscription *s = obj->events;

		obj->events = s->next;
		subscription_drop(s);
	}
}

void devx_file_events_drop(struct ufile *f)
{
	while (f->devx_events) {
		struct devx_subscription *s = f->devx_events;

		f->devx_events = s->next;
		uport_unlisten(&s->port);
		subscription_drop(s);
	}
}

static bool is_eventfd(int fd)
{
	static const char name[] = "anon_inode:[eventfd]";
	char target[sizeof(name)];

	return descriptor_name(fd, target, sizeof(target)) == sizeof(name) - 1 &&
	       !memcmp(target, name, sizeof(name) - 1);
}

/* Chooses where events go: to a descriptor of the program's, or to the channel. */
static int subscription_aim(struct ureq *req, struct devx_subscription *s, struct uchannel *channel)
{
	int fd;

	s->eventfd = HIDDEN_NONE;
	if (!ureq_attr(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM)) {
		s->cookie = ureq_u64(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE);
		s->channel = channel;
		cdev_hold(uchannel_cdev(channel));
		return 0;
	}
	fd = (int)ureq_u32(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM);
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	s->eventfd = hidden_keep(fd);
	return is_eventfd(s->eventfd.fd) ? 0 : -EINVAL;
}

/* Makes subscriptions to all types, or to none. */
static int subscriptions_make(struct ureq *req, const uint16_t *types, size_t n,
			      struct uchannel *channel, struct devx_subscription **list)
{
	for (size_t i = 0; i < n; i++) {
		struct devx_subscription *s = calloc(1, sizeof(*s));
		int ret;

		if (!s)
			return -ENOMEM;
		s->type = types[i];
		s->next = *list;
		*list = s;
		ret = subscription_aim(req, s, channel);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int subscription_read_types(struct ureq *req, bool of_object, uint16_t types[TYPES_MAX],
				   size_t *n)
{
	struct ubuf list = ureq_buf(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST);

	*n = list.len / sizeof(types[0]);
	if (list.len % sizeof(types[0]) || *n > TYPES_MAX)
		return -EINVAL;
	if (!usermem_copy(types, list.ptr, list.len))
		return -EFAULT;
	for (size_t i = 0; i < *n; i++)
		if (of_object ? !is_object_event(types[i]) : types[i] != EQE_PORT_CHANGE)
			return -EINVAL;
	return 0;
}

static int subscriptions_add(struct ureq *req, struct devx_obj *obj, struct uchannel *channel)
{
	struct devx_subscription *list = NULL, *s;
	uint16_t types[TYPES_MAX];
	size_t n;
	int ret = subscription_read_types(req, obj, types, &n);

	if (ret == 0)
		ret = subscriptions_make(req, types, n, channel, &list);
	while (list) {
		s = list;
		list = s->next;
		if (ret < 0) {
			subscription_drop(s);
		} else if (obj) {
			spin_lock(&obj->events_lock);
			s->next = obj->events;
			obj->events = s;
			spin_unlock(&obj->events_lock);
		} else {
			s->next = req->file->devx_events;
			req->file->devx_events = s;
			s->port = (struct uport_listener){
				.port_row = req->file->hca->port_row,
				.nports = req->file->hca->node->nports,
				.event = subscription_port_event,
			};
			uport_listen(&s->port);
		}
	}
	if (ret == 0 && obj && obj->class->subscribed)
		obj->class->subscribed(obj);
	return ret;
}

static int method_devx_subscribe(struct ureq *req)
{
	struct uobj *uobj = ureq_obj(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE);
	int64_t fd = (int64_t)ureq_handle(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE);
	struct uchannel *channel;
	int ret;

	if (!req->file->devx)
		return -EINVAL;
	/* The cookie comes through the channel; an eventfd has no room for it. */
	if (ureq_attr(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM) &&
	    ureq_attr(req, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE))
		return -EINVAL;
	ret = uchannel_find(req->file, UCHANNEL_DEVX, fd, &channel);
	if (ret < 0)
		ret = uchannel_find(req->file, UCHANNEL_DEVX_BRIEF, fd, &channel);
	if (ret < 0)
		return ret;
	ret = subscriptions_add(req, uobj ? container_of(uobj, struct devx_obj, uobj) : NULL,
				channel);
	cdev_put(uchannel_cdev(channel));
	return ret;
}

static int method_devx_event_alloc(struct ureq *req)
{
	uint32_t flags;
	int fd, ret = ureq_flags(req, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS,
				 MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA, &flags);

	if (ret < 0)
		return ret;
	fd = uchannel_create(req->file, flags ? UCHANNEL_DEVX_BRIEF : UCHANNEL_DEVX, NULL);
	if (fd < 0)
		return fd;
	ret = ureq_put_handle(req, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, fd);
	if (ret < 0)
		uchannel_drop_fd(fd);
	return ret;
}

/* ---- answers of asynchronous queries ---- */

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

/* Returns the program's descriptor, or negative errno. */
static must_check int devx_async_create(struct ufile *f)
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

static const struct attr_spec subscribe_attrs[] = {
	{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, ATTR_NUMBER},
	{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, IDR(UOBJ_DEVX), OPT},
	{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, IN_MIN(2)},
	{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, IN(4), OPT},
	{MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, IN(8), OPT},
};

static const struct attr_spec async_event_attrs[] = {
	{MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, ATTR_FD_NEW},
	{MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, FLAGS_IN},
};

static const struct attr_spec async_cmd_attrs[] = {
	{MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, ATTR_FD_NEW},
};

static const struct method_spec methods[] = {
	METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, method_devx_subscribe,
	       subscribe_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC,
	       method_devx_event_alloc, async_event_attrs),
	METHOD(MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC,
	       method_devx_async_alloc, async_cmd_attrs),
};

const struct uverbs_family udevx_channel_family = {METHODS(methods)};
