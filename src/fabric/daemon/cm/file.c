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

/* ---- ids ---- */

struct cm_id *cm_id_find(const struct cm *c, uint32_t number)
{
	return c->ids && number < CM_IDS ? c->ids[number] : NULL;
}

struct cm_id *cm_id_next(const struct cm *c, uint32_t from)
{
	for (uint32_t word = from / 64; c->ids && word < CM_IDS / 64; word++) {
		uint64_t bits = c->used[word];

		if (word == from / 64)
			bits &= ~0ull << from % 64;
		if (bits)
			return c->ids[word * 64 + (uint32_t)__builtin_ctzll(bits)];
	}
	return NULL;
}

/* The lowest number that is free, or CM_IDS. */
static uint32_t number_free(const struct cm *c)
{
	for (uint32_t word = 0; word < CM_IDS / 64; word++)
		if (~c->used[word])
			return word * 64 + (uint32_t)__builtin_ctzll(~c->used[word]);
	return CM_IDS;
}

struct cm_id *cm_id_make(struct cm_file *f)
{
	struct cm *c = f->cm;
	const uint32_t number = number_free(c);
	struct cm_id *id;

	if (!c->ids)
		c->ids = calloc(CM_IDS, sizeof(*c->ids));
	id = c->ids && number < CM_IDS ? calloc(1, sizeof(*id)) : NULL;
	if (!id)
		return NULL;
	id->cm = c;
	id->file = f;
	id->number = number;
	id->row = id->peer_row = SUBNET_NONE;
	id->local_id = ++c->generation << 16 | number;
	id->timer.fire = cm_timer_fired;
	c->ids[number] = id;
	c->used[number / 64] |= 1ull << number % 64;
	return id;
}

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

	(void)cm_events_drop(id);
	cm_connection_end(id);
	while (id->groups)
		cm_leave(id->groups);
	loop_timer_cancel(c->mad->loop, &id->timer);
	listener_forget(id);
	c->ids[id->number] = NULL;
	c->used[id->number / 64] &= ~(1ull << id->number % 64);
	free(id);
}

uint32_t cm_random(struct cm *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 17;
	c->random ^= c->random << 5;
	return c->random;
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
	for (uint32_t number = 0; (id = cm_id_next(c, number));) {
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

struct cm_file *cm_file_find(const struct cm *c, uint64_t token)
{
	struct cm_file *f = c->files;

	while (f && f->token != token)
		f = f->next;
	return f;
}

int cm_file_open(struct cm *c, uint32_t host, uint64_t *token, int *fd)
{
	struct cm_file *f = calloc(1, sizeof(*f));
	int pair[2], ret;

	if (!f)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		ret = -errno;
		goto free_file;
	}
	*f = (struct cm_file){
		.sock = {file_ready, pair[0]}, .grave.bury = file_free, .cm = c, .host = host};
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
	mad_port_agent(mad, MAD_CLASS_CM, &c->agent);
}

void cm_close(struct cm *c)
{
	while (c->files)
		file_end(c->files);
	cm_early_drop(c);
	free(c->ids);
	c->ids = NULL;
}
