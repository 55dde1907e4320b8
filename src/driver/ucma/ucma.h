/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /dev/infiniband/rdma_cm: a write is a command (rdma/rdma_user_cm.h).  Here are the checks that need
 * the program's memory; everything behind them is the daemon's (fabric/cm.h).
 */
#pragma once

#include <stdbool.h>

/* An opener for cdev.c: returns a descriptor, or a negative errno. */
int ucma_file_open(const char *name, int flags);
/* Is fd such a file that the process has not opened, from execve or another process? */
bool ucma_is_foreign(int fd);
