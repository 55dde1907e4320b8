/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels: order, what a full pipe does not take, what is taken back when an object goes,
 * and descriptors that are no such channel.
 */
#include "driver/uverbs/core/event.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"
#include "uverbs_file.h"

#define EVENTS 300000u /* more than the largest pipe takes */

static struct uverbs_file u, other;

static uint64_t comp_next(int fd)
{
	struct ib_uverbs_comp_event_desc desc;
	ssize_t n = read(fd, &desc, sizeof(desc));

	if (n < 0) {
		CHECK(errno == EAGAIN);
		return UINT64_MAX;
	}
	CHECK(n == sizeof(desc));
	return desc.cq_handle;
}

static int channel_open(enum uchannel_kind kind, struct uchannel **c)
{
	int fd = uchannel_create(&u.file, kind, c);

	if (fd >= 0)
		cdev_put(uchannel_cdev(*c)); /* the descriptor has another reference */
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC);
	CHECK(!(fcntl(fd, F_GETFL) & O_NONBLOCK)); /* the program's choice */
	CHECK(!fcntl(fd, F_SETFL, O_NONBLOCK));
	return fd;
}

static void test_order(void)
{
	struct uchannel *c;
	int fd = channel_open(UCHANNEL_COMP, &c);
	uint32_t count = 0;
	uint64_t next = 0;

	for (uint64_t i = 0; i < EVENTS; i++) {
		uchannel_post_comp(c, i, &count);
		if (i % 1000 == 999)
			CHECK(comp_next(fd) == next++);
	}
	/* all are counted, some wait in memory, and they come in order */
	CHECK(count == EVENTS && uchannel_overflowed());
	while (next < EVENTS) {
		uint64_t got = comp_next(fd);

		if (got == UINT64_MAX)
			uchannel_flush(c);
		else
			CHECK(got == next++);
	}
	CHECK(!uchannel_overflowed() && comp_next(fd) == UINT64_MAX);
	uchannel_drop_fd(fd);
}

/* Those of one object go, of the pipe and of the list; the others stay, in order. */
static void taking_back(void)
{
	struct uchannel *c;
	int fd = channel_open(UCHANNEL_COMP, &c);
	uint32_t a = 0, b = 0, left = 0;

	for (uint32_t i = 0; i < EVENTS / 2; i++) {
		uchannel_post_comp(c, 1, &a);
		uchannel_post_comp(c, 2, &b);
	}
	for (int i = 0; i < 11; i++)
		CHECK(comp_next(fd) == (uint64_t)(1 + i % 2));
	CHECK(uchannel_purge(c, 1) == a - 6);
	CHECK(uchannel_purge(c, 1) == 0 && uchannel_purge(c, 3) == 0);
	while (left < b - 5) {
		uint64_t got = comp_next(fd);

		CHECK(got == 2 || got == UINT64_MAX);
		if (got == 2)
			left++;
		else
			uchannel_flush(c);
	}
	CHECK(!uchannel_overflowed());
	/* also when all that waits goes */
	for (uint32_t i = 0; i < EVENTS; i++)
		uchannel_post_comp(c, 4, NULL);
	CHECK(uchannel_overflowed() && uchannel_purge(c, 4) == EVENTS);
	CHECK(!uchannel_overflowed() && comp_next(fd) == UINT64_MAX);
	uchannel_drop_fd(fd);
}

static void test_strangers(void)
{
	struct uchannel *c, *found;
	int fd = channel_open(UCHANNEL_COMP, &c), plain = dup(STDERR_FILENO);

	CHECK(!uchannel_find(&u.file, UCHANNEL_COMP, fd, &found) && found == c);
	cdev_put(uchannel_cdev(found));
	CHECK(uchannel_find(&u.file, UCHANNEL_ASYNC, fd, &found) == -EBADF);
	CHECK(uchannel_find(&other.file, UCHANNEL_COMP, fd, &found) == -EBADF);
	CHECK(uchannel_find(&u.file, UCHANNEL_COMP, plain, &found) == -EBADF);
	CHECK(uchannel_find(&u.file, UCHANNEL_COMP, -1, &found) == -EBADF);
	CHECK(uchannel_find(&u.file, UCHANNEL_COMP, fd + (1ll << 32), &found) == -EINVAL);
	close(plain);
	/* one that the program closed takes no more, and whoever names it may still post */
	cdev_hold(uchannel_cdev(c));
	uchannel_drop_fd(fd);
	CHECK(uchannel_find(&u.file, UCHANNEL_COMP, fd, &found) == -EBADF);
	uint32_t count = 0;
	uchannel_post_comp(c, 1, &count);
	CHECK(!count && !uchannel_purge(c, 1));
	uchannel_flush(c);
	cdev_put(uchannel_cdev(c));
}

#define CLOSED_CHANNELS 500u

static _Atomic(bool) closing;

/* As a program that closes whatever number it finds, sooner or later. */
static void *closer_run(void *arg)
{
	const int *first = arg;

	while (atomic_load(&closing))
		for (int fd = *first; fd < *first + 8; fd++)
			if (cdev_table_load(fd))
				uchannel_drop_fd(fd);
	return NULL;
}

/* The descriptor is closed while the channel is made: the channel stays for whoever made it, and
 * nothing of it stays afterwards. */
static void closed_at_once(void)
{
	int first = dup(STDERR_FILENO), after;
	uint32_t count = 0;
	struct uchannel *c;
	pthread_t closer;

	close(first);
	CHECK(uchannel_create(&u.file, UCHANNEL_ASYNC, &c) == first);
	uchannel_drop_fd(first);
	uchannel_post_async(c, 1, IB_EVENT_LID_CHANGE, &count);
	CHECK(!count);
	cdev_put(uchannel_cdev(c));

	atomic_store(&closing, true);
	CHECK(!pthread_create(&closer, NULL, closer_run, &first));
	for (unsigned i = 0; i < CLOSED_CHANNELS; i++) {
		int fd = uchannel_create(&u.file, i % 2 ? UCHANNEL_ASYNC : UCHANNEL_COMP, &c);

		CHECK(fd >= first);
		uchannel_post_async(c, 1, IB_EVENT_LID_CHANGE, NULL);
		cdev_put(uchannel_cdev(c));
	}
	/* the last one's, too */
	for (int fd = first; fd < first + 8; fd++)
		while (cdev_table_load(fd))
			sched_yield();
	atomic_store(&closing, false);
	CHECK(!pthread_join(closer, NULL));
	uverbs_event_port(0, IB_EVENT_LID_CHANGE); /* none is listed any more */
	after = dup(STDERR_FILENO);
	CHECK(after == first);
	close(after);
}

static unsigned heard;

static void listener_event(struct uport_listener *l, uint32_t number, enum ib_event event)
{
	CHECK(l->port_row == 4 && number == 2 && event == IB_EVENT_LID_CHANGE);
	heard++;
}

/* Each channel of the port's device and each listener hears of it, with the port's number, those of
 * other ports do not. */
static void test_ports(void)
{
	struct uport_listener mine = {.port_row = 4, .nports = 2, .event = listener_event};
	struct ib_uverbs_async_event_desc desc;
	struct uchannel *here, *there;
	int fd, there_fd;

	u.hca.port_row = 4;
	u.node.nports = 2;
	fd = channel_open(UCHANNEL_ASYNC, &here);
	u.hca.port_row = 6;
	there_fd = channel_open(UCHANNEL_ASYNC, &there);
	uport_listen(&mine);
	uverbs_event_port(5, IB_EVENT_LID_CHANGE);
	CHECK(heard == 1 && read(fd, &desc, sizeof(desc)) == sizeof(desc));
	CHECK(desc.element == 2 && desc.event_type == IB_EVENT_LID_CHANGE);
	CHECK(read(there_fd, &desc, sizeof(desc)) < 0 && errno == EAGAIN);
	uport_unlisten(&mine);
	uchannel_drop_fd(fd);
	uverbs_event_port(5, IB_EVENT_LID_CHANGE);
	CHECK(heard == 1);
	uchannel_drop_fd(there_fd);
}

int main(void)
{
	uverbs_file_up(&u);
	uverbs_file_up(&other);
	test_order();
	taking_back();
	test_strangers();
	closed_at_once();
	test_ports();
	uverbs_file_down(&u);
	uverbs_file_down(&other);
	return 0;
}
