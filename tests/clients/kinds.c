// SPDX-License-Identifier: BSD-2-Clause
/*
 * kinds DEVICE [threads]: has a memory key of each kind that peers reach in a way of its own, then
 * queue pairs of several transports, and says "NUMBER NAME" of each, "keys" after the keys and
 * "done" at the end.  Then it waits until it is killed.  With "threads", it has another thread from
 * the beginning on.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

#include "verbs_device.h"

#define PAGE   4096u
#define LARGE  ((64u << 20) + PAGE)
#define MANY   300
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static void *memory_map(size_t bytes, int flags, int fd)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		device_die("mmap: %m");
	return p;
}

static void *memory_private(size_t bytes)
{
	return memory_map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void *memory_of_file(void)
{
	int fd = memfd_create("kinds", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, PAGE))
		device_die("memfd: %m");
	return memory_map(PAGE, MAP_SHARED, fd);
}

static void *memory_of_system_v(void)
{
	int id = shmget(IPC_PRIVATE, PAGE, 0600);
	void *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (id < 0 || shmctl(id, IPC_RMID, NULL) || p == (void *)-1)
		device_die("System V memory: %m");
	return p;
}

static void *memory_locked(void)
{
	void *p = memory_private(PAGE);

	if (mlock(p, PAGE))
		device_die("mlock: %m");
	return p;
}

/* NULL: the system has no userfaultfd for us. */
static void *memory_served(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.range.len = PAGE, .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	char *p = memory_private(PAGE);

	*p = 1;
	range.range.start = (uintptr_t)p;
	return fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range) ? NULL
											   : p;
}

static uint32_t key_of(struct ibv_pd *pd, void *memory, size_t bytes, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, bytes, access);

	if (!mr)
		device_die("ibv_reg_mr: %m");
	return mr->rkey;
}

static void tell(const char *name, uint32_t number)
{
	printf("%u %s\n", number, name);
}

static void regions_tell(struct ibv_pd *pd)
{
	void *served = memory_served();
	uint32_t last = 0;

	tell("private", key_of(pd, memory_private(PAGE), PAGE, ACCESS));
	tell("file", key_of(pd, memory_of_file(), PAGE, ACCESS));
	tell("system-v", key_of(pd, memory_of_system_v(), PAGE, ACCESS));
	tell("on-demand", key_of(pd, memory_private(PAGE), PAGE, ACCESS | IBV_ACCESS_ON_DEMAND));
	if (served)
		tell("served", key_of(pd, served, PAGE, ACCESS));
	tell("large", key_of(pd, memory_private(LARGE), LARGE, ACCESS));
	tell("locked", key_of(pd, memory_locked(), PAGE, ACCESS));
	for (int i = 0; i < MANY; i++)
		last = key_of(pd, memory_private(PAGE), PAGE, ACCESS);
	tell("many", last);
	tell("local", key_of(pd, memory_private(PAGE), PAGE, IBV_ACCESS_LOCAL_WRITE));
}

static void other_keys_tell(struct ibv_pd *pd)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 4};
	struct ibv_mw *window = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct mlx5dv_mkey *list = mlx5dv_create_mkey(&attr);

	if (!window || !list)
		device_die("a window or a list: %m");
	tell("window", window->rkey);
	tell("list", list->rkey);
}

static struct ibv_qp *qp_of(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	if (!qp)
		device_die("ibv_create_qp: %m");
	return qp;
}

/* Of these the first is connected, with itself. */
static void queue_pairs_tell(const struct device_port *port, struct ibv_pd *pd)
{
	struct ibv_cq *cq = ibv_create_cq(port->ctx, 1, NULL, NULL, 0);
	struct ibv_qp *uc = qp_of(pd, cq, IBV_QPT_UC);
	struct device_address self = device_address(port, uc, 1);

	device_qp_init(uc, &device_default_connection);
	device_qp_connect(port, uc, &device_default_connection, &self, 1);
	tell("uc", uc->qp_num);
	tell("ud", qp_of(pd, cq, IBV_QPT_UD)->qp_num);
	tell("rc", qp_of(pd, cq, IBV_QPT_RC)->qp_num);
}

static void *thread_wait(void *arg)
{
	for (;;)
		pause();
	return arg;
}

int main(int argc, char **argv)
{
	struct device_port port;
	struct ibv_pd *pd;
	pthread_t thread;

	if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "threads") != 0))
		device_die("usage: kinds DEVICE [threads]");
	if (argc == 3 && pthread_create(&thread, NULL, thread_wait, NULL))
		device_die("no thread");
	device_port_open(&port, argv[1], -1);
	pd = ibv_alloc_pd(port.ctx);
	if (!pd)
		device_die("ibv_alloc_pd: %m");
	regions_tell(pd);
	other_keys_tell(pd);
	puts("keys");
	queue_pairs_tell(&port, pd);
	puts("done");
	fflush(stdout);
	for (;;)
		pause();
}
