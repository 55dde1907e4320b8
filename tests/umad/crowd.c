// SPDX-License-Identifier: BSD-2-Clause
/*
 * Very many agents, and programs that do not read what comes for them, on a host with two ports.
 * Usage: crowd_mads agents     1,024 that are asked, in 32 files
 *        crowd_mads deaf       a program that sleeps leaves 30,000 MADs unread
 *        crowd_mads stopped    one that has been stopped
 *        crowd_mads reports    one whose own sends time out
 */
#include "checklist.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/umad.h"

#define SERVER_FILES 32u
#define SERVERS	     (SERVER_FILES * UMAD_AGENTS)
#define CLASSES	     32u /* from CLASS_FIRST on; of each so many OUIs, and so many methods */
#define CLASS_FIRST  0x30u
#define OUIS	     8u
#define UNREAD	     30000u
#define FIRST_TID    0x1000u
#define NAPS	     (WAIT_MS / 10) /* of 10 ms */
#define GOOD_OUI     0x4711u
#define DEAF_OUI     0x4712u
#define AT_THE_LIMIT 200u /* so often */
#define SOME_REPORTS 500u

static struct letter letter_for(uint16_t lid, uint32_t class, uint32_t oui, uint8_t method,
				uint64_t tid)
{
	struct letter l = letter_to(lid, class, method, 0, tid);

	l.mad[37] = (uint8_t)(oui >> 16);
	l.mad[38] = (uint8_t)(oui >> 8);
	l.mad[39] = (uint8_t)oui;
	return l;
}

static uint32_t server_at(int fd, uint32_t class, uint32_t oui, uint8_t method)
{
	struct agent a = server_of(class, method);

	a.oui = oui;
	return port_agent(fd, a);
}

/* The server answers what it has got. */
static void answer(int fd, struct letter *l)
{
	l->mad[3] |= RESPONSE_BIT;
	letter_is_sent(fd, l);
	letter_free(l);
}

/* ---- many agents ---- */

static int servers[SERVER_FILES];
static uint32_t ids[SERVERS];

static uint32_t class_of(unsigned server)
{
	return CLASS_FIRST + server % CLASSES;
}

static uint32_t oui_of(unsigned server)
{
	return GOOD_OUI + server / CLASSES % OUIS;
}

static uint8_t method_of(unsigned server)
{
	static const uint8_t methods[] = {0x01, 0x02, 0x03, 0x05};

	return methods[server / CLASSES / OUIS];
}

static void servers_open(void)
{
	for (unsigned i = 0; i < SERVERS; i++) {
		int *fd = &servers[i / UMAD_AGENTS];

		if (i % UMAD_AGENTS == 0)
			*fd = port_file(2);
		ids[i] = server_at(*fd, class_of(i), oui_of(i), method_of(i));
	}
}

static void server_is_asked(int client, uint32_t id, unsigned server)
{
	struct letter l = letter_for(lid_of(2), class_of(server), oui_of(server), method_of(server),
				     FIRST_TID + server);

	l.id = id;
	l.timeout_ms = WAIT_MS;
	letter_is_sent(client, &l);
	letter_free(&l);
}

static void server_answers(unsigned file, unsigned *server)
{
	struct letter l = letter_received(servers[file]);

	*server = (uint32_t)letter_tid(&l) - FIRST_TID;
	must(*server < SERVERS && *server / UMAD_AGENTS == file && l.id == ids[*server],
	     "agent %u of file %u got what is for agent %u", l.id, file, *server);
	answer(servers[file], &l);
}

static unsigned answer_arrives(int client)
{
	struct letter l = letter_received(client);
	unsigned server = (uint32_t)letter_tid(&l) - FIRST_TID;

	must(l.status == 0 && server < SERVERS && l.mad[1] == class_of(server), "status %u, TID %u",
	     l.status, server);
	letter_free(&l);
	return server;
}

/* One at a time; all at once, in an order that is none; and again after all files were closed. */
static void many_agents(void)
{
	int client = port_file(1);
	static bool seen[SERVERS];
	uint32_t id[CLASSES];
	unsigned server;

	for (unsigned i = 0; i < CLASSES; i++)
		id[i] = port_agent(
			client,
			(struct agent){.qpn = 1, .class = class_of(i), .version = 1, .oui = 1});
	servers_open();
	for (unsigned i = 0; i < SERVERS; i++) {
		server_is_asked(client, id[i % CLASSES], i);
		server_answers(i / UMAD_AGENTS, &server);
		must(server == i && answer_arrives(client) == i, "agent %u", i);
	}
	for (unsigned i = 0; i < SERVERS; i++)
		server_is_asked(client, id[i * 37 % SERVERS % CLASSES], i * 37 % SERVERS);
	for (unsigned i = 0; i < SERVERS; i++)
		server_answers(i / UMAD_AGENTS, &server);
	for (unsigned i = 0; i < SERVERS; i++) {
		server = answer_arrives(client);
		must(!seen[server], "agent %u twice", server);
		seen[server] = true;
	}
	for (unsigned i = 0; i < SERVER_FILES; i++)
		must(port_close(servers[i]) == 0, "close");
	servers_open();
	server_is_asked(client, id[0], 0);
	server_answers(0, &server);
	answer_arrives(client);
}

/* ---- those who do not read ---- */

/* What the daemon says of this process's only file. */
static const struct umad_page *page_of_file(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	const struct umad_page *found = NULL;
	char line[512];

	must(maps != NULL, "maps");
	while (!found && fgets(line, sizeof(line), maps))
		if (strstr(line, "softhca-umad-page"))
			found = (const struct umad_page *)strtoul(line, NULL, 16);
	fclose(maps);
	must(found && found->magic == UMAD_MAGIC, "no page is mapped");
	return found;
}

struct deaf {
	pid_t pid;
	int wake[2], told[2];
};

/* All that was kept, and one more that comes after that. */
static void deaf_reads(int fd, const struct deaf *d)
{
	const struct umad_page *page = page_of_file();
	uint32_t got = 0;
	char c = 0;

	for (unsigned nap = 0; got + page->dropped < UNREAD; nap++) {
		while (port_waits(fd)) {
			struct letter l = letter_received(fd);

			letter_free(&l);
			got++;
			nap = 0;
		}
		must(nap < NAPS, "%u read, %lu dropped", got, (unsigned long)page->dropped);
		usleep(10000);
	}
	must(got + page->dropped == UNREAD && got >= UMAD_MOST_RECEIVED && page->dropped,
	     "%u read, %lu dropped", got, (unsigned long)page->dropped);
	must(write(d->told[1], &c, 1) == 1, "pipe");
	letter_received(fd);
}

static struct deaf deaf_begin(void)
{
	struct deaf d;
	char c = 0;

	must(pipe(d.wake) == 0 && pipe(d.told) == 0, "pipe");
	d.pid = fork();
	must(d.pid >= 0, "fork");
	if (d.pid == 0) {
		int fd = port_file(2);

		server_at(fd, CLASS_VENDOR, DEAF_OUI, METHOD_SEND);
		must(write(d.told[1], &c, 1) == 1 && read(d.wake[0], &c, 1) == 1, "pipe");
		deaf_reads(fd, &d);
		_exit(0);
	}
	must(read(d.told[0], &c, 1) == 1, "it has ended");
	return d;
}

/* Others exchange letters meanwhile. */
static void not_read(bool stopped)
{
	struct deaf d = deaf_begin();
	int client = port_file(1), good = port_file(2), status;
	uint16_t lid = lid_of(2);
	uint32_t id = port_agent(client, agent_of(CLASS_VENDOR));
	struct letter l = letter_for(lid, CLASS_VENDOR, DEAF_OUI, METHOD_SEND, 1);
	char c = 0;

	server_at(good, CLASS_VENDOR, GOOD_OUI, METHOD_GET);
	l.id = id;
	if (stopped)
		must(kill(d.pid, SIGSTOP) == 0 && waitpid(d.pid, &status, WUNTRACED) == d.pid &&
			     WIFSTOPPED(status),
		     "stop");
	for (unsigned i = 1; i <= UNREAD; i++) {
		struct letter q, got;

		letter_is_sent(client, &l);
		if (i % 500)
			continue;
		q = letter_for(lid, CLASS_VENDOR, GOOD_OUI, METHOD_GET, i);
		q.id = id;
		q.timeout_ms = WAIT_MS;
		letter_is_sent(client, &q);
		got = letter_received(good);
		answer(good, &got);
		got = letter_received(client);
		must(got.status == 0 && (uint32_t)letter_tid(&got) == i, "letter %u", i);
		letter_free(&q);
		letter_free(&got);
	}
	if (stopped)
		must(kill(d.pid, SIGCONT) == 0, "continue");
	must(write(d.wake[1], &c, 1) == 1 && read(d.told[0], &c, 1) == 1, "it has ended");
	letter_is_sent(client, &l);
	must(waitpid(d.pid, &status, 0) == d.pid && status == 0, "it ended with %#x", status);
}

/* ---- reports of timeouts ---- */

static uint32_t sends_under_way(const struct umad_page *page)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < UMAD_IN_FLIGHT; i++)
		n += page->in_flight[i];
	return n;
}

struct reported {
	int fd;
	uint32_t id, sent, got;
};

/* Until one is refused. */
static void reported_send(struct reported *r, const struct umad_page *page, uint32_t most)
{
	int error = 0;

	while (!error) {
		struct letter l = letter_to(NO_SUCH_LID, CLASS_VENDOR, METHOD_GET, 0, r->sent);

		l.id = r->id;
		l.timeout_ms = 1;
		error = port_send(r->fd, &l);
		letter_free(&l);
		r->sent += !error;
		must(r->sent - r->got < most, "%u sends, %u read, and no end", r->sent, r->got);
		/* What is refused must be because of reports. */
		for (unsigned nap = 0; r->sent % 4096 == 0 && sends_under_way(page); nap++) {
			must(nap < NAPS, "sends do not end");
			usleep(10000);
		}
	}
	must(error == -ENOMEM, "%u sends, %u read, errno %d", r->sent, r->got, -error);
}

static void reported_read(struct reported *r, uint32_t most)
{
	while (r->got < most) {
		struct letter l = letter_received(r->fd);

		must(l.status == ETIMEDOUT, "report %u: status %u", r->got, l.status);
		letter_free(&l);
		r->got++;
	}
}

/* They wait without a limit of their own, and so a program that sends on is refused in the end.  What was
 * not refused is reported, also if it was sent in the moment in which others timed out. */
static void unread_reports(void)
{
	struct reported r = {.fd = port_file(1)};
	const struct umad_page *page = page_of_file();

	r.id = port_agent(r.fd, agent_of(CLASS_VENDOR));
	reported_send(&r, page, 2 * UMAD_MOST_SENDS);
	must(r.sent >= UMAD_MOST_SENDS, "refused after %u", r.sent);
	for (unsigned i = 0; i < AT_THE_LIMIT; i++) {
		reported_read(&r, r.got + SOME_REPORTS);
		reported_send(&r, page, 2 * UMAD_MOST_SENDS);
	}
	reported_read(&r, r.sent);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	alarm(120);
	if (strcmp(what, "agents") == 0)
		many_agents();
	else if (strcmp(what, "deaf") == 0 || strcmp(what, "stopped") == 0)
		not_read(what[0] == 's');
	else if (strcmp(what, "reports") == 0)
		unread_reports();
	else
		failed(__FILE__, __LINE__, "see the head of crowd.c");
	return 0;
}
