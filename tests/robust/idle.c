// SPDX-License-Identifier: BSD-2-Clause
/* idle DEVICE: connected queue pairs that have carried something, then nothing; ends with its
 * standard input. */
#include <stdio.h>
#include <unistd.h>

#include "pair.h"

#define QPS 8u

int main(int argc, char **argv)
{
	static struct pair p[QPS];
	char byte;

	if (argc != 2)
		device_die("usage: idle DEVICE");
	for (unsigned i = 0; i < QPS; i++) {
		struct ibv_wc wc;
		int n;

		pair_open(&p[i], argv[1], &device_default_connection, 8192);
		pair_alone(&p[i], &device_default_connection);
		pair_write(&p[i], i, 0, 4096, 4096);
		while (!(n = ibv_poll_cq(p[i].cq, 1, &wc)))
			;
		if (n != 1 || wc.status != IBV_WC_SUCCESS)
			device_die("the write failed");
	}
	printf("idle\n");
	fflush(stdout);
	if (read(STDIN_FILENO, &byte, 1) < 0)
		device_die("read: %m");
	for (unsigned i = 0; i < QPS; i++)
		pair_close(&p[i]);
	return 0;
}
