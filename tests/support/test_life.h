/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread of this process that peers address when they reach into its memory (reach/alive.h). */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "reach/alive.h"

struct test_life {
	struct alive *alive;
	pthread_t thread;
	_Atomic(uint32_t) lives;
};

static inline void *test_life_live(void *arg)
{
	struct test_life *l = arg;

	CHECK(!alive_begin(l->alive));
	atomic_store(&l->lives, 1);
	while (atomic_load(&l->lives))
		usleep(1000);
	alive_end(l->alive);
	return NULL;
}

static inline void test_life_begin(struct test_life *l, struct alive *a)
{
	l->alive = a;
	CHECK(!pthread_create(&l->thread, NULL, test_life_live, l));
	while (!atomic_load(&l->lives))
		usleep(1000);
}

static inline void test_life_end(struct test_life *l)
{
	atomic_store(&l->lives, 0);
	pthread_join(l->thread, NULL);
}
