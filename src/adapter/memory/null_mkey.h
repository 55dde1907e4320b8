/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The null key: an lkey of every protection domain that covers all addresses.  Writes through it
 * are dropped, and reads give zeros (ibv_alloc_null_mr(3)).
 *
 * It is not in the key table, so ordinary look-ups need not test for it: they come here when they
 * have found no key.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

struct null_mkey {
	pthread_mutex_t lock;	  /* held to make the key or its zeros */
	_Atomic(uint32_t) key;	  /* 0: nobody has asked for the key */
	_Atomic(uint8_t *) zeros; /* NULL: nobody has read through it */
};

void null_mkey_init(struct null_mkey *n);
void null_mkey_release(struct null_mkey *n);
