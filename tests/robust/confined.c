// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that takes the right to make threads from itself, as sandboxes do, after it has opened
 * a device: regions come and go, and data is written into them.  Nor does the device make threads
 * at a time of its own choice: what a thread takes at its start, a file's number for instance, the
 * program may just have counted on.
 *
 *	confined DEVICE
 */
#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs_device.h"

#define BYTES  65536u
#define ROUNDS 20
/* Longer than an idle engine stays awake. */
#define PAUSE_US 100000

/* As RLIMIT_NPROC refuses it, which does not bind root. */
static void forbid_threads(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0))
		device_die("seccomp: %m");
}

static unsigned count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *e;
	unsigned n = 0;

	if (!tasks)
		device_die("/proc/self/task: %m");
	while ((e = readdir(tasks)))
		n += e->d_name[0] != '.';
	closedir(tasks);
	return n;
}

static void *do_nothing(void *arg)
{
	return arg;
}

static void write_to(struct ibv_qp *qp, const struct ibv_mr *from, const struct ibv_mr *to)
{
	struct ibv_sge sge = {(uintptr_t)from->addr, BYTES, from->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)to->addr, to->rkey}};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	if (ibv_post_send(qp, &wr, &bad))
		device_die("ibv_post_send: %m");
	do {
		n = ibv_poll_cq(qp->send_cq, 1, &wc);
	} while (n == 0);
	if (n < 0 || wc.status)
		device_die("RDMA WRITE: %d, status %d", n, wc.status);
}

static void one_round(struct ibv_pd *pd, struct ibv_qp *qp, const struct ibv_mr *from, int round)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	uint8_t *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = at == MAP_FAILED ? NULL : ibv_reg_mr(pd, at, BYTES, access);

	if (!mr)
		device_die("ibv_reg_mr: %m");
	memset(from->addr, round, BYTES);
	write_to(qp, from, mr);
	if (at[0] != round || at[BYTES - 1] != round)
		device_die("round %d: the data is not there", round);
	if (ibv_dereg_mr(mr))
		device_die("ibv_dereg_mr: %m");
	munmap(at, BYTES);
}

int main(int argc, char **argv)
{
	static uint8_t source[BYTES];
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
	struct device_address self;
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_mr *from;
	struct ibv_qp *qp;
	unsigned threads, later;
	pthread_t thread;

	device_port_open(&port, argc > 1 ? argv[1] : NULL, -1);
	threads = count_threads();
	pd = ibv_alloc_pd(port.ctx);
	attr.send_cq = attr.recv_cq = ibv_create_cq(port.ctx, 16, NULL, NULL, 0);
	from = ibv_reg_mr(pd, source, BYTES, 0);
	qp = ibv_create_qp(pd, &attr);
	if (!from || !qp)
		device_die("setting up: %m");
	self = device_address(&port, qp, 1);
	device_qp_init(qp, &device_default_connection);
	device_qp_connect(&port, qp, &device_default_connection, &self, 1);
	forbid_threads();
	if (pthread_create(&thread, NULL, do_nothing, NULL) != EAGAIN)
		device_die("the filter lets threads through");
	for (int round = 1; round <= ROUNDS; round++)
		one_round(pd, qp, from, round);
	/* The device's threads go to sleep, for which they prepare. */
	usleep(PAUSE_US);
	later = count_threads();
	if (later != threads)
		device_die("%u threads after opening the device, %u later", threads, later);
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(attr.send_cq) || ibv_dereg_mr(from) ||
	    ibv_dealloc_pd(pd))
		device_die("taking down: %m");
	device_port_close(&port);
	printf("%d regions without a new thread\n", ROUNDS);
	return 0;
}
