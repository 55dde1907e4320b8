// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory that was registered, unmapped without a word, and replaced by memory that a parent and its
 * child share: a fork must leave it what it is.
 *
 *	replaced DEVICE
 */
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_device.h"

#define BYTES 65536u

int main(int argc, char **argv)
{
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	_Atomic int *cell;
	void *at;
	int status = 0;
	pid_t pid;

	device_port_open(&port, argc > 1 ? argv[1] : NULL, -1);
	pd = ibv_alloc_pd(port.ctx);
	at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!pd || at == MAP_FAILED)
		device_die("PD or memory: %m");
	mr = ibv_reg_mr(pd, at, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		device_die("ibv_reg_mr: %m");
	munmap(at, BYTES);
	cell = mmap(at, BYTES, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (cell != at)
		device_die("mmap at the same place: %m");
	pid = fork();
	if (!pid) {
		*cell = 4711;
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		device_die("the child ends with status 0x%x", (unsigned)status);
	if (*cell != 4711)
		device_die("what the child stored into shared memory is not there");
	if (ibv_dereg_mr(mr) || ibv_dealloc_pd(pd))
		device_die("taking down: %m");
	if (*cell != 4711)
		device_die("deregistration changed memory that took the region's place");
	device_port_close(&port);
	printf("shared memory in the place of a region stays shared\n");
	return 0;
}
