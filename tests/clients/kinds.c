// SPDX-License-Identifier: BSD-2-Clause
/*
 * kinds DEVICE: has a memory key of each kind that peers reach in a way of its own, then queue pairs
 * of several transports, and says "NUMBER NAME" of each, "keys" after the keys and "done" at the
 * end.  Then it waits until it is killed.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kinds.h"
#include "verbs_devx.h"

#define PAGE   4096u
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static void *memory_map(int flags, int fd)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		device_die("mmap: %m");
	return p;
}

static void *memory_private(void)
{
	return memory_map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void *memory_of_file(void)
{
	int fd = memfd_create("kinds", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, PAGE))
		device_die("memfd: %m");
	return memory_map(MAP_SHARED, fd);
}

static void *memory_of_system_v(void)
{
	int id = shmget(IPC_PRIVATE, PAGE, 0600);
	void *p = id < 0 ? (void *)-1 : shmat(id, NULL, 0);

	if (id < 0 || shmctl(id, IPC_RMID, NULL) || p == (void *)-1)
		device_die("System V memory: %m");
	return p;
}

/* NULL: the system has no userfaultfd for us. */
static void *memory_served(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.range.len = PAGE, .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	char *p = memory_private();

	*p = 1;
	range.range.start = (uintptr_t)p;
	return fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range) ? NULL
											   : p;
}

static uint32_t key_of(struct ibv_pd *pd, void *memory, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, PAGE, access);

	if (!mr)
		device_die("ibv_reg_mr: %m");
	return mr->rkey;
}

void kinds_tell(const char *name, uint32_t number)
{
	printf("%u %s\n", number, name);
}

static void regions_tell(struct ibv_pd *pd)
{
	void *served = memory_served();

	kinds_tell("private", key_of(pd, memory_private(), ACCESS));
	kinds_tell("file", key_of(pd, memory_of_file(), ACCESS));
	kinds_tell("system-v", key_of(pd, memory_of_system_v(), ACCESS));
	kinds_tell("on-demand", key_of(pd, memory_private(), ACCESS | IBV_ACCESS_ON_DEMAND));
	if (served)
		kinds_tell("served", key_of(pd, served, ACCESS));
	kinds_tell("local", key_of(pd, memory_private(), IBV_ACCESS_LOCAL_WRITE));
}

static void other_keys_tell(struct ibv_pd *pd)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 4};
	struct ibv_mw *window = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct mlx5dv_mkey *list = mlx5dv_create_mkey(&attr);

	if (!window || !list)
		device_die("a window or a list: %m");
	kinds_tell("window", window->rkey);
	kinds_tell("list", list->rkey);
}

int main(int argc, char **argv)
{
	struct device_port port;
	struct ibv_pd *pd;

	if (argc != 2)
		device_die("usage: kinds DEVICE");
	device_port_open_by(&port, argv[1], -1, open_devx);
	pd = ibv_alloc_pd(port.ctx);
	if (!pd)
		device_die("ibv_alloc_pd: %m");
	regions_tell(pd);
	other_keys_tell(pd);
	kinds_devx_key(&port, pd);
	puts("keys");
	kinds_queue_pairs(&port, pd);
	puts("done");
	fflush(stdout);
	for (;;)
		pause();
}
