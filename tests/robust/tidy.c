// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that closes all descriptors that it does not know, as daemons do, and uses their
 *numbers for files of its own.  With the C library's calls the device goes on working; with bare
 *system calls it may not, but in either case the files stay as they are.
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

#include "verbs_device.h"

#define MAX_FDS 4096
#define BYTES	65536u
#define FILL	"not for others"

struct desk {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
};

static ino_t own[MAX_FDS]; /* the program's file at that number */

static bool is_known(const struct desk *d, int fd)
{
	return fd <= 2 || fd == d->port.ctx->cmd_fd || fd == d->port.ctx->async_fd ||
	       fd == d->channel->fd;
}

/* ---- closing ---- */

static void close_each(const struct desk *d)
{
	for (int fd = 0; fd < MAX_FDS; fd++)
		if (!is_known(d, fd))
			close(fd);
}

static void close_between(const struct desk *d)
{
	int first = 0;

	for (int fd = 0; fd <= MAX_FDS; fd++) {
		if (fd < MAX_FDS && !is_known(d, fd))
			continue;
		if (fd > first && close_range((unsigned)first, (unsigned)fd - 1, 0))
			device_die("close_range: %m");
		first = fd + 1;
	}
}

static void close_above(const struct desk *d)
{
	int highest = 0;

	for (int fd = 0; fd < MAX_FDS; fd++)
		if (is_known(d, fd))
			highest = fd;
	closefrom(highest + 1);
}

static void close_bare(const struct desk *d)
{
	for (int fd = 0; fd < MAX_FDS; fd++)
		if (!is_known(d, fd))
			syscall(SYS_close, fd);
}

static const struct {
	const char *name;
	void (*run)(const struct desk *d);
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

/* A file at each number that is free; hidden ones look free no longer, so only what fcntl says. */
static void take_numbers(void)
{
	struct stat st;

	for (int fd = 3; fd < MAX_FDS; fd++) {
		int file;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		file = own_file();
		if (file != fd && (dup2(file, fd) != fd || close(file)))
			device_die("dup2 to %d: %m", fd);
		if (fstat(fd, &st))
			device_die("fstat: %m");
		own[fd] = st.st_ino;
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
		if (fstat(fd, &st) || st.st_ino != own[fd])
			device_die("file %d was closed or replaced", fd);
		if (st.st_size != sizeof(FILL) - 1 ||
		    pread(fd, text, sizeof(text), 0) != st.st_size || strcmp(text, FILL) ||
		    lseek(fd, 0, SEEK_CUR) != st.st_size)
			device_die("file %d was written to or read", fd);
		files++;
	}
	return files;
}

/* ---- the device ---- */

static void desk_open(struct desk *d, const char *device)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
	static uint8_t bytes[BYTES];
	struct device_address self;

	device_port_open(&d->port, device, -1);
	d->pd = ibv_alloc_pd(d->port.ctx);
	d->channel = ibv_create_comp_channel(d->port.ctx);
	d->cq = ibv_create_cq(d->port.ctx, 64, NULL, d->channel, 0);
	d->mr = ibv_reg_mr(d->pd, bytes, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	attr.send_cq = attr.recv_cq = d->cq;
	d->qp = d->mr ? ibv_create_qp(d->pd, &attr) : NULL;
	if (!d->qp)
		device_die("setting up: %m");
	self = device_address(&d->port, d->qp, 1);
	device_qp_init(d->qp, &device_default_connection);
	device_qp_connect(&d->port, d->qp, &device_default_connection, &self, 1);
}

/* A write that ends with an event; it may fail where the device may. */
static void write_and_poll(struct desk *d, bool works)
{
	struct ibv_sge sge = {(uintptr_t)d->mr->addr, 64, d->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)d->mr->addr + 4096, d->mr->rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	if (ibv_req_notify_cq(d->cq, 0) || ibv_post_send(d->qp, &wr, &bad))
		device_die("posting: %m");
	do {
		n = ibv_poll_cq(d->cq, 1, &wc);
	} while (n == 0);
	if (n < 0 || (works && wc.status))
		device_die("RDMA WRITE: %d, status %d", n, wc.status);
}

static void take_event(struct desk *d)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(d->channel, &cq, &context) || cq != d->cq)
		device_die("no event: %m");
	ibv_ack_cq_events(cq, 1);
}

/* More numbers than the device has at hand: it has to ask for them. */
static void many_keys(struct desk *d)
{
	for (int i = 0; i < 1100; i++) {
		struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
						.cap = {1, 1, 1, 1, 0},
						.send_cq = d->cq,
						.recv_cq = d->cq};
		struct ibv_qp *qp = ibv_create_qp(d->pd, &attr);

		if (!qp || ibv_destroy_qp(qp))
			device_die("queue pair %d: %m", i);
	}
}

static void use_memory(struct desk *d)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = at == MAP_FAILED ? NULL : ibv_reg_mr(d->pd, at, BYTES, access);

	if (!mr)
		device_die("ibv_reg_mr: %m");
	memset(at, 'x', BYTES);
	if (ibv_dereg_mr(mr) || munmap(at, BYTES))
		device_die("ibv_dereg_mr: %m");
}

static void desk_close(struct desk *d)
{
	if (ibv_destroy_qp(d->qp) || ibv_destroy_cq(d->cq) ||
	    ibv_destroy_comp_channel(d->channel) || ibv_dereg_mr(d->mr) || ibv_dealloc_pd(d->pd))
		device_die("taking down: %m");
	device_port_close(&d->port);
}

int main(int argc, char **argv)
{
	struct rlimit all;
	struct desk d;
	size_t way = 0;

	while (argc > 2 && way < sizeof(ways) / sizeof(ways[0]) && strcmp(argv[2], ways[way].name))
		way++;
	if (argc != 3 || way == sizeof(ways) / sizeof(ways[0]))
		device_die("usage: tidy DEVICE close|close_range|closefrom|syscall");
	/* Room for a file at each number, and so that all numbers can be tried. */
	if (getrlimit(RLIMIT_NOFILE, &all) || all.rlim_max < MAX_FDS + 1)
		device_die("the limit of descriptors is too low for this test");
	all.rlim_cur = MAX_FDS + 1;
	if (setrlimit(RLIMIT_NOFILE, &all))
		device_die("setrlimit: %m");
	desk_open(&d, argv[1]);
	ways[way].run(&d);
	take_numbers();
	write_and_poll(&d, ways[way].works);
	if (ways[way].works) {
		take_event(&d);
		all.rlim_cur = MAX_FDS + 64; /* the numbers are all in use */
		if (all.rlim_cur <= all.rlim_max)
			setrlimit(RLIMIT_NOFILE, &all);
		many_keys(&d);
	}
	use_memory(&d);
	desk_close(&d);
	printf("%d files in place of what was closed are untouched\n", check_files());
	return 0;
}
