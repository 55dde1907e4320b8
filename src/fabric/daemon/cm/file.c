// SPDX-License-Identifier: BSD-2-Clause
/* Files of programs, and the ids in them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
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
	close(f->pipe.fd);
	loop_bury(c->mad->loop, &f->grave);
}

/* A pipe that nobody can read any more has been closed by all. */
static void file_ready(struct loop *l, struct source *src, uint32_t events)
{
	struct cm_file *f = container_of(src, struct cm_file, pipe);

	(void)l;
	if (events & (EPOLLHUP | EPOLLERR))
		file_end(f);
	else
		cm_file_tell(f);
}

/* Makes the pipe; only the daemon's end never waits. */
static int pipe_make(struct cm_file *f, int ends[2])
{
	struct stat st;
	int error;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	if (!fcntl(ends[1], F_SETFL, O_NONBLOCK) && !fstat(ends[0], &st)) {
		f->inode = st.st_ino;
		return 0;
	}
	error = -errno;
	close(ends[0]);
	close(ends[1]);
	return error;
}

bool cm_is_file(const struct cm *c, uint64_t inode)
{
	const struct cm_file *f = c->files;

	while (f && f->inode != inode)
		f = f->next;
	return f;
}

int cm_file_open(struct cm *c, uint32_t host, int32_t pid, uint64_t *token, int *fd)
{
	struct cm_file *f = calloc(1, sizeof(*f));
	int ends[2], ret;

	if (!f)
		return -ENOMEM;
	ret = pipe_make(f, ends);
	if (ret)
		goto free_file;
	f->pipe = (struct source){file_ready, ends[1]};
	f->grave.bury = file_free;
	f->cm = c;
	f->host = host;
	f->pid = pid;
	f->events_end = &f->events;
	ret = loop_watch(c->mad->loop, &f->pipe, 0);
	if (ret)
		goto close_ends;
	f->token = c->next_token++;
	f->next = c->files;
	f->prev = &c->files;
	if (f->next)
		f->next->prev = &f->next;
	c->files = f;
	c->nfiles++;
	*token = f->token;
	*fd = ends[0];
	return 0;

close_ends:
	close(ends[0]);
	close(ends[1]);
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
	*c = (struct cm){.mad = mad, .agent.handle = agent_handle, .random = 1};
	if (getrandom(&c->random, sizeof(c->random), GRND_NONBLOCK) != sizeof(c->random) ||
	    !c->random)
		c->random = 0x5ca1ab1e;
	c->last_local_id = cm_random(c);
	/* A file of a daemon that has died must not be taken for one of this one. */
	c->next_token = (uint64_t)cm_random(c) << 32 | cm_random(c) | 1;
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
