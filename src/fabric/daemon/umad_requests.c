// SPDX-License-Identifier: BSD-2-Clause
/* Requests of programs about their umad and issm files.  A token names a file, because the program
 * that asks need not be the one that opened it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/daemon/answer.h"
#include "fabric/daemon/descriptor.h"

/* Returns the row of the host's fourth port for "umad3", or SUBNET_NONE. */
static uint32_t row_of_name(const struct fabric *f, struct msg_umad_open *r, const char *prefix)
{
	unsigned long number;
	const char *digits = r->name + strlen(prefix);
	int64_t host;
	char *end;

	r->host[sizeof(r->host) - 1] = '\0';
	r->name[sizeof(r->name) - 1] = '\0';
	if (strncmp(r->name, prefix, strlen(prefix)) != 0 || *digits < '0' || *digits > '9')
		return SUBNET_NONE;
	number = strtoul(digits, &end, 10);
	host = fabric_find_host(f, r->host);
	if (host < 0 || *end || number >= f->topology.hosts[host].nports)
		return SUBNET_NONE;
	return f->hosts[host].first_port + (uint32_t)number;
}

int answer_umad_open(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	uint32_t row = row_of_name(f, &m->umad_open, "umad");
	uint64_t token;
	int ret;

	(void)c;
	if (row == SUBNET_NONE)
		return -ENOENT;
	ret = umad_file_open(&f->umad, row, &token, a->fds);
	if (ret)
		return ret;
	m->umad_open_reply.token = token;
	a->n = UMAD_OPEN_FDS;
	a->given = true;
	return 0;
}

static struct umad_file *file_of(struct server *s, uint64_t token)
{
	return umad_file_find(&s->fabric->umad, token);
}

int answer_umad_register(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	const struct msg_umad_register r = m->umad_register;
	struct umad_file *f = file_of(s, r.token);
	uint32_t id;
	int ret;

	(void)c, (void)a;
	if (!f)
		return -ESTALE;
	ret = umad_file_register(f, &r, &id);
	if (!ret)
		m->umad_agent = (struct msg_umad_agent){.token = r.token, .id = id};
	return ret;
}

int answer_umad_unregister(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct umad_file *f = file_of(s, m->umad_agent.token);

	(void)c, (void)a;
	return f ? umad_file_unregister(f, m->umad_agent.id, m->umad_agent.undo != 0) : -ESTALE;
}

int answer_umad_pkey(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct umad_file *f = file_of(s, m->umad_file.token);

	(void)c, (void)a;
	return f ? umad_file_pkey(f) : -ESTALE;
}

int answer_umad_fetch(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	const struct msg_umad_fetch r = m->umad_fetch;
	struct umad_file *f = file_of(s, r.token);
	int ret;

	(void)c;
	if (!f)
		return -ESTALE;
	ret = umad_file_fetch(f, &r, &m->umad_fetch_reply, &a->fds[0]);
	if (ret)
		return ret;
	a->n = 1;
	a->given = true;
	return 0;
}

int answer_umad_in_flight(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct umad_file *f = file_of(s, m->umad_in_flight.token);

	(void)c, (void)a;
	return f ? umad_file_in_flight(f, &m->umad_in_flight) : -ESTALE;
}

/* Adopts a file of which the program has only the descriptor, by execve or from another program. */
int answer_umad_adopt(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	const struct umad_file *file = umad_file_find_inode(&f->umad, m->umad_adopt.inode);
	uint64_t token;
	uint32_t row;
	int ret;

	(void)c;
	if (!file)
		return -ENOENT;
	ret = umad_file_adopt(file, &token, &row, &a->fds[0]);
	if (ret)
		return ret;
	m->umad_adopt_reply = (struct msg_umad_adopt_reply){
		.token = token,
		.number = row - f->hosts[subnet_node_of(&f->subnet, row)->host].first_port,
	};
	a->n = 1;
	a->given = true;
	return 0;
}

/* ---- issm: the reply comes when the token does ---- */

struct issm_request {
	struct issm_waiter waiter;
	struct server *server;
	struct conn *conn;
	uint32_t seq;
};

static void request_free(struct issm_request *r)
{
	r->conn->ended = NULL;
	r->conn->waiting = NULL;
	free(r);
}

static void issm_granted(struct issm_waiter *w, int fd)
{
	struct issm_request *r = container_of(w, struct issm_request, waiter);
	struct msg m = {0};

	msg_prepare(&m, MSG_ISSM_OPEN, MSG_REPLY, r->seq, fd < 0 ? fd : 0);
	conn_send(r->server, r->conn, &m, &fd, fd >= 0);
	if (fd >= 0)
		descriptor_put(fd);
	request_free(r);
}

/* The client that waited has gone. */
static void issm_conn_ended(struct conn *c)
{
	struct issm_request *r = c->waiting;

	issm_wait_end(&r->waiter);
	request_free(r);
}

static int issm_wait_for(struct server *s, struct conn *c, uint32_t row, uint32_t seq)
{
	struct issm_request *r;

	if (c->waiting)
		return -EALREADY;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct issm_request){.waiter = {.row = row, .granted = issm_granted},
				   .server = s,
				   .conn = c,
				   .seq = seq};
	c->waiting = r;
	c->ended = issm_conn_ended;
	issm_wait(&s->fabric->umad, &r->waiter);
	return ANSWER_LATER;
}

/* Opens an issm file; ports of Ethernet have no subnet manager, and so none. */
int answer_issm_open(struct server *s, struct conn *c, struct msg *m, struct attached *a)
{
	struct fabric *f = s->fabric;
	uint32_t row = row_of_name(f, &m->umad_open, "issm");
	int ret;

	if (row == SUBNET_NONE || f->subnet.ports[row].ethernet)
		return -ENOENT;
	ret = issm_open(&f->umad, row, &a->fds[0]);
	if (ret == -EAGAIN && m->umad_open.wait)
		return issm_wait_for(s, c, row, m->head.seq);
	if (ret)
		return ret;
	a->n = 1;
	a->given = true;
	return 0;
}
