// SPDX-License-Identifier: BSD-2-Clause
/* The other program, as the host program sees it. */
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define PROGRAM "REMOTE_PEER" /* the environment's word for where the program is */

static void peer_start(struct peer *p, char **argv)
{
	posix_spawn_file_actions_t actions;
	int in[2], out[2];

	CHECK(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC));
	CHECK(!posix_spawn_file_actions_init(&actions));
	CHECK(!posix_spawn_file_actions_adddup2(&actions, in[0], 0) &&
	      !posix_spawn_file_actions_adddup2(&actions, out[1], 1));
	CHECK(!posix_spawn(&p->pid, argv[0], &actions, NULL, argv, environ));
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	p->to = fdopen(in[1], "w");
	p->from = fdopen(out[0], "r");
	CHECK(p->to && p->from);
	setvbuf(p->to, NULL, _IOLBF, 0);
}

void gid_read(const char *hex, union ibv_gid *gid)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned byte = 0;

		CHECK(sscanf(hex + 2 * i, "%2x", &byte) == 1);
		gid->raw[i] = (uint8_t)byte;
	}
}

static void peer_meets_us(struct peer *p)
{
	unsigned long long memory;
	char line[128], gid[33] = "";

	CHECK(fgets(line, sizeof(line), p->from));
	CHECK(sscanf(line, "peer %u %u %u %llu %32s", &p->qpn, &p->lid, &p->rkey, &memory, gid) ==
	      5);
	p->memory = memory;
	gid_read(gid, &p->gid);
}

void peer_up(struct peer *p, bool ethernet, const char *type, const char *host)
{
	const char *own = getenv("SOFTHCA_HOST");
	char *argv[] = {getenv(PROGRAM), ethernet ? "eth" : "ib", strdup(type), NULL};

	memset(p, 0, sizeof(*p));
	CHECK(argv[0] && argv[2]);
	if (host) {
		char *before = strdup(own ? own : "");

		CHECK(before && !setenv("SOFTHCA_HOST", host, 1));
		peer_start(p, argv);
		CHECK(!setenv("SOFTHCA_HOST", before, 1));
		free(before);
	} else {
		peer_start(p, argv);
	}
	free(argv[2]);
	peer_meets_us(p);
}

static void peer_hear(struct peer *p, const char *format, va_list args, char *line, size_t bytes)
{
	vfprintf(p->to, format, args);
	fputc('\n', p->to);
	CHECK(fgets(line, (int)bytes, p->from));
}

void peer_do(struct peer *p, const char *format, ...)
{
	char line[64];
	va_list args;

	va_start(args, format);
	peer_hear(p, format, args, line, sizeof(line));
	va_end(args);
	CHECK_SAY(!strcmp(line, "ok\n"), "%s: %s", format, line);
}

void peer_say(struct peer *p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(p->to, format, args);
	va_end(args);
	fputc('\n', p->to);
}

void peer_obeyed(struct peer *p)
{
	char line[64];

	CHECK(fgets(line, sizeof(line), p->from) && !strcmp(line, "ok\n"));
}

uint64_t peer_ask(struct peer *p, const char *format, ...)
{
	char line[64];
	va_list args;

	va_start(args, format);
	peer_hear(p, format, args, line, sizeof(line));
	va_end(args);
	return strtoull(line, NULL, 0);
}

struct heard peer_wait(struct peer *p)
{
	struct heard h;
	char line[128];

	fputs("wait\n", p->to);
	CHECK(fgets(line, sizeof(line), p->from));
	CHECK(sscanf(line, "%d %d %u %u %u %d", &h.status, &h.opcode, &h.bytes, &h.imm, &h.qpn,
		     &h.grh) == 6);
	return h;
}

void peer_bytes(struct peer *p, uint64_t offset, uint32_t bytes, uint8_t *out)
{
	fprintf(p->to, "bytes %llu %u\n", (unsigned long long)offset, bytes);
	for (uint32_t i = 0; i < bytes; i++) {
		unsigned byte;

		CHECK(fscanf(p->from, "%2x", &byte) == 1);
		out[i] = (uint8_t)byte;
	}
	CHECK(fgetc(p->from) == '\n');
}

void peer_down(struct peer *p)
{
	int status;

	fclose(p->to);
	CHECK(waitpid(p->pid, &status, 0) == p->pid);
	CHECK_SAY(!status, "0x%x", status);
	fclose(p->from);
}

void peer_gone(struct peer *p)
{
	int status;

	CHECK(waitpid(p->pid, &status, 0) == p->pid);
	CHECK_SAY(WIFSIGNALED(status), "0x%x", status);
	fclose(p->to);
	fclose(p->from);
}
