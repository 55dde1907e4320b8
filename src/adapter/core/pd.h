/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of protection domains and XRC domains.  A domain has no state of its own: keys and queues
 * carry its number, and their numbers must be equal.  Numbers are private to the process, because
 * keys and queues are looked up there.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

struct pd_space {
	pthread_mutex_t lock;
	uint32_t fresh; /* all numbers below were given out once */
	uint32_t *freed;
	uint32_t nfreed;
	uint32_t capacity;
};

void pd_space_init(struct pd_space *s);
void pd_space_release(struct pd_space *s);
