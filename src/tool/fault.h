/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults on demand as users write them: the words of softhca fabric impair and softhca inject, which files
 * of faults have, too. */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "tool/tool.h"
#include "tool/view.h"

/* A rule in words. */
struct fault_words {
	struct msg_impair m;
	const char *from, *to; /* NULL: any */
	const char *allowed;   /* what the word that was read last may be; NULL: see --help */
	bool data_only;	       /* a word that MADs know nothing of was given */
	bool selects;	       /* a word that selects packets was given */
	uint32_t cqn, srqn;    /* of the queue to which something happens; 0: any */
	uint32_t actions;      /* words that say what is to happen */
	bool told;	       /* an error line has been printed */
};

/*
 * Read the arguments of softhca fabric impair and softhca inject; w is zeroed before.  False: one line has
 * said what is wrong with them.  The words stay the caller's, and must live as long as w.
 */
bool impair_words_read(const struct session *s, struct fault_words *w, int argc, char **argv);
bool inject_words_read(const struct session *s, struct fault_words *w, int argc, char **argv);
/*
 * Finds the ends that the words name, and sets the rule; where says where it is.  0, or an exit status
 * after an error line.
 */
int fault_words_send(const struct session *s, struct view *v, struct fault_words *w,
		     struct msg_impair_reply *where);
/* Makes the words take away what they set.  False: what they set happens at once. */
bool fault_words_undo(struct fault_words *w);

/* ---- what the rules say ---- */

enum fault_unit { FAULT_UNIT_PERCENT, FAULT_UNIT_NUMBER };

struct fault_name {
	const char *name;
	enum fault_unit unit;
	size_t at; /* of a uint32_t in struct fault_rule */
	bool mads; /* MADs can have it */
	const char *print;
};

#define FAULT_NAMES	  8u
#define FAULT_PPM_PERCENT 10000u

extern const struct fault_name fault_names[FAULT_NAMES];

/* The operations (1 << enum bth_op) whose names begin so. */
uint32_t fault_ops_called(const char *name, size_t n);
/* "packets", "requests", ... that a rule of that kind concerns. */
const char *fault_things(uint32_t kind);

/* ---- files ---- */

struct fault_player;

/* The signals that the player takes; the program needs them as they were. */
static const int fault_player_signals[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP};

/*
 * Reads a file of faults (docs/faults.md) and finds what it names in the fabric, which is there.  NULL
 * after an error line.
 */
struct fault_player *fault_player_open(const struct session *s, const char *path, int *status);
/* Sets what is due at the beginning.  0, or an exit status after an error line. */
int fault_player_begin(struct fault_player *p);
/*
 * Sets the rest in time, until the process ends (0: none) or the user ends it by a signal; passes signals
 * on to the process.  Returns the exit status.
 */
int fault_player_play(struct fault_player *p, pid_t pid);
/* Says what has happened, takes all of it away, and frees the player. */
void fault_player_close(struct fault_player *p);
