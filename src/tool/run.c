// SPDX-License-Identifier: BSD-2-Clause
/*
 * softhca run and softhca env.  run becomes the program itself, so process, terminal, signals and
 * exit status are the program's own.  Of run only an open connection to the daemon stays: the
 * program and its children inherit it, and it holds the fabric until the last of them has ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/client/link.h"
#include "tool/mount_view.h"
#include "tool/tool.h"
#include "tool/undo.h"

#define PRELOAD	      "LD_PRELOAD"
#define VALGRIND      "VALGRIND_OPTS"
#define VALGRIND_FAIR "--fair-sched=try"

/* Our library goes before what the user preloads, so that its view of paths is the outermost. */
static char *preload_value(const struct session *s)
{
	const char *old = getenv(PRELOAD);
	size_t n = strlen(s->preload);
	char *value;

	if (!n) {
		session_missing_part(s, "libsofthca-preload.so");
		return NULL;
	}
	/* ld.so(8): separated by spaces or colons, and there is no escaping. */
	if (strpbrk(s->preload, " :")) {
		tool_error(s->command, "the dynamic linker cannot preload '%s': blank or colon",
			   s->preload);
		return NULL;
	}
	if (!old || !*old)
		return strdup(s->preload);
	if (!strncmp(old, s->preload, n) && (!old[n] || old[n] == ':' || old[n] == ' '))
		return strdup(old);
	if (asprintf(&value, "%s:%s", s->preload, old) < 0)
		return NULL;
	return value;
}

/*
 * Valgrind runs one thread at a time.  By default luck decides which: a program that polls keeps
 * the device's thread waiting for seconds.  What the user has chosen comes later and so wins.
 * NULL: no memory.
 */
static char *valgrind_value(void)
{
	const char *old = getenv(VALGRIND);
	char *value;

	if (!old || !*old)
		return strdup(VALGRIND_FAIR);
	if (!strncmp(old, VALGRIND_FAIR, strlen(VALGRIND_FAIR)))
		return strdup(old);
	if (asprintf(&value, VALGRIND_FAIR " %s", old) < 0)
		return NULL;
	return value;
}

/* Sets what the environment tells the program. */
static bool environment_set(const struct session *s, const char *host, const char *preload)
{
	char *valgrind = valgrind_value();
	bool set = valgrind && !setenv(VALGRIND, valgrind, 1) && !setenv(PRELOAD, preload, 1) &&
		   !setenv("SOFTHCA_DIR", s->dir, 1) && !setenv("SOFTHCA_HOST", host, 1) &&
		   !setenv("SOFTHCA_DAEMON", s->daemon, 1) &&
		   (!s->reports || !setenv("SOFTHCA_SIGNATURE_REPORTS", s->reports, 1)) &&
		   (!s->timing || !setenv("SOFTHCA_TIMING", s->timing, 1)) &&
		   (!s->memory || !setenv("SOFTHCA_MEMORY", s->memory, 1)) &&
		   (!s->trace || !setenv("SOFTHCA_TRACE", s->trace, 1)) &&
		   (!s->explain || !setenv("SOFTHCA_EXPLAIN", "1", 1));

	free(valgrind);
	return set;
}

int command_run(struct session *s, int argc, char **argv)
{
	char path[TOOL_PATH_BYTES];
	struct msg_host_reply host;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int sock, status;
	char *preload;

	if (!argc) {
		tool_error(s->command, "run what? See softhca run --help");
		return EXIT_USAGE;
	}
	status = program_find(s, argv[0], path, sizeof(path));
	if (!status && s->gdb)
		status = program_find(s, "gdb", path, sizeof(path));
	if (status)
		return status;
	preload = preload_value(s);
	if (!preload)
		return EXIT_OURS;
	argv = debugger_arguments(s, path, argc, argv);
	if (!argv) {
		tool_error(s->command, "%s", strerror(ENOMEM));
		free(preload);
		return EXIT_OURS;
	}
	status = EXIT_OURS;
	sock = session_link(s, true, &m, MSG_LEASE, fds);
	if (sock < 0)
		goto free_preload;
	if (!session_host(s, sock, &host))
		goto close_sock;
	if (!environment_set(s, host.name, preload)) {
		tool_error(s->command, "%s", strerror(errno));
		goto close_sock;
	}
	sock = link_raise(sock);
	status = s->mount ? mount_view_enter(s, host.name) : 0;
	if (status)
		goto close_sock;
	execvp(path, argv);
	status = errno == ENOENT ? EXIT_NO_PROGRAM : EXIT_CANNOT_RUN;
	tool_error(s->command, "%s: %s", path, strerror(errno));
close_sock:
	close(sock);
free_preload:
	free(preload);
	return status;
}

int command_env(struct session *s, int argc, char **argv)
{
	struct msg_host_reply host;
	int fds[MSG_MAX_FDS];
	struct msg m = {0};
	int sock, status = EXIT_OURS;
	char *preload, *valgrind;

	if (argc) {
		tool_error(s->command, "unexpected argument: %s", argv[0]);
		return EXIT_USAGE;
	}
	if (s->unset)
		return undo_print(s);
	undo_remember();
	preload = preload_value(s);
	if (!preload)
		return EXIT_OURS;
	valgrind = valgrind_value();
	if (!valgrind) {
		tool_error(s->command, "%s", strerror(ENOMEM));
		goto free_preload;
	}
	/* Finds a missing host now, before each program finds it later. */
	sock = session_link(s, true, &m, MSG_LEASE, fds);
	if (sock < 0)
		goto free_valgrind;
	if (!session_host(s, sock, &host))
		goto close_sock;
	undo_record();
	undo_export("SOFTHCA_DIR", s->dir);
	undo_export("SOFTHCA_HOST", host.name);
	undo_export("SOFTHCA_DAEMON", s->daemon);
	if (s->model)
		undo_export("SOFTHCA_MODEL", s->model);
	if (s->links)
		undo_export("SOFTHCA_LINK_TYPES", s->links);
	if (s->reports)
		undo_export("SOFTHCA_SIGNATURE_REPORTS", s->reports);
	if (s->timing)
		undo_export("SOFTHCA_TIMING", s->timing);
	if (s->memory)
		undo_export("SOFTHCA_MEMORY", s->memory);
	if (s->trace)
		undo_export("SOFTHCA_TRACE", s->trace);
	if (s->explain)
		undo_export("SOFTHCA_EXPLAIN", "1");
	undo_export(VALGRIND, valgrind);
	undo_export(PRELOAD, preload);
	if (!fflush(stdout))
		status = 0;
close_sock:
	close(sock);
free_valgrind:
	free(valgrind);
free_preload:
	free(preload);
	return status;
}
