// SPDX-License-Identifier: BSD-2-Clause
/*
 * passive DEVICE listen|connect TCP-PORT: the listener never calls verbs once it is connected; it
 * sleeps in a read of its socket while the other writes, reads back and compares, in sizes from a
 * byte to a megabyte.  In the end it looks at its own memory.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "pair.h"

#define BYTES  (1u << 20)
#define ROUNDS 200u

static int drive_traffic(struct pair *p)
{
	uint64_t start = pair_now_ms();
	char byte = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t n = i + 1 == ROUNDS ? BYTES : 1u << (i % 20);
		uint8_t *sent = p->mem, *back = p->mem + BYTES;

		memset(sent, (int)(i + 1), n);
		pair_write(p, 0, 0, 0, n);
		pair_complete(p, "a write");
		memset(back, 0, n);
		pair_read(p, 0, BYTES, 0, n);
		pair_complete(p, "a read");
		if (memcmp(sent, back, n) != 0) {
			printf("wrong: round %u, %u bytes: other data\n", i, n);
			return 1;
		}
	}
	printf("%u writes and reads in %u ms\n", ROUNDS, (unsigned)(pair_now_ms() - start));
	return send(p->sock, &byte, 1, MSG_NOSIGNAL) != 1;
}

static int sleep_through(struct pair *p)
{
	char byte;

	if (recv(p->sock, &byte, 1, 0) != 1) {
		printf("wrong: the other is gone\n");
		return 1;
	}
	for (uint32_t i = 0; i < BYTES; i++)
		if (p->mem[i] != (uint8_t)ROUNDS) {
			printf("wrong: byte %u is %u\n", i, p->mem[i]);
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	struct pair p;
	bool listens;
	int status;

	if (argc != 4)
		device_die("usage: passive DEVICE listen|connect TCP-PORT");
	listens = !strcmp(argv[2], "listen");
	pair_open(&p, argv[1], &device_default_connection, 2 * BYTES);
	pair_meet(&p, &device_default_connection, listens, pair_number(argv[3]));
	status = listens ? sleep_through(&p) : drive_traffic(&p);
	pair_close(&p);
	return status;
}
