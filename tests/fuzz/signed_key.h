/* SPDX-License-Identifier: BSD-2-Clause */
/* A memory key with block signatures over the device's first region, as lists of small pieces. */
#pragma once

#include "fuzz_device.h"

struct fuzz_signed {
	struct mkey *mkey; /* NULL: there is none */
	struct psv *psv;
};

/* what: which signatures. */
void signed_begin(struct fuzz_signed *s, struct fuzz_device *d, uint8_t what);
void signed_end(struct fuzz_signed *s, struct fuzz_device *d);
