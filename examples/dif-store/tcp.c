/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets; see tcp.h. */
#include "tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "complain.h"

#define PATIENCE_SECONDS 10

int tcp_listen(unsigned port)
{
	/* Takes IPv4 as well, at mapped addresses (RFC 3493 3.7). */
	struct sockaddr_in6 any = {.sin6_family = AF_INET6,
				   .sin6_addr = in6addr_any,
				   .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int yes = 1, no = 0;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool six = fd >= 0;

	if (!six) /* a system without IPv6 */
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		complain("cannot make a socket: %m");
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (six)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, six ? (struct sockaddr *)&any : (struct sockaddr *)&any4,
		 six ? sizeof(any) : sizeof(any4)) ||
	    listen(fd, SOMAXCONN)) {
		complain("cannot listen on TCP port %u: %m; choose another with --port", port);
		close(fd);
		return -1;
	}
	return fd;
}

int tcp_connect(const char *host, unsigned port)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	char service[16];
	int fd = -1, error;

	snprintf(service, sizeof(service), "%u", port);
	error = getaddrinfo(host, service, &hints, &found);
	if (error) {
		complain("no address for host '%s': %s", host, gai_strerror(error));
		return -1;
	}
	for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen)) {
			int saved = errno;

			close(fd);
			errno = saved;
			fd = -1;
		}
	}
	freeaddrinfo(found);
	if (fd < 0)
		complain("cannot connect to %s, TCP port %u: %m; does dif-store-target run there?",
			 host, port);
	return fd;
}

static bool limit_time(int fd, int which)
{
	struct timeval patience = {.tv_sec = PATIENCE_SECONDS};

	return setsockopt(fd, SOL_SOCKET, which, &patience, sizeof(patience)) == 0;
}

bool tcp_send(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;

	if (!limit_time(fd, SO_SNDTIMEO))
		return false;
	while (n > 0) {
		ssize_t done = send(fd, at, n, MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

bool tcp_receive(int fd, void *bytes, size_t n)
{
	char *at = bytes;

	if (!limit_time(fd, SO_RCVTIMEO))
		return false;
	while (n > 0) {
		ssize_t done = recv(fd, at, n, 0);

		if (done < 0 && errno == EINTR)
			continue;
		if (done == 0)
			errno = ECONNRESET;
		if (done <= 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}
