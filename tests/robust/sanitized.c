// SPDX-License-Identifier: BSD-2-Clause
/*
 * sanitized DEVICE: built with AddressSanitizer, as developers of RDMA programs build theirs. Whole
 * pages move when a block of the heap is registered; the bytes beside the block, which the program
 * itself must not touch, are no business of the sanitizer then, and remain forbidden.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sanitizer/asan_interface.h>

#include "verbs_device.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static const size_t sizes[] = {1, 77, 4096, 5000, 70000};
#define BLOCKS (sizeof(sizes) / sizeof(sizes[0]))

int main(int argc, char **argv)
{
	struct ibv_mr *regions[BLOCKS];
	uint8_t *blocks[BLOCKS];
	struct device_port port;
	struct ibv_pd *pd;

	if (argc != 2)
		device_die("usage: sanitized DEVICE");
	device_port_open(&port, argv[1], -1);
	pd = ibv_alloc_pd(port.ctx);
	if (!pd)
		device_die("ibv_alloc_pd: %m");
	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(sizes[i]);
		regions[i] = blocks[i] ? ibv_reg_mr(pd, blocks[i], sizes[i], ACCESS) : NULL;
		if (!regions[i])
			device_die("block %zu: %m", i);
		memset(blocks[i], (int)i, sizes[i]);
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		if (ibv_dereg_mr(regions[i]))
			device_die("ibv_dereg_mr: %m");
		for (size_t at = 0; at < sizes[i]; at++)
			if (blocks[i][at] != i)
				device_die("block %zu has changed", i);
		if (!__asan_address_is_poisoned(blocks[i] + sizes[i]))
			device_die("the byte behind block %zu is allowed", i);
		free(blocks[i]);
	}
	if (ibv_dealloc_pd(pd))
		device_die("ibv_dealloc_pd: %m");
	device_port_close(&port);
	printf("%zu blocks\n", BLOCKS);
	return 0;
}
