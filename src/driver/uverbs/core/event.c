// SPDX-License-Identifier: BSD-2-Clause
/* See uverbs/core/event.h. */
#include "driver/uverbs/core/event.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/log.h"
#include "base/hazard.h"
#include "driver/file/cdev_file.h"
#include "driver/runtime/drive.h"
#include "driver/uverbs/core/file.h"

#define PIPE_BYTES_MAX (1 << 20) /* the most that an unprivileged process may ask for */
#define PURGE_BYTES    4096u	 /* bytes that one write can put back */
/* Room in the list for an ordinary number of events, even if the system has no memory left. */
#define LATE_BYTES (2 * PURGE_BYTES)

struct uchannel {
	struct cdev_file cdev;
	const struct ufile *file; /* identity only: the channel may outlive it */
	enum uchannel_kind kind;
	uint32_t event_bytes;
	uint32_t port_row; /* row of the device's port 1 */
	uint32_t nports;
	struct uchannel *next; /* async channels, under channels_lock */

	_Atomic(bool)
		stood_for; /* whether a thread waited for it by functions that come here, since a CQ of it was armed */
	_Atomic(bool) blocks; /* the program's descriptor did when a read asked last */
	/* The events that were made, and how many of them have been read as far as we know: others may
	 * read, too. */
	_Atomic(uint32_t) made, taken;
	pthread_mutex_t lock; /* a leaf: held across pipe system calls that do not block */
	bool closed;
	/* Our own open file description, which reads and writes and does not block.  So its writes
	 * never find a pipe without a reader. */
	struct hidden pipe;
	uint8_t *late;
	size_t late_bytes;
	size_t late_room;
};

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct uchannel *channels;
static _Atomic(unsigned) overflowed;
static _Atomic(unsigned) completion_channels;

static const struct cdev_ops uchannel_ops, completions_ops;
static struct uport_listener *port_listeners; /* under channels_lock */

struct devx_event {
	uint64_t cookie;
	uint8_t eqe[EQE_BYTES];
};

static const uint32_t event_bytes[] = {
	[UCHANNEL_COMP] = sizeof(struct ib_uverbs_comp_event_desc),
	[UCHANNEL_ASYNC] = sizeof(struct ib_uverbs_async_event_desc),
	[UCHANNEL_DEVX] = sizeof(struct devx_event),
	[UCHANNEL_DEVX_BRIEF] = sizeof(uint64_t),
};

struct cdev_file *uchannel_cdev(struct uchannel *c)
{
	return &c->cdev;
}

bool uchannel_overflowed(void)
{
	return atomic_load_explicit(&overflowed, memory_order_relaxed) != 0;
}

/*
 * A pipe that was read from keeps its page, so the first events need no page that the system may
 * not have.  An event that cannot be written waits for the next one, which may never come.
 */
static bool pipe_prime(const struct uchannel *c, int pipe)
{
	uint8_t event[sizeof(struct devx_event)] = {0};

	return write(pipe, event, c->event_bytes) == (ssize_t)c->event_bytes &&
	       read(pipe, event, c->event_bytes) == (ssize_t)c->event_bytes;
}

static int pipe_open(struct uchannel *c, int *user_fd)
{
	/* In this mode a read takes one message of DEVX, however large its buffer is. */
	int packets = c->kind >= UCHANNEL_DEVX ? O_DIRECT : 0;
	int ret = -EMFILE;
	int fd[2], both;

	if (pipe2(fd, O_CLOEXEC) < 0)
		return -errno;
	/* Opens the pipe a second time, so that its O_NONBLOCK is not the program's. */
	both = descriptor_reopen(0, fd[1], O_RDWR | O_NONBLOCK);
	close(fd[1]);
	if (both < 0)
		goto fail;
	if (packets && fcntl(both, F_SETFL, O_NONBLOCK | packets) < 0)
		goto fail_both;
	if (!pipe_prime(c, both)) {
		ret = -ENOMEM;
		goto fail_both;
	}
	c->pipe = hidden_keep(both);
	*user_fd = fd[0];
	return 0;

fail_both:
	close(both);
fail:
	close(fd[0]);
	return ret;
}

static void channel_list(struct uchannel *c)
{
	if (c->kind == UCHANNEL_COMP)
		atomic_fetch_add_explicit(&completion_channels, 1, memory_order_relaxed);
	if (c->kind != UCHANNEL_ASYNC)
		return;
	pthread_mutex_lock(&channels_lock);
	c->next = channels;
	channels = c;
	pthread_mutex_unlock(&channels_lock);
}

static void channel_unlist(struct uchannel *c)
{
	if (c->kind == UCHANNEL_COMP)
		atomic_fetch_sub_explicit(&completion_channels, 1, memory_order_relaxed);
	if (c->kind != UCHANNEL_ASYNC)
		return;
	pthread_mutex_lock(&channels_lock);
	for (struct uchannel **p = &channels; *p; p = &(*p)->next)
		if (*p == c) {
			*p = c->next;
			break;
		}
	pthread_mutex_unlock(&channels_lock);
}

static const struct cdev_ops *ops_of(enum uchannel_kind kind)
{
	return kind == UCHANNEL_COMP ? &completions_ops : &uchannel_ops;
}

int uchannel_create(struct ufile *file, enum uchannel_kind kind, struct uchannel **out)
{
	struct uchannel *c = calloc(1, sizeof(*c));
	int fd = -1, ret;

	if (!c)
		return -ENOMEM;
	cdev_file_init(&c->cdev, ops_of(kind));
	pthread_mutex_init(&c->lock, NULL);
	c->file = file;
	c->kind = kind;
	c->port_row = file->hca->port_row;
	c->nports = file->hca->node->nports;
	c->event_bytes = event_bytes[kind];
	c->late = malloc(LATE_BYTES);
	c->late_room = LATE_BYTES;
	ret = c->late ? pipe_open(c, &fd) : -ENOMEM;
	if (ret < 0)
		goto free_channel;
	/* We list and hold the channel before anybody can close the descriptor. */
	channel_list(c);
	if (out)
		cdev_hold(&c->cdev);
	ret = cdev_install(fd, &c->cdev);
	if (ret < 0)
		goto close_pipe;
	if (out)
		*out = c;
	return fd;

close_pipe:
	channel_unlist(c);
	close(fd);
	hidden_close(&c->pipe);
free_channel:
	free(c->late);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return ret;
}

int uchannel_find(struct ufile *file, enum uchannel_kind kind, int64_t fd, struct uchannel **out)
{
	struct cdev_file *f;
	struct uchannel *c;

	if (fd != (int)fd)
		return -EINVAL;
	f = fd < 0 ? NULL : cdev_get((int)fd);
	if (!f)
		return -EBADF;
	c = container_of(f, struct uchannel, cdev);
	if (f->ops != ops_of(kind) || c->kind != kind || c->file != file) {
		cdev_put(f);
		return -EBADF;
	}
	*out = c;
	return 0;
}

/* ---- writing; the channel's lock is held ---- */

/* False if our end is not open, or if another file, not ours to write to, has its number. */
static bool can_write(const struct uchannel *c)
{
	return !c->closed && hidden_ours(&c->pipe);
}

static bool late_reserve(struct uchannel *c, size_t bytes)
{
	size_t room = (c->late_room + bytes) * 2;
	uint8_t *grown;

	if (bytes <= c->late_room - c->late_bytes)
		return true;
	grown = realloc(c->late, room);
	if (!grown)
		return false;
	c->late = grown;
	c->late_room = room;
	return true;
}

static bool late_put(struct uchannel *c, const void *data, size_t bytes)
{
	if (!late_reserve(c, bytes))
		return false;
	if (!c->late_bytes)
		atomic_fetch_add_explicit(&overflowed, 1, memory_order_relaxed);
	memcpy(c->late + c->late_bytes, data, bytes);
	c->late_bytes += bytes;
	return true;
}

/* Adds an event, and room behind it for what a purge takes from the pipe and cannot put back. */
static bool late_append(struct uchannel *c, const void *event)
{
	return late_reserve(c, c->event_bytes + PURGE_BYTES) && late_put(c, event, c->event_bytes);
}

static bool pipe_grow(struct uchannel *c)
{
	int size = fcntl(c->pipe.fd, F_GETPIPE_SZ);

	return size > 0 && size < PIPE_BYTES_MAX &&
	       fcntl(c->pipe.fd, F_SETPIPE_SZ, size * 2) > size;
}

/* Writes one event by the system call, because write() is a cancellation point, and a thread that
 * ended here would hold locks.  Below PIPE_BUF a pipe takes all or nothing. */
static bool pipe_put(struct uchannel *c, const void *event)
{
	do {
		if (syscall(SYS_write, c->pipe.fd, event, c->event_bytes) ==
		    (ssize_t)c->event_bytes)
			return true;
	} while (errno == EINTR || (errno == EAGAIN && pipe_grow(c)));
	return false;
}

static void late_flush(struct uchannel *c)
{
	size_t done = 0;

	if (!c->late_bytes)
		return;
	while (done < c->late_bytes && pipe_put(c, c->late + done))
		done += c->event_bytes;
	memmove(c->late, c->late + done, c->late_bytes - done);
	c->late_bytes -= done;
	if (!c->late_bytes)
		atomic_fetch_sub_explicit(&overflowed, 1, memory_order_relaxed);
}

static bool channel_put_event(struct uchannel *c, const void *event)
{
	late_flush(c);
	/* An event goes behind those that wait, so that they keep their order. */
	if (!c->late_bytes && pipe_put(c, event))
		return true;
	return late_append(c, event);
}

static void channel_post(struct uchannel *c, const void *event, uint32_t *count)
{
	pthread_mutex_lock(&c->lock);
	if (can_write(c)) {
		if (!channel_put_event(c, event))
			log_error("uverbs: no memory for an event; it is lost");
		else if (count)
			(*count)++;
		atomic_fetch_add_explicit(&c->made, 1, memory_order_release);
	}
	pthread_mutex_unlock(&c->lock);
}

void uchannel_post_comp(struct uchannel *c, uint64_t cq_handle, uint32_t *count)
{
	struct ib_uverbs_comp_event_desc desc = {.cq_handle = cq_handle};

	channel_post(c, &desc, count);
	drive_note_event(c);
}

void uchannel_post_async(struct uchannel *c, uint64_t element, enum ib_event event, uint32_t *count)
{
	struct ib_uverbs_async_event_desc desc = {.element = element, .event_type = event};

	channel_post(c, &desc, count);
}

void uchannel_post_devx(struct uchannel *c, uint64_t cookie, const uint8_t eqe[EQE_BYTES])
{
	struct devx_event e = {.cookie = cookie};

	memcpy(e.eqe, eqe, sizeof(e.eqe));
	channel_post(c, &e, NULL);
}

void uchannel_flush(struct uchannel *c)
{
	pthread_mutex_lock(&c->lock);
	if (can_write(c))
		late_flush(c);
	pthread_mutex_unlock(&c->lock);
}

/* ---- taking back ---- */

/* Takes the events of element out of a list, and returns how many bytes are left of it. */
static size_t events_without(const struct uchannel *c, uint8_t *list, size_t bytes,
			     uint64_t element, uint32_t *purged)
{
	size_t kept = 0;

	for (size_t at = 0; at + c->event_bytes <= bytes; at += c->event_bytes) {
		uint64_t name;

		/* Both kinds of event begin with the name of the object. */
		memcpy(&name, list + at, sizeof(name));
		if (name == element) {
			(*purged)++;
			continue;
		}
		memmove(list + kept, list + at, c->event_bytes);
		kept += c->event_bytes;
	}
	return kept;
}

/*
 * Sends the contents of the pipe once round.  It allocates nothing, because an event that stayed
 * uncounted would make the program wait for ever when it destroys the object.
 */
static bool pipe_purge(struct uchannel *c, uint64_t element, uint32_t *purged)
{
	uint8_t chunk[PURGE_BYTES];
	int waiting = 0;

	if (ioctl(c->pipe.fd, FIONREAD, &waiting) < 0)
		return false;
	while (waiting > 0) {
		ssize_t n = syscall(SYS_read, c->pipe.fd, chunk,
				    min_u64((uint64_t)waiting, sizeof(chunk)));
		size_t kept;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break; /* the program has read it already */
		waiting -= (int)n;
		kept = events_without(c, chunk, (size_t)n, element, purged);
		if (kept && syscall(SYS_write, c->pipe.fd, chunk, kept) != (ssize_t)kept &&
		    !late_put(c, chunk, kept))
			return false;
	}
	return true;
}

uint32_t uchannel_purge(struct uchannel *c, uint64_t element)
{
	uint32_t purged = 0;
	size_t kept;

	pthread_mutex_lock(&c->lock);
	if (!can_write(c))
		goto out;
	kept = events_without(c, c->late, c->late_bytes, element, &purged);
	if (c->late_bytes && !kept)
		atomic_fetch_sub_explicit(&overflowed, 1, memory_order_relaxed);
	c->late_bytes = kept;
	if (!pipe_purge(c, element, &purged))
		log_error("uverbs: no memory to take events back; some are lost");
	late_flush(c);
out:
	pthread_mutex_unlock(&c->lock);
	return purged;
}

/* ---- life ---- */

void uchannel_drop_fd(int fd)
{
	cdev_table_clear(fd);
	close(fd);
}

static void channel_last_close(struct cdev_file *cdev)
{
	struct uchannel *c = container_of(cdev, struct uchannel, cdev);

	channel_unlist(c);
	pthread_mutex_lock(&c->lock);
	c->closed = true;
	hidden_close(&c->pipe);
	if (c->late_bytes)
		atomic_fetch_sub_explicit(&overflowed, 1, memory_order_relaxed);
	c->late_bytes = 0;
	pthread_mutex_unlock(&c->lock);
	drive_note_event(c);
}

/* ---- waiting for completion events ---- */

bool uchannel_any_completions(void)
{
	return atomic_load_explicit(&completion_channels, memory_order_relaxed) != 0;
}

bool uchannel_has_completions(int fd)
{
	struct cdev_file *f;
	bool has;

	hazard_enter();
	f = cdev_peek(fd);
	has = f && f->ops == &completions_ops;
	hazard_leave();
	return has;
}

bool uchannel_is_stood_for(struct uchannel *c)
{
	return atomic_exchange_explicit(&c->stood_for, false, memory_order_relaxed);
}

/* Returns true if there is an event or an error; a read says which. */
static bool pipe_is_ready(int fd)
{
	int bytes = 0;

	return syscall(SYS_ioctl, fd, FIONREAD, &bytes) < 0 || bytes;
}

static bool channel_read_blocks(struct uchannel *c, int fd)
{
	long flags = syscall(SYS_fcntl, fd, F_GETFL);
	bool blocks = flags >= 0 && !(flags & O_NONBLOCK);

	atomic_store_explicit(&c->blocks, blocks, memory_order_relaxed);
	return blocks;
}

/*
 * Does the program's read have to wait?  There are two questions, and if the answer to the first one
 * says that it has not, the second need not be asked.  The first is the one that did so last.
 */
static bool channel_read_waits(struct uchannel *c, int fd)
{
	if (atomic_load_explicit(&c->blocks, memory_order_relaxed))
		return !pipe_is_ready(fd) && channel_read_blocks(c, fd);
	return channel_read_blocks(c, fd) && !pipe_is_ready(fd);
}

/* If the descriptor is another file by now, the program's read finds that out. */
bool uchannel_event_comes(int fd)
{
	struct cdev_file *f = cdev_get(fd);
	struct uchannel *c;
	uint32_t made;
	bool comes = false;

	if (!f)
		return false;
	c = container_of(f, struct uchannel, cdev);
	if (f->ops != &completions_ops || atomic_load_explicit(&f->foreign, memory_order_relaxed))
		goto put;
	made = atomic_load_explicit(&c->made, memory_order_acquire);
	comes = atomic_load_explicit(&c->blocks, memory_order_relaxed) &&
		atomic_load_explicit(&c->taken, memory_order_relaxed) == made &&
		drive_look(&c->made, made);
	if (comes) {
		atomic_store_explicit(&c->taken, made + 1, memory_order_relaxed);
		atomic_store_explicit(&c->stood_for, true, memory_order_relaxed);
	}
put:
	cdev_put(f);
	return comes;
}

static int completions_wait(struct cdev_file *f, int fd, const int *cancel)
{
	struct uchannel *c = container_of(f, struct uchannel, cdev);
	int saved_errno = errno, ret = 0;
	struct drive_mark mark = drive_mark(c);
	uint32_t made = atomic_load_explicit(&c->made, memory_order_relaxed);
	uint32_t taken = atomic_load_explicit(&c->taken, memory_order_relaxed);
	/* The program may just have been told that there is something to read. */
	bool waits = !drive_was_told() && channel_read_waits(c, fd);

	if (drive_waits() || atomic_load_explicit(&c->blocks, memory_order_relaxed))
		atomic_store_explicit(&c->stood_for, true, memory_order_relaxed);
	if (waits)
		atomic_store_explicit(&c->taken, made + 1, memory_order_relaxed);
	else if (taken != made)
		atomic_store_explicit(&c->taken, taken + 1, memory_order_relaxed);
	cdev_put(f);
	if (waits)
		ret = drive_read(fd, pipe_is_ready, mark, cancel);
	errno = saved_errno;
	if (ret)
		return ret;
	/* The pointer is only a name: the channel may have been closed, and fd be another file. */
	return cdev_table_load(fd) == f ? 0 : -EBADF;
}

static void channel_release(struct cdev_file *cdev)
{
	struct uchannel *c = container_of(cdev, struct uchannel, cdev);

	pthread_mutex_destroy(&c->lock);
	free(c->late);
	free(c);
}

static const struct cdev_ops uchannel_ops = {
	.last_close = channel_last_close,
	.release = channel_release,
};

static const struct cdev_ops completions_ops = {
	.wait = completions_wait,
	.last_close = channel_last_close,
	.release = channel_release,
};

void uverbs_event_port(uint32_t port_row, enum ib_event event)
{
	pthread_mutex_lock(&channels_lock);
	for (struct uchannel *c = channels; c; c = c->next)
		if (port_row - c->port_row < c->nports)
			uchannel_post_async(c, port_row - c->port_row + 1, event, NULL);
	for (struct uport_listener *l = port_listeners; l; l = l->next)
		if (port_row - l->port_row < l->nports)
			l->event(l, port_row - l->port_row + 1, event);
	pthread_mutex_unlock(&channels_lock);
}

bool uverbs_event_is_heard(uint32_t port_row)
{
	bool heard = false;

	pthread_mutex_lock(&channels_lock);
	for (struct uchannel *c = channels; c && !heard; c = c->next)
		heard = port_row - c->port_row < c->nports;
	pthread_mutex_unlock(&channels_lock);
	return heard;
}

void uverbs_event_device(uint32_t port_row, enum ib_event event)
{
	pthread_mutex_lock(&channels_lock);
	for (struct uchannel *c = channels; c; c = c->next)
		if (port_row == c->port_row)
			uchannel_post_async(c, 0, event, NULL);
	pthread_mutex_unlock(&channels_lock);
}

void uport_listen(struct uport_listener *l)
{
	pthread_mutex_lock(&channels_lock);
	l->next = port_listeners;
	port_listeners = l;
	pthread_mutex_unlock(&channels_lock);
}

void uport_unlisten(struct uport_listener *l)
{
	pthread_mutex_lock(&channels_lock);
	for (struct uport_listener **at = &port_listeners; *at; at = &(*at)->next)
		if (*at == l) {
			*at = l->next;
			break;
		}
	pthread_mutex_unlock(&channels_lock);
}

void uverbs_event_fork_lock(void)
{
	pthread_mutex_lock(&channels_lock);
}

void uverbs_event_fork_unlock(void)
{
	pthread_mutex_unlock(&channels_lock);
}

void uverbs_event_fork_child(void)
{
	/* The child does not have the parent's channels. */
	channels = NULL;
	port_listeners = NULL;
	atomic_store_explicit(&completion_channels, 0, memory_order_relaxed);
	atomic_store_explicit(&overflowed, 0, memory_order_relaxed);
	pthread_mutex_unlock(&channels_lock);
}
