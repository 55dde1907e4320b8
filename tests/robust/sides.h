/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes that a third one, which has no device, starts, stops and kills at random moments.
 *
 *     supervisor ---- signals, words ----> side 0 <---- the device ----> side 1
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SIDES 2u

enum sides_word {
	SIDES_NOTHING,
	SIDES_QUIT = 'q', /* to side 0: come to an end */
	SIDES_DEAD = 'k', /* the other side was killed */
};

struct side {
	unsigned number;
	int peer; /* a socket to the other side */
	int control;
};

/* Gives this process, and those that it starts, so many of the processors that it has, if it has more. */
void sides_few_processors(int most);
/* Runs the two sides; a return from fn ends a side well. */
void sides_start(void (*fn)(struct side *s), uint32_t seed);
/* Side 0 ends by itself. */
int sides_leave(void);
/* Stops either side again and again, then side 0 is told to come to an end. */
int sides_stop(unsigned times);
/* Kills that side, tells the other. */
int sides_kill(unsigned victim);

/* To the supervisor, once: from now on the moments may be anywhere. */
void sides_stand(const struct side *s);
void sides_await(const struct side *s, enum sides_word word);
/* What the supervisor has said since. */
enum sides_word sides_heard(const struct side *s);
void sides_exchange(const struct side *s, const void *mine, void *theirs, size_t bytes);
/* From 0 to below - 1. */
uint32_t sides_draw(uint32_t below);
