// SPDX-License-Identifier: BSD-2-Clause
/* The sender as a program of its own: send ADDRESS PORT, with what ./events 0 has printed. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sender.h"

#define MESSAGES 2000u

int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	int fd;

	if (argc != 3) {
		fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
		return 2;
	}
	if (getaddrinfo(argv[1], argv[2], &hints, &found)) {
		fprintf(stderr, "%s, port %s: no such address\n", argv[1], argv[2]);
		return 1;
	}
	fd = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen)) {
		perror(argv[1]);
		return 1;
	}
	freeaddrinfo(found);
	send_messages(fd, MESSAGES);
	close(fd);
	printf("%u messages have arrived\n", MESSAGES);
	return 0;
}
