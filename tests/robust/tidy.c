// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that closes all descriptors that it does not know, as daemons do, and uses their numbers
 * for a file of its own.  With the C library's calls the device goes on working; with bare system
 * calls it may not, but in either case the file stays at its numbers and as it is.
 *
 *	tidy DEVICE close|close_range|closefrom|syscall
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loopback.h"

#define MAX_FDS 4096
#define FILL	"not for others"

static bool own[MAX_FDS]; /* the program's file is at that number */
static ino_t own_inode;

static bool is_known(const struct loopback *l, int fd)
{
	return fd <= 2 || fd == l->port.ctx->cmd_fd || fd == l->port.ctx->async_fd ||
	       fd == l->channel->fd;
}

/* ---- closing ---- */

static void close_each(const struct loopback *l)
{
	for (int fd = 0; fd < MAX_FDS; fd++)
		if (!is_known(l, fd))
			close(fd);
}

static void close_between(const struct loopback *l)
{
	int first = 0;

	for (int fd = 0; fd <= MAX_FDS; fd++) {
		if (fd < MAX_FDS && !is_known(l, fd))
			continue;
		if (fd > first && close_range((unsigned)first, (unsigned)fd - 1, 0))
			device_die("close_range: %m");
		first = fd + 1;
	}
}

static void close_above(const struct loopback *l)
{
	int highest = 0;

	for (int fd = 0; fd < MAX_FDS; fd++)
		if (is_known(l, fd))
			highest = fd;
	closefrom(highest + 1);
}

static void close_bare(const struct loopback *l)
{
	for (int fd = 0; fd < MAX_FDS; fd++)
		if (!is_known(l, fd))
			syscall(SYS_close, fd);
}

static const struct {
	const char *name;
	void (*run)(const struct loopback *l);
	bool works; /* does the device, afterwards? */
} ways[] = {
	{"close", close_each, true},
	{"close_range", close_between, true},
	{"closefrom", close_above, true},
	{"syscall", close_bare, false},
};

/* ---- files of the program ---- */

static int own_file(void)
{
	FILE *f = tmpfile();
	int fd;

	if (!f || fputs(FILL, f) < 0 || fflush(f) || (fd = dup(fileno(f))) < 0)
		device_die("a file: %m");
	fclose(f);
	return fd;
}

/* The file at each number that is free; hidden ones look free no longer, so only what fcntl says. */
static void take_numbers(void)
{
	int file = own_file();
	struct stat st;

	if (fstat(file, &st))
		device_die("fstat: %m");
	own_inode = st.st_ino;
	own[file] = true;
	for (int fd = 3; fd < MAX_FDS; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		if (dup2(file, fd) != fd)
			device_die("dup2 to %d: %m", fd);
		own[fd] = true;
	}
}

static int check_files(void)
{
	int files = 0;

	for (int fd = 0; fd < MAX_FDS; fd++) {
		char text[sizeof(FILL) + 1] = "";
		struct stat st;

		if (!own[fd])
			continue;
		if (fstat(fd, &st) || st.st_ino != own_inode)
			device_die("file %d was closed or replaced", fd);
		if (st.st_size != sizeof(FILL) - 1 ||
		    pread(fd, text, sizeof(text), 0) != st.st_size || strcmp(text, FILL) != 0 ||
		    lseek(fd, 0, SEEK_CUR) != st.st_size)
			device_die("file %d was written to or read", fd);
		files++;
	}
	return files;
}

/* ---- the device ---- */

/* A write that ends with an event; it may fail where the device may. */
static void write_and_poll(struct loopback *l, bool works)
{
	struct ibv_sge sge = {(uintptr_t)l->mr->addr, 64, l->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)l->mr->addr + 4096, l->mr->rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	if (ibv_req_notify_cq(l->cq, 0) || ibv_post_send(l->qp, &wr, &bad))
		device_die("posting: %m");
	do {
		n = ibv_poll_cq(l->cq, 1, &wc);
	} while (n == 0);
	if (n < 0 || (works && wc.status))
		device_die("RDMA WRITE: %d, status %d", n, wc.status);
}

static void take_event(struct loopback *l)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(l->channel, &cq, &context) || cq != l->cq)
		device_die("no event: %m");
	ibv_ack_cq_events(cq, 1);
}

/* More numbers than the device has at hand: it has to ask for them. */
static void many_keys(struct loopback *l)
{
	for (int i = 0; i < 1100; i++) {
		struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
						.cap = {1, 1, 1, 1, 0},
						.send_cq = l->cq,
						.recv_cq = l->cq};
		struct ibv_qp *qp = ibv_create_qp(l->pd, &attr);

		if (!qp || ibv_destroy_qp(qp))
			device_die("queue pair %d: %m", i);
	}
}

static void use_memory(struct loopback *l)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	void *at = mmap(NULL, LOOPBACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	struct ibv_mr *mr = at == MAP_FAILED ? NULL : ibv_reg_mr(l->pd, at, LOOPBACK_BYTES, access);

	if (!mr)
		device_die("ibv_reg_mr: %m");
	memset(at, 'x', LOOPBACK_BYTES);
	if (ibv_dereg_mr(mr) || munmap(at, LOOPBACK_BYTES))
		device_die("ibv_dereg_mr: %m");
}

int main(int argc, char **argv)
{
	struct rlimit all;
	struct loopback l;
	size_t way = 0;

	while (argc > 2 && way < sizeof(ways) / sizeof(ways[0]) &&
	       strcmp(argv[2], ways[way].name) != 0)
		way++;
	if (argc != 3 || way == sizeof(ways) / sizeof(ways[0]))
		device_die("usage: tidy DEVICE close|close_range|closefrom|syscall");
	/* Room for a file at each number, and so that all numbers can be tried. */
	if (getrlimit(RLIMIT_NOFILE, &all) || all.rlim_max < MAX_FDS + 1)
		device_die("the limit of descriptors is too low for this test");
	all.rlim_cur = MAX_FDS + 1;
	if (setrlimit(RLIMIT_NOFILE, &all))
		device_die("setrlimit: %m");
	loopback_open(&l, argv[1]);
	ways[way].run(&l);
	take_numbers();
	write_and_poll(&l, ways[way].works);
	if (ways[way].works) {
		take_event(&l);
		all.rlim_cur = MAX_FDS + 64; /* the numbers are all in use */
		if (all.rlim_cur <= all.rlim_max)
			setrlimit(RLIMIT_NOFILE, &all);
		many_keys(&l);
	}
	use_memory(&l);
	loopback_close(&l);
	printf("%d files in place of what was closed are untouched\n", check_files());
	return 0;
}
