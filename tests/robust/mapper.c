// SPDX-License-Identifier: BSD-2-Clause
/*
 * mapper DEVICE: the program's mappings come through a library that stands behind the device's (behind.c), and what the device
 * maps for itself does not.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs_device.h"

#define BYTES 65536u

static unsigned *calls;

static void expect(const char *what, unsigned want)
{
	unsigned got = *calls;

	*calls = 0;
	if (got != want)
		device_die("%s: %u calls, not %u", what, got, want);
}

/* Memory of fixed pages, so that the C library's own calls are none. */
static uint8_t buffer[BYTES] __attribute__((aligned(4096)));

int main(int argc, char **argv)
{
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	void *at;

	calls = dlsym(RTLD_DEFAULT, "behind_calls");
	if (argc != 2 || !calls)
		device_die("usage: LD_PRELOAD=behind.so mapper DEVICE");
	expect("before anything", *calls);
	if (mlockall(MCL_CURRENT) && errno != ENOMEM && errno != EPERM)
		device_die("mlockall: %m");
	expect("mlockall", 1);
	munlockall();
	device_port_open(&port, argv[1], -1);
	pd = ibv_alloc_pd(port.ctx);
	expect("the device's opening", *calls);
	at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect("mmap", 1);
	at = mremap(at, BYTES, 2 * (size_t)BYTES, MREMAP_MAYMOVE);
	if (at == MAP_FAILED)
		device_die("mremap: %m");
	expect("mremap", 1);
	munmap(at, 2 * (size_t)BYTES);
	expect("munmap", 1);
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	if (!mr || ibv_dereg_mr(mr))
		device_die("a region: %m");
	expect("a region", 0);
	puts("each call, and no other");
	return 0;
}
