/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The null key: an lkey of every protection domain that covers all addresses.  What is written
 * through it goes nowhere, what is read is zero (ibv_alloc_null_mr(3)).
 *
 * It is no entry of the key table, so that ordinary look-ups need not ask for it: they come here
 * when they have found nothing.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

struct null_mkey {
	pthread_mutex_t lock;  /* of who makes it */
	_Atomic(uint32_t) key; /* 0: nobody has asked for it */
	uint8_t *zeros;
};

void null_mkey_init(struct null_mkey *n);
void null_mkey_release(struct null_mkey *n);
