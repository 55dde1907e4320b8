// SPDX-License-Identifier: BSD-2-Clause
/* What nodes are called: by users, and by their own descriptions. */
#include "fabric/daemon/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * What users call nodes: by the name of a host, by a GUID (the node's or a port's), by the id in
 * the topology's file, or by the description, which several may have.
 */

#define GUID_DIGITS 16u

/* Reads a number with 0x before it, or 16 digits; 0: the name is neither. */
static uint64_t name_guid(const char *name)
{
	bool marked = name[0] == '0' && (name[1] == 'x' || name[1] == 'X');
	const char *digits = marked ? name + 2 : name;
	size_t n = strspn(digits, "0123456789abcdefABCDEF");

	if (digits[n] || !n || n > GUID_DIGITS || (!marked && n != GUID_DIGITS))
		return 0;
	return strtoull(digits, NULL, 16);
}

static bool node_has_guid(const struct subnet *s, const struct subnet_node *node, uint64_t guid)
{
	if (node->guid == guid)
		return true;
	for (uint32_t i = 0; i < node->nports; i++)
		if (s->ports[node->first_port + i].guid == guid)
			return true;
	return false;
}

static int64_t node_by_guid(const struct subnet *s, uint64_t guid)
{
	for (uint32_t i = 0; guid && i < s->nnodes; i++)
		if (node_has_guid(s, &s->nodes[i], guid))
			return i;
	return -ENOENT;
}

static int64_t node_by_id(const struct subnet *s, const char *name)
{
	for (uint32_t i = 0; i < s->nnodes; i++)
		if (!strncmp(s->nodes[i].id, name, sizeof(s->nodes[i].id)))
			return i;
	return -ENOENT;
}

static int64_t node_by_description(const struct subnet *s, const char *name)
{
	int64_t found = -ENOENT;

	for (uint32_t i = 0; i < s->nnodes; i++) {
		if (strncmp(s->nodes[i].description, name, sizeof(s->nodes[i].description)) != 0)
			continue;
		if (found >= 0)
			return -ENOTUNIQ;
		found = i;
	}
	return found;
}

/* Returns the row of a node that is not called by a host's name. */
static int64_t node_called(const struct subnet *s, const char *name)
{
	int64_t node = name[0] ? node_by_guid(s, name_guid(name)) : -ENOENT;

	if (node < 0 && name[0])
		node = node_by_id(s, name);
	return node < 0 && name[0] ? node_by_description(s, name) : node;
}

int64_t fabric_called_node(const struct fabric *f, const char *name)
{
	const struct subnet *s = &f->subnet;
	int64_t host = topology_find_host(&f->topology, name);
	uint32_t first = host < 0 ? 0 : f->hosts[host].first_node;
	uint32_t nhcas = host < 0 ? 0 : f->topology.hosts[host].nhcas;

	for (uint32_t i = first; i < first + nhcas; i++)
		if (!s->ports[s->nodes[i].first_port].ethernet)
			return i;
	return node_called(s, name);
}

int64_t fabric_called_host(const struct fabric *f, const char *name)
{
	int64_t host = fabric_find_host(f, name), node;

	if (host >= 0)
		return host;
	node = node_called(&f->subnet, name);
	if (node < 0)
		return node;
	/* No program runs on a router. */
	return f->subnet.nodes[node].host == SUBNET_NONE ? -ENOENT
							 : (int64_t)f->subnet.nodes[node].host;
}

/*
 * Writers of a node's description.  To the program it is the file node_desc of sysfs, where each
 * write is a new text, wherever the file stands.  So the program gets one end of a socket that
 * keeps records apart, and any process that it hands the descriptor to, for example a shell's
 * command, writes there without our help.
 */

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
