/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps SOFTHCA_DIR, SOFTHCA_HOST and SOFTHCA_DAEMON as they were when the program started:
 * programs change and clear their environment, and getenv is not safe while they do.
 */
#pragma once

#include "fabric/protocol.h"
#include "fabric/rundir.h"

struct fabric_environment {
	char dir[RUNDIR_BYTES];
	char host[FABRIC_NAME_BYTES]; /* may be empty: the first host */
	char daemon[4096];	      /* may be empty: not started on demand */
};

/* NULL if this process is on no fabric. */
const struct fabric_environment *fabric_environment(void);
/* Reads the variables again, for a launcher that has set them.  No other thread may be in a function of
 * this library. */
void fabric_environment_renew(void);
