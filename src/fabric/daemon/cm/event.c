// SPDX-License-Identifier: BSD-2-Clause
/* Events: how they wait, how programs hear of them and take them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fabric/daemon/cm/id.h"

#define EVENTS_MOST (2 * CM_IDS) /* that wait in one file */

struct cm_event *cm_event_make(struct cm_id *id, enum cm_event_type type, int status)
{
	struct cm_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->id = id;
	e->body.uid = id->uid;
	e->body.id = id->number;
	e->body.event = type;
	e->body.status = (uint32_t)status;
	return e;
}

/* A byte in the program's pipe for each event.  The process ignores SIGPIPE. */
void cm_file_tell(struct cm_file *f)
{
	while (f->owed && write(f->pipe.fd, "", 1) == 1)
		f->owed--;
	(void)loop_rewatch(f->cm->mad->loop, &f->pipe, f->owed ? EPOLLOUT : 0);
}

void cm_file_untell(struct cm_file *f, uint32_t n)
{
	const uint32_t unsent = f->owed < n ? f->owed : n;
	uint8_t bytes[256];
	char name[32];
	ssize_t got;
	int fd;

	f->owed -= unsent;
	n -= unsent;
	if (!n)
		return;
	/* The daemon has no reading end: it could not see then that the program's is closed. */
	snprintf(name, sizeof(name), "/proc/self/fd/%d", f->pipe.fd);
	fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	while (n && (got = read(fd, bytes, n < sizeof(bytes) ? n : sizeof(bytes))) > 0)
		n -= (uint32_t)got;
	close(fd);
}

bool cm_event_queue(struct cm_event *e)
{
	struct cm_file *f = e->id->file;

	/* The peer may give up before the program has accepted; and a program that reads nothing has no
	 * more than so many.  Requests have ids of their own, of which there are few enough. */
	if (e->body.event != CM_CONNECT_REQUEST && (!e->id->uid || f->nevents >= EVENTS_MOST)) {
		free(e);
		return false;
	}
	*f->events_end = e;
	f->events_end = &e->next;
	f->nevents++;
	f->owed++;
	cm_file_tell(f);
	return true;
}

void cm_event_tell(struct cm_id *id, enum cm_event_type type, int status)
{
	struct cm_event *e = cm_event_make(id, type, status);

	if (e)
		cm_event_queue(e);
}

/* Takes the event at that place out of its file's queue. */
static struct cm_event *event_unlink(struct cm_file *f, struct cm_event **at)
{
	struct cm_event *e = *at;

	*at = e->next;
	if (f->events_end == &e->next)
		f->events_end = at;
	e->next = NULL;
	f->nevents--;
	return e;
}

int cm_event_take(struct cm_file *f, struct rdma_ucm_event_resp *out)
{
	struct cm_event *e;

	if (!f->events)
		return -EAGAIN;
	e = event_unlink(f, &f->events);
	*out = e->body;
	e->id->events_taken++;
	if (e->group)
		e->group->events_taken++;
	if (e->fresh && e->fresh->listener) {
		e->fresh->listener->backlog++;
		e->fresh->listener = NULL;
	}
	free(e);
	return 0;
}

uint32_t cm_events_drop(struct cm_id *id, void (*unheard)(struct cm_id *fresh))
{
	struct cm_file *f = id->file;
	struct cm_event **at = &f->events;
	uint32_t n = 0;

	while (*at) {
		struct cm_event *e = *at;

		if (e->id != id && e->fresh != id) {
			at = &e->next;
			continue;
		}
		e = event_unlink(f, at);
		n++;
		if (e->fresh && e->fresh != id) {
			/* A request that nobody has taken is refused with its listener.  That id has
			 * no events, so the list stays as it is. */
			e->fresh->listener = NULL;
			unheard(e->fresh);
		}
		free(e);
	}
	return n;
}

uint32_t cm_events_drop_group(struct cm_group *g)
{
	struct cm_file *f = g->id->file;
	struct cm_event **at = &f->events;
	uint32_t n = 0;

	while (*at) {
		if ((*at)->group == g) {
			free(event_unlink(f, at));
			n++;
		} else {
			at = &(*at)->next;
		}
	}
	return n;
}

uint32_t cm_events_move(struct cm_id *id, struct cm_file *to)
{
	struct cm_file *f = id->file;
	struct cm_event **at = &f->events;
	uint32_t n = 0;

	id->file = to;
	while (*at) {
		struct cm_event *e = *at;

		if (e->id != id) {
			at = &e->next;
			continue;
		}
		e = event_unlink(f, at);
		if (e->fresh)
			e->fresh->file = to;
		*to->events_end = e;
		to->events_end = &e->next;
		to->nevents++;
		to->owed++;
		n++;
	}
	cm_file_tell(to);
	return n;
}
