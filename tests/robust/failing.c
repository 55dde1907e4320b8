// SPDX-License-Identifier: BSD-2-Clause
/*
 * failing DEVICE listen|connect TCP-PORT CASE: one request that must fail, for tests that look at
 * what is told of it.  CASE is
 *
 *   key       an RDMA WRITE with a key that the other never made
 *   local     a SEND from memory with a key that was never made
 *   receive   a SEND to one that has posted no receive
 *   killed    an RDMA WRITE, the line "going", a signal (SIGUSR1), before which somebody kills the
 *             listener; then a SEND
 *   later     a SEND that may succeed: after the line "open" and a signal (SIGUSR1) the two are
 *             connected; an RDMA WRITE, the line "going", another signal; then the SEND
 *
 *   blocked   the same, but the listener's device waits for the memory of its receive until a
 *             signal (SIGUSR1) comes
 *
 * The one that connects prints the status of its first request that failed, and ends with 0 if
 * there was one, or in the last two cases.  The one that listens waits until the other has gone.
 * Status 3: the other never came.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pair.h"

#define PAGE	    4096u
#define BYTES	    (2 * PAGE)
#define PATIENCE_MS 60000u

static const struct device_connection impatient = {
	.access = IBV_ACCESS_REMOTE_WRITE,
	.rnr_retry = 1,
	.retry_cnt = 1,
	.timeout = 12,
	.min_rnr_timer = 1,
	.rd_atomic = 1,
	.mtu = IBV_MTU_1024,
};

static const struct device_connection patient = {
	.access = IBV_ACCESS_REMOTE_WRITE,
	.rnr_retry = 1,
	.retry_cnt = 7,
	.timeout = 18, /* a second */
	.min_rnr_timer = 1,
	.rd_atomic = 1,
	.mtu = IBV_MTU_1024,
};

/* The first completion there is. */
static enum ibv_wc_status await_completion(struct pair *p)
{
	uint64_t end = pair_now_ms() + PATIENCE_MS;
	struct ibv_wc wc;

	while (pair_now_ms() < end) {
		int n = ibv_poll_cq(p->cq, 1, &wc);

		if (n < 0)
			device_die("polling fails");
		if (n)
			return wc.status;
	}
	device_die("no completion");
}

static void post_send(struct pair *p, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)p->mem, 64, lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	if (ibv_post_send(p->qp, &wr, &bad))
		device_die("ibv_post_send: %m");
}

static void post_receive(struct pair *p)
{
	struct ibv_sge sge = {(uintptr_t)p->mem + PAGE, 64, p->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(p->qp, &wr, &bad))
		device_die("ibv_post_recv: %m");
}

/* Says where the program is, and waits to be told to go on. */
static void say_and_wait(const char *where)
{
	sigset_t go_on;
	int number;

	sigemptyset(&go_on);
	sigaddset(&go_on, SIGUSR1);
	puts(where);
	fflush(stdout);
	if (sigwait(&go_on, &number))
		device_die("sigwait");
}

/* Who touches the memory of the receive waits until the descriptor is closed. */
static int block_receive(struct pair *p)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register area = {.range = {(uintptr_t)p->mem + PAGE, PAGE},
				       .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || madvise(p->mem + PAGE, PAGE, MADV_DONTNEED) ||
	    ioctl(fd, UFFDIO_REGISTER, &area))
		device_die("userfaultfd: %m");
	return fd;
}

static enum ibv_wc_status send_later(struct pair *p)
{
	pair_write(p, 0, 0, 0, 64);
	if (await_completion(p) != IBV_WC_SUCCESS)
		device_die("the WRITE fails");
	say_and_wait("going");
	post_send(p, p->mr->lkey);
	return await_completion(p);
}

static enum ibv_wc_status fail_by(struct pair *p, const char *how)
{
	if (!strcmp(how, "receive") || !strcmp(how, "local")) {
		post_send(p, p->mr->lkey + (*how == 'l' ? 0x100 : 0));
		return await_completion(p);
	}
	if (!strcmp(how, "key")) {
		p->peer_rkey += 0x100;
		pair_write(p, 0, 0, 0, 64);
		return await_completion(p);
	}
	return send_later(p);
}

static void wait_for_the_other(struct pair *p)
{
	struct pollfd ended = {.fd = p->sock, .events = POLLIN};
	char byte;

	if (poll(&ended, 1, (int)(2 * PATIENCE_MS)) != 1 || recv(p->sock, &byte, 1, 0) > 0)
		device_die("the other does not end");
}

/* All threads of the process have it blocked: those of the device begin later. */
static void block_signal(void)
{
	sigset_t go_on;

	sigemptyset(&go_on);
	sigaddset(&go_on, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go_on, NULL);
}

static void listen_to_the_end(struct pair *p, bool blocked)
{
	int fd = blocked ? block_receive(p) : -1;

	if (blocked) {
		say_and_wait("blocked");
		close(fd);
	}
	wait_for_the_other(p);
}

int main(int argc, char **argv)
{
	enum ibv_wc_status status = IBV_WC_GENERAL_ERR;
	const struct device_connection *how;
	bool listens, later, blocked;
	struct pair p;

	if (argc != 5)
		device_die("usage: failing DEVICE listen|connect TCP-PORT CASE");
	listens = !strcmp(argv[2], "listen");
	blocked = !strcmp(argv[4], "blocked");
	later = blocked || !strcmp(argv[4], "later");
	how = later ? &patient : &impatient;
	block_signal();
	pair_open(&p, argv[1], how, BYTES);
	if (later && listens)
		post_receive(&p);
	if (later && !listens)
		say_and_wait("open");
	pair_meet(&p, how, listens, pair_number(argv[3]));
	if (listens) {
		listen_to_the_end(&p, blocked);
	} else {
		status = fail_by(&p, argv[4]);
		printf("%s\n", ibv_wc_status_str(status));
	}
	pair_close(&p);
	return !listens && !later && status == IBV_WC_SUCCESS;
}
