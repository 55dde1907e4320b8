/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of a test and the orders that they obey; whatever goes wrong ends the program. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "steps.h"

struct process {
	const char *name;
	pid_t pid;
	int sock;
};

extern char story[512]; /* what is being done, for a failure */

__attribute__((format(printf, 1, 2))) _Noreturn void fail(const char *format, ...);
/* A child that dies with its parent and runs body. */
void process_spawn(struct process *p, const char *name, void (*body)(int sock));
void process_order(struct process *p, const struct order *o);
/* Waits for the answer of an order, STEPS_LIMIT_MS at least and twice that at most. */
struct answer process_answer(struct process *p, uint32_t code);
struct answer process_ask(struct process *p, uint32_t code, uint32_t link, uint32_t arg);
void process_connect(struct process *p, uint32_t link, const struct place *place);
/* The same, without complaint if the process has gone or does not answer. */
bool process_try(struct process *p, const struct order *o, struct answer *a);
/* Tells it to quit, or kills it. */
void process_end(struct process *p, bool by_force);
