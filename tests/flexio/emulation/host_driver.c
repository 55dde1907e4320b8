// SPDX-License-Identifier: BSD-2-Clause
/* A driver of the emulated function: what a program does with a file of userspace I/O, and nothing of RDMA. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define ROUNDS	   200u
#define PATIENT_MS 60000

void driver_open(struct driver *d, int flags)
{
	d->fd = open(UIO, O_RDWR | flags);
	CHECK_SAY(d->fd >= 0, "%m");
	d->bar = mmap(NULL, BAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);
	CHECK_SAY(d->bar != MAP_FAILED, "%m");
}

void driver_close(struct driver *d)
{
	CHECK(!munmap((void *)(uintptr_t)d->bar, BAR_BYTES));
	CHECK(!close(d->fd));
}

void driver_ring(struct driver *d, unsigned queue, uint32_t value)
{
	__atomic_store_n(&d->bar[queue], value, __ATOMIC_RELEASE);
}

uint32_t driver_wait(struct driver *d, uint32_t seen)
{
	uint32_t n = seen;

	while (n == seen)
		CHECK(read(d->fd, &n, sizeof(n)) == sizeof(n));
	return n;
}

/* ---- cases ---- */

/* How often the device has interrupted so far. */
static uint32_t driver_count(struct driver *d)
{
	struct pollfd p = {.fd = d->fd, .events = POLLIN};
	uint32_t n = 0;

	driver_ring(d, 0, 0);
	CHECK(poll(&p, 1, PATIENT_MS) == 1 && read(d->fd, &n, sizeof(n)) == sizeof(n));
	return n;
}

/* A doorbell, an interrupt, and so on: of 16 bits as of 32, any value, at once and after a pause. */
static void echo(void)
{
	struct driver d;
	uint32_t n;

	driver_open(&d, 0);
	n = driver_count(&d);
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (i % 3)
			driver_ring(&d, i % DOORBELLS, i * 0x10001u);
		else
			*(volatile uint16_t *)(uintptr_t)&d.bar[i % DOORBELLS] = (uint16_t)i;
		CHECK(driver_wait(&d, n) == n + 1);
		n++;
		if (i % 20 == 0)
			usleep(30000);
	}
	driver_close(&d);
	printf("%u\n", n);
}

/* By poll, epoll and without waiting; several descriptors, several mappings. */
static void waits(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(0), other;
	struct driver d, second;
	struct pollfd p;
	uint32_t n, m;

	driver_open(&d, O_NONBLOCK);
	driver_open(&second, 0);
	p = (struct pollfd){.fd = d.fd, .events = POLLIN};
	CHECK(read(d.fd, &n, sizeof(n)) < 0 && errno == EAGAIN);
	CHECK(!poll(&p, 1, 0));
	driver_ring(&second, 1, 3);
	CHECK(poll(&p, 1, PATIENT_MS) == 1 && p.revents == POLLIN);
	CHECK(read(d.fd, &n, sizeof(n)) == sizeof(n));
	CHECK(read(second.fd, &m, sizeof(m)) == sizeof(m) && m == n);
	CHECK(!poll(&p, 1, 20));
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, d.fd, &event));
	driver_ring(&d, 0, 4);
	CHECK(epoll_wait(set, &event, 1, PATIENT_MS) == 1);
	/* A second descriptor of the file reads the same. */
	other = dup(d.fd);
	CHECK(other >= 0 && !close(d.fd));
	CHECK(read(other, &m, sizeof(m)) == sizeof(m) && m == n + 1);
	d.fd = other;
	driver_close(&d);
	driver_close(&second);
	CHECK(!close(set));
}

static void driver_refused(void)
{
	struct driver d;
	struct stat st, by_name;
	void *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t n = 1;

	CHECK(open("/dev/uio0", O_RDWR) < 0 && errno == ENOENT);
	CHECK(open("/dev/uio", O_RDWR) < 0 && errno == ENOENT);
	driver_open(&d, O_NONBLOCK);
	CHECK(!fstat(d.fd, &st) && S_ISCHR(st.st_mode) && !stat(UIO, &by_name) &&
	      st.st_rdev == by_name.st_rdev);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, d.fd, 4096) == MAP_FAILED && errno == EINVAL);
	CHECK(mmap(NULL, 8192, PROT_READ, MAP_SHARED, d.fd, 0) == MAP_FAILED && errno == EINVAL);
	CHECK(read(d.fd, &n, 2) < 0 && errno == EINVAL);
	CHECK(write(d.fd, &n, 2) < 0 && errno == EINVAL);
	CHECK(write(d.fd, &n, 4) < 0 && errno == ENOSYS);
	driver_ring(&d, 0, 1);
	CHECK(poll(&(struct pollfd){.fd = d.fd, .events = POLLIN}, 1, PATIENT_MS) == 1);
	CHECK(read(d.fd, nowhere, 4) < 0 && errno == EFAULT);
	driver_close(&d);
	CHECK(read(d.fd, &n, 4) < 0 && errno == EBADF);
}

static void on_alarm(int signum)
{
	(void)signum;
}

static void *reader(void *arg)
{
	uint32_t n;

	CHECK(read(((struct driver *)arg)->fd, &n, sizeof(n)) == sizeof(n));
	return NULL;
}

/* Signals and cancellation end a wait; a child has no device. */
static void interrupted(void)
{
	struct sigaction act = {.sa_handler = on_alarm};
	pthread_t thread;
	struct driver d;
	void *result;
	uint32_t n;
	int status;
	pid_t pid;

	driver_open(&d, 0);
	CHECK(!sigaction(SIGALRM, &act, NULL));
	ualarm(50000, 0);
	CHECK(read(d.fd, &n, sizeof(n)) < 0 && errno == EINTR);
	CHECK(!pthread_create(&thread, NULL, reader, &d));
	usleep(20000);
	CHECK(!pthread_cancel(thread) && !pthread_join(thread, &result) &&
	      result == PTHREAD_CANCELED);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(read(d.fd, &n, sizeof(n)) < 0 && errno == EIO ? 0 : 1);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	/* And it goes on. */
	n = driver_count(&d);
	driver_ring(&d, 1, 1);
	CHECK(driver_wait(&d, n) == n + 1);
	driver_close(&d);
}

/* Driver and device in one process. */
static void both(void)
{
	struct driver d;
	struct bench b;
	uint32_t n = 0;

	bench_up(&b, true, true);
	driver_open(&d, 0);
	for (unsigned i = 1; i <= 20; i++) {
		bell_arm(&b, 0);
		driver_ring(&d, 0, i);
		n = driver_wait(&d, n);
	}
	bell_takes(&b, 0, 20);
	driver_close(&d);
	bench_down(&b);
}

/* Rings all the time, until it is killed. */
static void storm(void)
{
	struct driver d;

	driver_open(&d, O_NONBLOCK);
	puts("begun");
	fflush(stdout);
	for (unsigned i = 0;; i++)
		driver_ring(&d, i % DOORBELLS, i);
}

/* The last doorbell is rung by a driver that has no instruction left to look at it. */
static void ring_and_die(void)
{
	struct driver d;

	driver_open(&d, O_NONBLOCK);
	for (unsigned i = 0; i < 1000; i++)
		driver_ring(&d, 0, i);
	driver_ring(&d, 1, 1);
	kill(getpid(), SIGKILL);
}

/* One doorbell, and no time for anybody to notice it. */
static void ring_once(void)
{
	struct driver d;

	driver_open(&d, 0);
	driver_ring(&d, 0, 9);
	driver_close(&d);
}

/* The same by a program that just ends. */
static void ring_and_end(void)
{
	struct driver d;

	driver_open(&d, 0);
	driver_ring(&d, 0, 9);
	exit(0);
}

/* A mapping outlives its descriptor. */
static void ring_closed(void)
{
	struct driver d;

	driver_open(&d, 0);
	CHECK(!close(d.fd));
	driver_ring(&d, 0, 9);
	CHECK(!munmap((void *)(uintptr_t)d.bar, BAR_BYTES));
}

const struct emulation_case driver_cases[] = {
	{"echo", echo},
	{"waits", waits},
	{"driver_refused", driver_refused},
	{"interrupted", interrupted},
	{"both", both},
	{"storm", storm},
	{"ring_and_die", ring_and_die},
	{"ring_once", ring_once},
	{"ring_and_end", ring_and_end},
	{"ring_closed", ring_closed},
	{NULL, NULL},
};
