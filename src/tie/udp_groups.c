// SPDX-License-Identifier: BSD-2-Clause
/*
 * Groups; see udp.h.  What is sent to a group does not come to a socket that is bound to an address, so
 * each group has a socket of its own.  The kernel then tells the network by IGMP or MLD, and forgets
 * the group when the carrier ends, however it ends.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tie/udp.h"

#define EVENTS 16

bool udp_groups_open(struct udp_groups *g)
{
	g->n = 0;
	pthread_mutex_init(&g->lock, NULL);
	g->poll = epoll_create1(EPOLL_CLOEXEC);
	return g->poll >= 0;
}

void udp_groups_close(struct udp_groups *g)
{
	for (unsigned i = 0; i < g->n; i++)
		close(g->group[i].fd);
	g->n = 0;
	close(g->poll);
	pthread_mutex_destroy(&g->lock);
}

/* The caller holds the lock, and so below. */
static struct udp_group *group_find(struct udp_groups *g, const union ib_gid *gid)
{
	for (unsigned i = 0; i < g->n; i++)
		if (!memcmp(&g->group[i].gid, gid, sizeof(*gid)))
			return &g->group[i];
	return NULL;
}

static int group_add(struct udp_groups *g, const struct udp_socket *u, const union ib_gid *gid)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct udp_network network;
	int fd;

	if (g->n == UDP_GROUPS)
		return -ENOBUFS;
	if (!udp_network_find(&u->gid, u->scope, &network))
		return -EADDRNOTAVAIL;
	fd = udp_open_group(gid, network.index);
	if (fd < 0)
		return fd;
	event.data.fd = fd;
	if (epoll_ctl(g->poll, EPOLL_CTL_ADD, fd, &event)) {
		close(fd);
		return -errno;
	}
	g->group[g->n++] = (struct udp_group){*gid, fd};
	return 0;
}

int udp_group_join(struct udp_groups *g, const struct udp_socket *u, const union ib_gid *gid)
{
	int ret = 0;

	if (ib_gid_is_ipv4(gid) != ib_gid_is_ipv4(&u->gid))
		return -EAFNOSUPPORT;
	pthread_mutex_lock(&g->lock);
	if (!group_find(g, gid))
		ret = group_add(g, u, gid);
	pthread_mutex_unlock(&g->lock);
	return ret;
}

void udp_group_leave(struct udp_groups *g, const union ib_gid *gid)
{
	struct udp_group *group;

	pthread_mutex_lock(&g->lock);
	group = group_find(g, gid);
	if (group) {
		close(group->fd);
		*group = g->group[--g->n];
	}
	pthread_mutex_unlock(&g->lock);
}

void udp_groups_take(struct udp_groups *g, void (*take)(void *user, const struct udp_group *group),
		     void *user)
{
	struct epoll_event events[EVENTS];
	int n;

	pthread_mutex_lock(&g->lock);
	n = epoll_wait(g->poll, events, EVENTS, 0);
	for (int i = 0; i < n; i++)
		for (unsigned k = 0; k < g->n; k++)
			if (g->group[k].fd == events[i].data.fd)
				take(user, &g->group[k]);
	pthread_mutex_unlock(&g->lock);
}
