/* SPDX-License-Identifier: BSD-2-Clause */
/* The cable ends at a TAP interface: frames go between the port's programs and the kernel. */
#pragma once

#include "tie/carrier.h"
#include "tie/tap.h"

struct end_tap {
	struct tie_end end;
	struct tap_device tap;
	bool up; /* what the fabric was told last */
};

/* Takes the open interface over. */
void end_tap_init(struct end_tap *e, const struct tap_device *tap);
