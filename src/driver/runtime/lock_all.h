/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes mlockall(2) for the program. */
#pragma once

/*
 * Does what mlockall(2) does, but leaves out memory of the device and of its peers: nobody uses
 * most of the device's memory, and a peer's file would use up the peer's memory.  -1: errno says
 * why.
 */
int lock_all(int flags);
