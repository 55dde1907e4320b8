/* SPDX-License-Identifier: BSD-2-Clause */
/* What both parts of the program of tests/flexio/race know. */
#pragma once

#define ROUNDS 100u
#define BYTES  100u

enum { PLAIN, ATOMIC, HALF, LOCKED, HANDED, RELAXED, FENCED, WINDOW, COPIED, NEIGHBOURS };
