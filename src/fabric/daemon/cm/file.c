// SPDX-License-Identifier: BSD-2-Clause
/* Files of programs, and the ids in them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/daemon/cm/id.h"

/* ---- the end of ids ---- */

/* A request that nobody has taken gives its place in the backlog back. */
static void listener_forget(struct cm_id *id)
{
	if (id->listener)
		id->listener->backlog++;
	id->listener = NULL;
}

void cm_id_end(struct cm_id *id)
{
	struct cm *c = id->cm;

	(void)cm_events_drop(id, cm_id_end);
	cm_connection_end(id);
	while (id->groups)
		cm_leave(id->groups);
	cm_sa_forget(c, &id->path_request);
	loop_timer_cancel(c->mad->loop, &id->timer);
	listener_forget(id);
	cm_id_free(id);
}

/* ---- files ---- */

static void file_free(struct loop_grave *g)
{
	free(container_of(g, struct cm_file, grave));
}

static void file_end(struct cm_file *f)
{
	struct cm *c = f->cm;
	struct cm_id *id;

	/* Ending a listener ends requests that nobody has taken, so the next one is looked for again. */
	for (uint32_t number = 0;
	     (id = cm_id_next(c, f->host, number)) && id->ids->host == f->host;) {
		number = id->number + 1;
		if (id->file == f)
			cm_id_end(id);
	}
	*f->prev = f->next;
	if (f->next)
		f->next->prev = f->prev;
	c->nfiles--;
	close(f->sock.fd);
	loop_bury(c->mad->loop, &f->grave);
}

/* The program writes nothing here; the end of the socket is the last close. */
static void file_ready(struct loop *l, struct source *src, uint32_t events)
{
	struct cm_file *f = container_of(src, struct cm_file, sock);
	uint8_t byte;

	(void)l;
	if (events & EPOLLIN && recv(src->fd, &byte, 1, MSG_DONTWAIT) > 0)
		return;
	if (events & (EPOLLHUP | EPOLLERR | EPOLLIN)) {
		file_end(f);
		return;
	}
	cm_file_tell(f);
}

int cm_file_open(struct cm *c, uint32_t host, int32_t pid, uint64_t *token, int *fd)
{
	struct cm_file *f = calloc(1, sizeof(*f));
	int pair[2], ret;

	if (!f)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		ret = -errno;
		goto free_file;
	}
	*f = (struct cm_file){.sock = {file_ready, pair[0]},
			      .grave.bury = file_free,
			      .cm = c,
			      .host = host,
			      .pid = pid};
	f->events_end = &f->events;
	ret = loop_watch(c->mad->loop, &f->sock, EPOLLIN);
	if (ret)
		goto close_pair;
	f->token = c->next_token++;
	f->next = c->files;
	f->prev = &c->files;
	if (f->next)
		f->next->prev = &f->next;
	c->files = f;
	c->nfiles++;
	*token = f->token;
	*fd = pair[1];
	return 0;

close_pair:
	close(pair[0]);
	close(pair[1]);
free_file:
	free(f);
	return ret;
}

/* ---- the whole ---- */

static enum mad_verdict agent_handle(struct port_agent *a, uint32_t row, struct mad_packet *p)
{
	(void)row;
	cm_take(container_of(a, struct cm, agent), p);
	return MAD_SILENT;
}

void cm_open(struct cm *c, struct mad_fabric *mad)
{
	*c = (struct cm){.mad = mad, .agent.handle = agent_handle, .next_token = 1, .random = 1};
	if (getrandom(&c->random, sizeof(c->random), GRND_NONBLOCK) != sizeof(c->random) ||
	    !c->random)
		c->random = 0x5ca1ab1e;
	c->last_local_id = cm_random(c);
	mad_port_agent(mad, MAD_CLASS_CM, &c->agent);
	cm_groups_open(c);
}

void cm_close(struct cm *c)
{
	while (c->files)
		file_end(c->files);
	cm_early_drop(c);
	cm_groups_close(c);
	cm_sa_close(c);
	cm_ids_free(c);
}
