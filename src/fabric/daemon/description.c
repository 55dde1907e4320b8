// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writers of a node's description.  To the program it is the file node_desc of sysfs, where each
 * write is a new text, wherever the file stands.  So the program gets one end of a socket that
 * keeps records apart, and any process that it hands the descriptor to, for example a shell's
 * command, writes there without our help.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/daemon/fabric.h"

#define DESCRIPTION_RECORDS 64u /* how many are taken before others have their turn */

struct description_file {
	struct source sock;
	struct loop_grave grave;
	struct description_file *next;
	struct fabric *fabric;
	uint32_t row;
	bool ended;
};

static void description_free(struct loop_grave *g)
{
	free(container_of(g, struct description_file, grave));
}

static void description_end(struct description_file *d)
{
	struct description_file **at = &d->fabric->descriptions;

	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	d->ended = true;
	close(d->sock.fd);
	loop_bury(&d->fabric->loop, &d->grave);
}

/* Does as the kernel does: it drops what is beyond 64 bytes, and keeps a newline. */
static void description_set(struct description_file *d, const char *record, size_t bytes)
{
	char text[SUBNET_NAME_BYTES + 1] = {0};

	memcpy(text, record, bytes);
	/* 64 bytes always fit. */
	if (net_set_description(&d->fabric->net, d->row, text))
		return;
}

/* Takes a record.  Each record has a sender, which tells a write of nothing from the end. */
static ssize_t record_take(int fd, char record[SUBNET_NAME_BYTES], bool *ended)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {record, SUBNET_NAME_BYTES};
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n = recvmsg(fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*ended = n == 0 && !mh.msg_controllen;
	return n < 0 ? -errno : n;
}

static void description_ready(struct loop *l, struct source *src, uint32_t events)
{
	struct description_file *d = container_of(src, struct description_file, sock);
	char record[SUBNET_NAME_BYTES];
	bool ended = false;
	ssize_t n = 0;

	(void)l, (void)events;
	/* A program that ends without having read from its end resets it, and its last record comes
	 * after that. */
	for (unsigned i = 0; i < DESCRIPTION_RECORDS && !d->ended && !ended &&
			     (n >= 0 || n == -EINTR || n == -ECONNRESET);
	     i++) {
		n = record_take(d->sock.fd, record, &ended);
		if (n > 0)
			description_set(d, record, (size_t)n);
	}
	if (ended)
		description_end(d);
}

/* A program that opens it for reading too finds the text of that moment, and then the end. */
static int description_offer(struct description_file *d, int fd)
{
	const char *text = net_node_of(&d->fabric->net, d->row)->description;
	char line[SUBNET_NAME_BYTES + 1];
	size_t bytes = strnlen(text, SUBNET_NAME_BYTES);

	memcpy(line, text, bytes);
	line[bytes++] = '\n';
	d->sock = (struct source){description_ready, fd};
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) ||
	    send(fd, line, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 || shutdown(fd, SHUT_WR))
		return -errno;
	return loop_watch(&d->fabric->loop, &d->sock, EPOLLIN);
}

static int description_stream(struct description_file *d, int *other)
{
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ret = description_offer(d, pair[0]);
	if (ret) {
		close(pair[0]);
		close(pair[1]);
		return ret;
	}
	*other = pair[1];
	return 0;
}

int description_open(struct fabric *f, uint32_t row, int *fd)
{
	struct description_file *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return -ENOMEM;
	d->fabric = f;
	d->row = row;
	d->grave.bury = description_free;
	ret = description_stream(d, fd);
	if (ret) {
		free(d);
		return ret;
	}
	d->next = f->descriptions;
	f->descriptions = d;
	return 0;
}

void descriptions_close(struct fabric *f)
{
	while (f->descriptions)
		description_end(f->descriptions);
}
