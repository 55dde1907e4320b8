// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files of faults: rules in the words of softhca fabric impair, softhca inject and softhca fabric port, with
 * times (docs/faults.md).  All of a file is checked before anything of it happens.
 *
 * The player is the process that was asked for: the parent of the program, or the command itself.  What
 * it has set belongs to its connection, and the daemon takes it away when that ends, however it ends.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "fabric/client/link.h"
#include "tool/fault.h"
#include "tool/toml.h"

#define ENTRIES_MAX 256u
#define WORDS_MAX   32
#define WORDS_BYTES 512u
#define WHY_BYTES   256u
#define AT_MAX_S    1e6
#define WHERE_BYTES 512u
#define LOOK_NS	    100000000u /* how often it looks for rules that have done something */

enum entry_kind { ENTRY_NONE, ENTRY_IMPAIR, ENTRY_INJECT, ENTRY_PORT, ENTRY_KINDS };

/* The keys of a rule's words, and the commands whose words they are. */
static const struct {
	const char *key, *command;
} kinds[ENTRY_KINDS] = {
	[ENTRY_IMPAIR] = {"impair", "softhca fabric impair"},
	[ENTRY_INJECT] = {"inject", "softhca inject"},
	[ENTRY_PORT] = {"port", "softhca fabric port"},
};

struct entry {
	unsigned line;
	bool has_at, has_until, has_why;
	enum entry_kind kind;
	uint64_t at_ns, until_ns; /* from the start on; until: if has_until */
	char text[WORDS_BYTES];	  /* as in the file */
	char why[WHY_BYTES];
	char where[WHERE_BYTES]; /* FILE:LINE */
	char words[WORDS_BYTES]; /* text, cut into words */
	struct fault_words rule;
	struct port_change port;
	/* What has become of it. */
	bool begun, over, hit;
	bool ruled;		       /* it has set a rule that counts */
	struct msg_impair_reply place; /* of the rule, while it is set */
	uint64_t seen, done;
};

struct fault_player {
	struct session session;
	const char *path;
	struct view view;
	uint64_t start_ns;
	uint32_t n;
	struct entry *entries;
};

/* Reads a file into a player. */
struct file_reader {
	struct toml_reader toml;
	struct fault_player *player;
	struct entry *entry; /* NULL: the table is not a fault's */
	bool other;	     /* it is the scenario's, which is for those who run it */
};

static struct file_reader *reader_of(struct toml_reader *r)
{
	return container_of(r, struct file_reader, toml);
}

/* ---- reading a file ---- */

/* Finishes the entry that has been read, if there is one. */
static bool entry_is_whole(struct file_reader *f)
{
	const struct entry *e = f->entry;

	if (!e || (e->kind != ENTRY_NONE && (!e->has_until || e->until_ns > e->at_ns)))
		return true;
	f->toml.line = e->line;
	if (e->kind == ENTRY_NONE)
		return toml_error(&f->toml, "a [[fault]] has one of impair, inject and port");
	return toml_error(&f->toml, "until has to be later than at");
}

static bool file_table(struct toml_reader *r, const char *name, bool array)
{
	struct file_reader *f = reader_of(r);
	struct fault_player *p = f->player;

	if (!entry_is_whole(f))
		return false;
	f->entry = NULL;
	f->other = !array && !strcmp(name, "scenario");
	if (f->other)
		return true;
	if (!array || strcmp(name, "fault") != 0)
		return toml_error(r, "a file of faults has [[fault]] and [scenario], not %s%s%s",
				  array ? "[[" : "[", name, array ? "]]" : "]");
	if (p->n == ENTRIES_MAX)
		return toml_error(r, "a file has %u faults at most", ENTRIES_MAX);
	f->entry = &p->entries[p->n++];
	f->entry->line = r->line;
	return true;
}

/* False: the key was there before. */
static bool key_is_new(struct toml_reader *r, const char *key, bool *has)
{
	if (*has)
		return toml_error(r, "%s is there twice", key);
	*has = true;
	return true;
}

static bool seconds_read(struct toml_reader *r, const char *key, const struct toml_value *v,
			 uint64_t *ns)
{
	if (v->type != TOML_NUMBER || !(v->number >= 0) || v->number > AT_MAX_S)
		return toml_error(r, "%s is a number of seconds from the start on, from 0 to %.0f",
				  key, AT_MAX_S);
	*ns = (uint64_t)(v->number * 1e9);
	return true;
}

static bool text_read(struct toml_reader *r, const char *key, const struct toml_value *v,
		      char *text, size_t size)
{
	if (v->type != TOML_STRING)
		return toml_error(r, "%s is a \"string\"", key);
	return text_copy(text, size, v->text) ||
	       toml_error(r, "%s has %zu characters at most", key, size - 1);
}

static enum entry_kind kind_of(const char *key)
{
	for (int kind = ENTRY_NONE + 1; kind < ENTRY_KINDS; kind++)
		if (!strcmp(key, kinds[kind].key))
			return (enum entry_kind)kind;
	return ENTRY_NONE;
}

/* Cuts the words apart; returns how many, or -1: there are too many. */
static int words_split(char *text, char *argv[WORDS_MAX + 1])
{
	int n = 0;

	for (char *at = text, *save; (argv[n] = strtok_r(at, " \t", &save)); at = NULL)
		if (++n == WORDS_MAX)
			return -1;
	return n;
}

/* A session whose error lines begin with the place of the entry. */
static struct session entry_session(const struct fault_player *p, const struct entry *e)
{
	struct session s = p->session;

	s.command = e->where;
	s.help = kinds[e->kind].command;
	return s;
}

static bool rule_read(struct toml_reader *r, enum entry_kind kind, const struct toml_value *v)
{
	struct file_reader *f = reader_of(r);
	struct entry *e = f->entry;
	char *argv[WORDS_MAX + 1];
	struct session s;
	int argc;

	if (e->kind != ENTRY_NONE)
		return toml_error(
			r, "a [[fault]] has one of impair, inject and port; this has %s, too",
			kinds[e->kind].key);
	if (!text_read(r, kinds[kind].key, v, e->text, sizeof(e->text)))
		return false;
	e->kind = kind;
	(void)snprintf(e->where, sizeof(e->where), "%s:%u", r->path, r->line);
	s = entry_session(f->player, e);
	memcpy(e->words, e->text, sizeof(e->words));
	argc = words_split(e->words, argv);
	if (argc <= 0)
		return toml_error(r, "%s has from 1 to %d words", kinds[kind].key, WORDS_MAX - 1);
	switch (kind) {
	case ENTRY_IMPAIR:
		return impair_words_read(&s, &e->rule, argc, argv);
	case ENTRY_INJECT:
		return inject_words_read(&s, &e->rule, argc, argv);
	default:
		return port_change_read(&s, argc, argv, &e->port);
	}
}

static bool file_value(struct toml_reader *r, const char *key, const struct toml_value *v)
{
	struct file_reader *f = reader_of(r);
	enum entry_kind kind = kind_of(key);
	struct entry *e = f->entry;

	if (f->other)
		return true;
	if (!e)
		return toml_error(r, "'%s' has to follow a line [[fault]]", key);
	if (!strcmp(key, "at"))
		return key_is_new(r, key, &e->has_at) && seconds_read(r, key, v, &e->at_ns);
	if (!strcmp(key, "until"))
		return key_is_new(r, key, &e->has_until) && seconds_read(r, key, v, &e->until_ns);
	if (!strcmp(key, "why"))
		return key_is_new(r, key, &e->has_why) &&
		       text_read(r, key, v, e->why, sizeof(e->why));
	if (kind == ENTRY_NONE)
		return toml_error(r,
				  "a [[fault]] has at, until, why, and one of impair, inject and "
				  "port, not '%s'",
				  key);
	return rule_read(r, kind, v);
}

/* ---- what the daemon says ---- */

static uint64_t elapsed_ns(const struct fault_player *p)
{
	return clock_ns() - p->start_ns;
}

/* Prints a line about an entry. */
static void __attribute__((format(printf, 3, 4)))
entry_log(const struct fault_player *p, const struct entry *e, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "softhca faults: %.3f s: %s: %s \"%s\": ", (double)elapsed_ns(p) / 1e9,
		e->where, kinds[e->kind].key, e->text);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s%s%s\n", *e->why ? " (" : "", e->why, *e->why ? ")" : "");
}

/* Takes over what the rule has done so far, unless somebody has set another one in its place. */
static void entry_count(struct fault_player *p, struct entry *e)
{
	struct msg m = {.index.index = e->place.row};
	int fds[MSG_MAX_FDS];

	if (!e->place.set || link_call(p->view.sock, &m, MSG_FAULT, fds))
		return;
	if (m.fault_reply.rule.set != e->place.set) {
		e->place.set = 0;
		return;
	}
	e->seen = m.fault_reply.seen;
	e->done = m.fault_reply.done;
	if (e->done && !e->hit) {
		e->hit = true;
		entry_log(p, e, "it has happened");
	}
}

static void entries_count(struct fault_player *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		entry_count(p, &p->entries[i]);
}

/* ---- what happens in time ---- */

static int port_change(struct fault_player *p, struct entry *e, enum ib_port_state state)
{
	const struct session s = entry_session(p, e);
	struct port_change change = e->port;

	change.state = state;
	return port_change_make(&s, &p->view, &change);
}

static int entry_begin(struct fault_player *p, struct entry *e)
{
	const struct session s = entry_session(p, e);
	int status;

	/* What this one replaces ends now. */
	entries_count(p);
	if (e->kind == ENTRY_PORT) {
		status = port_change(p, e, e->port.state);
		e->hit = !status;
	} else {
		e->rule.m.what |= IMPAIR_MINE;
		status = fault_words_send(&s, &p->view, &e->rule, &e->place);
		e->ruled = e->place.set;
	}
	e->begun = true;
	if (!status)
		entry_log(p, e, "from now on");
	return status;
}

static int entry_end(struct fault_player *p, struct entry *e)
{
	const struct session s = entry_session(p, e);
	struct fault_words undo = e->rule;
	struct msg_impair_reply place;
	int status = 0;

	entry_count(p, e);
	e->over = true;
	if (e->kind == ENTRY_PORT)
		status = port_change(p, e,
				     e->port.state == IB_PORT_DOWN ? IB_PORT_ACTIVE : IB_PORT_DOWN);
	else if (fault_words_undo(&undo))
		status = fault_words_send(&s, &p->view, &undo, &place);
	e->place.set = 0;
	if (!status)
		entry_log(p, e, "no more");
	return status;
}

/* The time of what is due next for the entry; UINT64_MAX: nothing. */
static uint64_t entry_due(const struct entry *e)
{
	if (!e->begun)
		return e->at_ns;
	return e->has_until && !e->over ? e->until_ns : UINT64_MAX;
}

/* The entry with something due first, in the order of the file; NULL: none has. */
static struct entry *entry_next(struct fault_player *p)
{
	struct entry *next = NULL;

	for (uint32_t i = 0; i < p->n; i++) {
		struct entry *e = &p->entries[i];

		if (entry_due(e) != UINT64_MAX && (!next || entry_due(e) < entry_due(next)))
			next = e;
	}
	return next;
}

/* Does all that is due at that time. */
static int player_step(struct fault_player *p, uint64_t now_ns)
{
	struct entry *e;
	int status = 0;

	while (!status && (e = entry_next(p)) && entry_due(e) <= now_ns)
		status = e->begun ? entry_end(p, e) : entry_begin(p, e);
	return status;
}

/* True if the entry is to happen to an object, and there has been none for it so far. */
static bool entry_waits(const struct entry *e)
{
	return e->begun && !e->over && !e->hit && e->ruled && e->rule.m.rule.kind == FAULT_OBJECTS;
}

/*
 * Tries entries again that wait for an object: what a program does until then takes long on a busy machine.
 * True if there are any.
 */
static bool player_waits(struct fault_player *p)
{
	bool waits = false;

	for (uint32_t i = 0; i < p->n; i++) {
		struct entry *e = &p->entries[i];
		const struct session s = entry_session(p, e);

		if (!entry_waits(e))
			continue;
		waits = true;
		(void)fault_words_send(&s, &p->view, &e->rule, &e->place);
	}
	return waits;
}

/* True if there is a rule that has not done anything yet. */
static bool player_watches(const struct fault_player *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->entries[i].place.set && !p->entries[i].hit)
			return true;
	return false;
}

/* How long to sleep. */
static struct timespec player_nap(struct fault_player *p)
{
	const struct entry *next = entry_next(p);
	uint64_t now = elapsed_ns(p), ns = 3600ull * 1000000000u;

	if (next)
		ns = entry_due(next) > now ? min_u64(ns, entry_due(next) - now) : 0;
	if (player_watches(p))
		ns = min_u64(ns, LOOK_NS);
	return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* ---- the player ---- */

struct fault_player *fault_player_open(const struct session *s, const char *path, int *status)
{
	struct fault_player *p = calloc(1, sizeof(*p));
	struct file_reader f = {.toml = {file_table, file_value, path, 0}, .player = p};

	*status = EXIT_OURS;
	if (p)
		p->entries = calloc(ENTRIES_MAX, sizeof(*p->entries));
	if (!p || !p->entries) {
		tool_error(s->command, "%s", strerror(ENOMEM));
		free(p);
		return NULL;
	}
	p->session = *s;
	p->path = path;
	*status = EXIT_USAGE;
	if (!toml_read(&f.toml) || !entry_is_whole(&f))
		goto discard;
	if (!p->n) {
		tool_error(path, "there is no [[fault]] in it");
		goto discard;
	}
	*status = EXIT_OURS;
	if (view_open(s, false, &p->view))
		return p;
discard:
	free(p->entries);
	free(p);
	return NULL;
}

int fault_player_begin(struct fault_player *p)
{
	p->start_ns = clock_ns();
	return player_step(p, 0);
}

/* A signal has come: passes it on.  True: the player ends. */
static bool player_signal(const siginfo_t *info, pid_t pid)
{
	if (!pid)
		return true;
	/* The terminal sends these to both of us. */
	if ((info->si_signo == SIGINT || info->si_signo == SIGQUIT) && info->si_code == SI_KERNEL)
		return false;
	(void)kill(pid, info->si_signo);
	return false;
}

/* True if the process has ended; *status is that of a shell then. */
static bool process_ended(pid_t pid, int *status)
{
	int how;

	if (!pid || waitpid(pid, &how, WNOHANG) != pid)
		return false;
	*status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
	return true;
}

int fault_player_play(struct fault_player *p, pid_t pid)
{
	uint64_t now = elapsed_ns(p);
	int status = 0, wrong = 0;
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < array_size(fault_player_signals); i++)
		sigaddset(&set, fault_player_signals[i]);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	while (!process_ended(pid, &status)) {
		struct timespec nap = player_nap(p);
		int signal = sigtimedwait(&set, &info, &nap);

		if (signal > 0 && signal != SIGCHLD && player_signal(&info, pid))
			break;
		entries_count(p);
		/* The file's time stands still meanwhile. */
		if (player_waits(p))
			p->start_ns += elapsed_ns(p) - now;
		now = elapsed_ns(p);
		/* A program is not ended by a rule that fails late; the line has said so. */
		if (!wrong)
			wrong = player_step(p, now);
		if (wrong && !pid)
			return wrong;
	}
	return status ? status : wrong;
}

/* Says of one entry what has become of it. */
static void entry_report(const struct fault_player *p, const struct entry *e)
{
	if (!e->begun)
		entry_log(p, e, "its time never came");
	else if (!e->ruled)
		return;
	else if (!e->seen)
		entry_log(p, e, "it never matched: it has met no %s",
			  fault_things(e->rule.m.rule.kind));
	else
		entry_log(p, e, "%llu of %llu %s", (unsigned long long)e->done,
			  (unsigned long long)e->seen, fault_things(e->rule.m.rule.kind));
}

void fault_player_close(struct fault_player *p)
{
	entries_count(p);
	for (uint32_t i = 0; i < p->n; i++)
		entry_report(p, &p->entries[i]);
	/* Rules go with the connection; ports that are still down do not come up with it. */
	for (uint32_t i = 0; i < p->n; i++) {
		struct entry *e = &p->entries[i];

		if (e->kind == ENTRY_PORT && e->begun && !e->over && e->port.state == IB_PORT_DOWN)
			(void)port_change(p, e, IB_PORT_ACTIVE);
	}
	view_close(&p->view);
	free(p->entries);
	free(p);
}
