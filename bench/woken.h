/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An atomic in another process's memory, as a program would do without a device: a thread of that process
 * sleeps at a futex, is woken, adds and answers.  What a packet costs at least whose target is busy with
 * something else.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What the two processes share. */
struct woken_words {
	_Alignas(64) _Atomic(uint32_t) asked;
	_Atomic(bool) over;
	_Alignas(64) _Atomic(uint32_t) answered;
};

/* The thread that sleeps. */
struct woken {
	struct woken_words *words;
	_Atomic(uint64_t) *at;
	pthread_t thread;
};

/* For so many threads, before the processes part; ends the process if there is no memory. */
struct woken_words *woken_map(unsigned n);
/* The thread adds to the word whenever it is asked, until the second call. */
void woken_begin(struct woken *w, struct woken_words *words, _Atomic(uint64_t) *at);
void woken_end(struct woken *w);
/* The other process: asks, and looks until there is an answer. */
void woken_ask(struct woken_words *words);
