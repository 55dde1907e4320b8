// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca status: the objects of running programs.  It asks nothing of a program: look.h says how
 * it reads the figures.  It checks what a program has written, or makes it printable, before it
 * shows it.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/client/link.h"
#include "tool/program_state.h"
#include "tool/status_object.h"

/* What the user asked for. */
struct wanted {
	bool all;
	uint64_t number; /* number of a process or queue pair */
	bool found;
};

static bool wanted_read(const struct session *s, int argc, char **argv, struct wanted *w)
{
	char *end = NULL;

	*w = (struct wanted){.all = !argc};
	if (argc > 1)
		tool_error(s->command, "unexpected argument: %s", argv[1]);
	if (argc != 1)
		return !argc;
	errno = 0;
	w->number = isdigit((unsigned char)argv[0][0]) ? strtoull(argv[0], &end, 0) : 0;
	if (w->number && !*end && !errno)
		return true;
	tool_error(s->command,
		   "'%s' is no number of a process or queue pair, such as 4711 or 0x400", argv[0]);
	return false;
}

static bool has_qp(const struct reach_process *p, uint64_t number)
{
	for (uint32_t row = 0; p && row < OBJECT_ROWS; row++) {
		const struct object_about *a = look_about(p->look, row);

		if (a && a->kind == OBJECT_QP && a->number == number)
			return true;
	}
	return false;
}

/* Selects what to show of a program; false: nothing. */
static bool wanted_select(struct wanted *w, struct status_program *p)
{
	bool shown = w->all || w->number == (uint64_t)p->pid;

	p->only_qp = !shown && has_qp(p->process, w->number) ? (uint32_t)w->number : 0;
	w->found |= shown || p->only_qp;
	return shown || p->only_qp;
}

/* Returns what is wrong with the program itself; NULL: nothing. */
static const char *program_trouble(const struct status_program *p)
{
	if (!p->process)
		return "the daemon knows the process, and nothing more is known of it";
	if (p->process->look->end == LOOK_HELD_UP)
		return "it holds up who reads its memory: what is shown may not be all";
	if (p->process->look->error)
		return "its memory may not be read: the figures of its objects are not known";
	return NULL;
}

static void program_print(const struct status_program *p)
{
	const char *trouble = program_trouble(p);

	printf("pid %d %s, %s, %s\n", p->pid, p->command, p->host, p->state);
	if (trouble)
		printf("  %s\n", trouble);
	if (p->process)
		status_objects_print(p);
}

static void program_json(const struct status_program *p, struct json *j)
{
	const char *trouble = program_trouble(p);

	json_open(j, NULL, '{');
	json_number(j, "pid", (uint64_t)p->pid);
	json_string(j, "command", p->command);
	json_string(j, "host", p->host);
	json_string(j, "state", p->state);
	if (trouble)
		json_string(j, "trouble", trouble);
	if (p->process)
		status_objects_json(p, j);
	json_close(j, '}');
}

static void programs_show(struct view *v, const struct reach *r, struct wanted *w, struct json *j)
{
	int fds[MSG_MAX_FDS];

	for (uint32_t i = 0; i < REGISTRY_SLOTS; i++) {
		struct msg m = {.index.index = i};
		struct status_program p = {.view = v, .reach = r, .process = reach_find(r, i)};
		struct msg_host_reply host;

		if (link_call(v->sock, &m, MSG_SLOT, fds) || !m.slot_reply.used ||
		    !view_host(v, m.slot_reply.host, &host))
			continue;
		p.pid = m.slot_reply.pid;
		p.host = host.name;
		p.state = program_state(p.pid, p.command, sizeof(p.command));
		if (!wanted_select(w, &p))
			continue;
		if (j)
			program_json(&p, j);
		else
			program_print(&p);
	}
}

static int status_show(const struct session *s, struct view *v, struct wanted *w)
{
	struct reach *r = malloc(sizeof(*r));
	struct json json = {stdout, true}, *j = s->json ? &json : NULL;

	if (!r || !reach_open(v, r)) {
		tool_error(s->command, "the programs of fabric '%s' cannot be looked at",
			   s->fabric);
		free(r);
		return EXIT_OURS;
	}
	if (j) {
		json_open(j, NULL, '{');
		json_string(j, "fabric", s->fabric);
		json_open(j, "programs", '[');
	}
	programs_show(v, r, w, j);
	if (j) {
		json_close(j, ']');
		json_close(j, '}');
		putchar('\n');
	}
	reach_close(r);
	free(r);
	if (w->found)
		return 0;
	if (!w->all) {
		tool_error(s->command,
			   "fabric '%s' has no process or queue pair %" PRIu64 " (0x%" PRIx64
			   "); 'softhca status' lists them",
			   s->fabric, w->number, w->number);
		return EXIT_NOTHING;
	}
	if (!j)
		printf("no program has a device of fabric %s open\n", s->fabric);
	return 0;
}

int command_status(struct session *s, int argc, char **argv)
{
	struct wanted w;
	struct view v;
	int status;

	if (!wanted_read(s, argc, argv, &w))
		return EXIT_USAGE;
	if (!view_open(s, false, &v))
		return EXIT_OURS;
	status = status_show(s, &v, &w);
	view_close(&v);
	return status;
}
