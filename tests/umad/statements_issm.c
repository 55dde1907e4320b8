// SPDX-License-Identifier: BSD-2-Clause
/* Statements 54 to 62: who says that there is a subnet manager at the port. */
#include "checklist.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int issm_file(unsigned port, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/issm%u", port - 1);
	fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

static int issm_held(unsigned port)
{
	int fd = issm_file(port, O_NONBLOCK);

	must(fd >= 0, "open: %s", strerror(-fd));
	return fd;
}

/* The end of a socket is seen in the order in which the other end looks. */
static bool issm_clears(unsigned port)
{
	for (unsigned i = 0; i < 3000 && issm_bit_of(port); i++)
		usleep(10000);
	return !issm_bit_of(port);
}

static void s54_open_sets_the_bit(void)
{
	must(!issm_bit_of(1), "it is set");
	issm_held(1);
	must(issm_bit_of(1), "it is not set");
}

struct waiter {
	atomic_int fd; /* -1000: not yet */
	atomic_bool begun;
};

static void *waiter_opens(void *argument)
{
	struct waiter *w = argument;

	atomic_store(&w->begun, true);
	atomic_store(&w->fd, issm_file(1, 0));
	return NULL;
}

static pthread_t waiter_begin(struct waiter *w)
{
	pthread_t thread;

	atomic_init(&w->fd, -1000);
	atomic_init(&w->begun, false);
	must(pthread_create(&thread, NULL, waiter_opens, w) == 0, "thread");
	while (!atomic_load(&w->begun))
		usleep(1000);
	/* Time for an open that does not wait to be over. */
	usleep(100000);
	must(atomic_load(&w->fd) == -1000, "open returned %d", atomic_load(&w->fd));
	return thread;
}

static void s55_a_second_open_waits(void)
{
	int holder = issm_held(1);
	struct waiter w;
	pthread_t thread = waiter_begin(&w);

	close(holder);
	pthread_join(thread, NULL);
	must(atomic_load(&w.fd) >= 0, "open: %d", atomic_load(&w.fd));
}

static void s56_or_is_eagain(void)
{
	int fd, holder = issm_held(1);

	fd = issm_file(1, O_NONBLOCK);
	must(fd == -EAGAIN, "open: %d", fd);
	must(issm_bit_of(1), "the bit of the first one");
	close(holder);
}

static void s57_close_clears_the_bit(void)
{
	int fd = issm_held(1);

	must(issm_bit_of(1), "it is not set");
	must(close(fd) == 0, "close");
	must(issm_clears(1), "it stays set");
}

static void s58_a_waiting_open_gets_it(void)
{
	int holder = issm_held(1), again;
	struct waiter w;
	pthread_t thread = waiter_begin(&w);

	close(holder);
	pthread_join(thread, NULL);
	must(atomic_load(&w.fd) >= 0, "open: %d", atomic_load(&w.fd));
	must(issm_bit_of(1), "the bit of the second one");
	again = issm_file(1, O_NONBLOCK);
	must(again == -EAGAIN, "a third one: %d", again);
	close(atomic_load(&w.fd));
	must(issm_clears(1), "it stays set");
}

static void s59_read_fails(void)
{
	int fd = issm_held(1);
	char c[NEW_HEADER + MAD_BYTES];

	must(read(fd, c, sizeof(c)) == -1 && errno == EINVAL, "%s", strerror(errno));
}

static void s60_write_fails(void)
{
	int fd = issm_held(1);
	char c[NEW_HEADER + MAD_BYTES] = {0};

	must(write(fd, c, sizeof(c)) == -1 && errno == EINVAL, "%s", strerror(errno));
}

static void s61_other_operations_fail(void)
{
	int fd = issm_held(1), number = 0;

	must(ioctl(fd, 0x1b03, &number) == -1 && errno == ENOTTY, "ioctl: %s", strerror(errno));
	must(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED && errno == ENODEV,
	     "mmap: %s", strerror(errno));
	must(lseek(fd, 0, SEEK_SET) == -1 && errno == ESPIPE, "lseek: %s", strerror(errno));
}

static void s62_it_is_of_a_port(void)
{
	int first = issm_held(1), second = issm_held(2);

	must(issm_bit_of(1) && issm_bit_of(2), "bits");
	close(first);
	must(issm_clears(1), "the first stays set");
	must(issm_bit_of(2), "the second is gone too");
	close(second);
}

const struct statement statements_of_issm[] = {
	{54, s54_open_sets_the_bit},
	{55, s55_a_second_open_waits},
	{56, s56_or_is_eagain},
	{57, s57_close_clears_the_bit},
	{58, s58_a_waiting_open_gets_it},
	{59, s59_read_fails},
	{60, s60_write_fails},
	{61, s61_other_operations_fail},
	{62, s62_it_is_of_a_port},
	{0, NULL},
};
