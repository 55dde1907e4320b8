/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the machine itself does: memcpy between the same two buffers again and again, as ib_write_bw
 * moves data between one buffer of either side; with a COUNT, between as many pairs of buffers in
 * turn.  copies BYTES [COUNT]: prints copies per second and bytes per second.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	size_t count = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	size_t next = 0;
	uint8_t *from;
	uint8_t *to;
	uint64_t copies = 0;
	uint64_t start;
	uint64_t now;

	if (!bytes || !count || bytes > 1u << 30 || count > (1u << 30) / bytes) {
		fputs("Usage: copies BYTES [COUNT]\n", stderr);
		return 2;
	}
	from = malloc(bytes * count);
	to = malloc(bytes * count);
	if (!from || !to) {
		fputs("copies: out of memory\n", stderr);
		return 2;
	}
	memset(from, 1, bytes * count);
	memset(to, 2, bytes * count);
	start = now = now_ns();
	while (now - start < 1000000000u) {
		for (int i = 0; i < 64; i++) {
			memcpy(to + next * bytes, from + next * bytes, bytes);
			next = next + 1 < count ? next + 1 : 0;
			/* The compiler must not find out that one copy would do. */
			__asm__ volatile("" : : "r"(to), "r"(from) : "memory");
		}
		copies += 64;
		now = now_ns();
	}
	printf("copies %.0f 1/s\nbandwidth %.0f MB/s\n",
	       (double)copies * 1e9 / (double)(now - start),
	       (double)copies * (double)bytes * 1e3 / (double)(now - start));
	free(from);
	free(to);
	return 0;
}
