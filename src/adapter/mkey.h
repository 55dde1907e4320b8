/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory keys: who may touch what.  A key is an index (bits 31:8) and a variant (7:0) that changes
 * each time the index is used again, so a stale key is refused.
 *
 * What a key means is immutable once published; to change it, a new meaning is published and the
 * old one freed after a grace period.  Users hold RCU from the look-up to the end of the copy.
 */
#pragma once

#include "adapter/device.h"

struct mkey_meaning {
	uint32_t key;
	uint32_t pdn;
	uint32_t access;
	uint64_t iova;
	uint64_t length;
	uint8_t *addr;
};

enum mkey_verdict {
	MKEY_OK,
	MKEY_NO_KEY, /* no such key, or a stale variant */
	MKEY_WRONG_PD,
	MKEY_NO_RIGHT,
	MKEY_OUT_OF_RANGE,
	MKEY_TOO_MANY_RUNS,
};

/* A list of runs under construction.  Begun with runs_begin: clearing all of it would cost more
 * than a small copy. */
struct runs {
	uint32_t n;
	struct run run[PKT_MAX_RUNS];
};

static inline void runs_begin(struct runs *runs)
{
	runs->n = 0;
}

/*
 * Appends the runs of [va, va + len) under key, if pdn may use it with all rights in access.  Zero
 * length appends nothing but checks the key as well.  Under RCU.
 */
enum mkey_verdict mkey_append_runs(struct adapter *a, uint32_t key, uint32_t pdn, uint32_t access,
				   uint64_t va, uint64_t len, struct runs *runs) must_check;
