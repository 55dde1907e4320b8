// SPDX-License-Identifier: BSD-2-Clause
/* See victim.h. */
#include "victim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOME_DATA 5000u	  /* of several packets */
#define LONG_DATA 100000u /* more than goes without a file */

struct victim victim_open(void)
{
	return (struct victim){
		.p = pair_open(1),
		.lid = lid_of(2),
		.tid = 1,
		.letter = letter_with_data(lid_of(2), 1, SOME_DATA),
		.long_letter = letter_with_data(lid_of(2), 1, LONG_DATA),
	};
}

int issm_file(unsigned port, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/issm%u", port - 1);
	fd = open(path, O_RDONLY | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

static void opens(struct victim *v)
{
	(void)v;
	port_close(port_file(1));
}

static void registers(struct victim *v)
{
	struct agent a = server_of(CLASS_PLAIN, METHOD_GET);

	must(port_unregister(v->p.client, port_agent(v->p.client, a)) == 0, "unregister");
}

/* Nobody answers, and nobody reads that. */
static void writes(struct victim *v)
{
	struct letter l = letter_to(v->lid, CLASS_VENDOR, METHOD_GET, 0, v->tid++);

	l.id = v->p.client_id;
	l.timeout_ms = 1;
	l.retries = 1;
	(void)port_send(v->p.client, &l);
	letter_free(&l);
}

static void writes_letter(struct victim *v, struct letter *l)
{
	for (unsigned i = 0; i < 4; i++)
		l->mad[12 + i] = (uint8_t)(v->tid >> (24 - 8 * i));
	v->tid++;
	l->id = v->p.client_id;
	l->timeout_ms = 1000;
	(void)port_send(v->p.client, l);
}

static void writes_long(struct victim *v)
{
	writes_letter(v, &v->long_letter);
}

static void reads_long(struct victim *v)
{
	struct letter got;

	writes_letter(v, &v->letter);
	must(port_receive(v->p.server, &got, SOME_DATA + MAD_BYTES) == 0, "receive");
	letter_free(&got);
}

static void reads(struct victim *v)
{
	struct letter l =
		letter_to_self(port_agent(v->p.client, agent_of(CLASS_DIRECTED)), v->tid++);
	struct letter got;

	letter_is_sent(v->p.client, &l);
	got = letter_received(v->p.client);
	port_unregister(v->p.client, l.id);
	letter_free(&l);
	letter_free(&got);
}

/* For ever. */
static void waits_for_mads(struct victim *v)
{
	uint8_t bytes[NEW_HEADER + MAD_BYTES];

	must(fcntl(v->p.server, F_SETFL, 0) == 0, "fcntl");
	(void)!read(v->p.server, bytes, sizeof(bytes));
}

static void takes_issm(struct victim *v)
{
	int fd = issm_file(1, 0);

	(void)v;
	must(fd >= 0, "issm: %s", strerror(-fd));
	close(fd);
}

/* The other process holds it. */
static void waits_for_issm(struct victim *v)
{
	(void)v;
	issm_file(2, 0);
}

/* Both processes have the files, and both are killed. */
static void forks(struct victim *v)
{
	pid_t child = fork();

	if (child == 0) {
		writes(v);
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

const struct operation operations[OPERATIONS] = {
	{"opens", opens, true},
	{"registers", registers, true},
	{"writes", writes, true},
	{"writes a long message", writes_long, true},
	{"reads a long message", reads_long, true},
	{"reads", reads, true},
	{"takes issm", takes_issm, true},
	{"forks", forks, false},
	{"waits for MADs", waits_for_mads, false},
	{"waits for issm", waits_for_issm, false},
};

/* ---- what must be free again ---- */

/* What is taken to see it is given back by requests, which are over when they return; a close is seen
 * when the daemon looks. */
static bool agent_is_free(unsigned port, uint32_t class, uint8_t method)
{
	struct agent a = server_of(class, method);
	int fd = port_file(port), id = port_register(fd, &a);

	if (id >= 0)
		must(port_unregister(fd, (uint32_t)id) == 0, "unregister");
	port_close(fd);
	return id >= 0;
}

static bool issm_is_free(unsigned port)
{
	int fd = issm_file(port, O_NONBLOCK);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool all_is_free(void)
{
	return !issm_bit_of(1) && !issm_bit_of(2) && agent_is_free(2, CLASS_VENDOR, METHOD_SEND) &&
	       agent_is_free(2, CLASS_VENDOR, METHOD_GET) &&
	       agent_is_free(1, CLASS_PLAIN, METHOD_GET) && issm_is_free(1) && issm_is_free(2);
}
