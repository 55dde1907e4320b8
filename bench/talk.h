/* SPDX-License-Identifier: BSD-2-Clause */
/* The two processes of a measurement talk over a socket pair. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* All of it; ends the process when the other is done, or has said why not. */
void talk_get(int fd, void *to, size_t n);
/* Ends the process, with a message, when the other is gone. */
void talk_put(int fd, const void *from, size_t n);
/* Gives the calling process the processor of that number of those that it may use, if there are two or more. */
void talk_pin(unsigned number);
/* Forks a process that has the first of these processors and ends with the caller, which gets the second.  0: this
 * is that process. */
pid_t talk_fork(void);
/* Ends it. */
void talk_end(pid_t child);
