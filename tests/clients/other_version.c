// SPDX-License-Identifier: BSD-2-Clause
/*
 * Preloaded into softhcad, lets it appear to be of another version: OTHER_VERSION is added to the version of each message
 * that it sends, and subtracted from that of each that it receives.  The head of messages, where that stands, is the same
 * in every version.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fabric/protocol.h"

static void version_shift(const struct msghdr *message, ssize_t bytes, int by)
{
	const char *delta = getenv("OTHER_VERSION");
	struct msg_head *head;

	if (!delta || !message->msg_iovlen || bytes < (ssize_t)sizeof(*head) ||
	    message->msg_iov[0].iov_len < sizeof(*head))
		return;
	head = message->msg_iov[0].iov_base;
	if (head->magic == MSG_MAGIC)
		head->version = (uint16_t)(head->version + by * strtol(delta, NULL, 10));
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message,
						       int flags)
{
	ssize_t (*real)(int, const struct msghdr *, int) = dlsym(RTLD_NEXT, "sendmsg");
	ssize_t bytes = message->msg_iovlen ? (ssize_t)message->msg_iov[0].iov_len : 0, n;

	version_shift(message, bytes, 1);
	n = real(fd, message, flags);
	version_shift(message, bytes, -1);
	return n;
}

__attribute__((visibility("default"))) ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t (*real)(int, struct msghdr *, int) = dlsym(RTLD_NEXT, "recvmsg");
	ssize_t n = real(fd, message, flags);

	version_shift(message, n, -1);
	return n;
}
