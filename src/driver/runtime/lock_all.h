/* SPDX-License-Identifier: BSD-2-Clause */
/* mlockall(2) of the program. */
#pragma once

/*
 * As mlockall(2), but not of memory that is the device's, or its peers': nobody uses most of it, and
 * of a peer's file it would be the peer's memory that is used up.  -1: errno.
 */
int lock_all(int flags);
