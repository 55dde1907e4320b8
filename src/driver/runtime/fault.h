/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handler of SIGSEGV and SIGBUS.  It must see each fault before the program's own handler does,
 * because the device touches registered memory that the program may have unmapped.  The program
 * still sets and reads its handler as if ours were not there: sigaction() for signals with
 * fault_is_ours comes here.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Installs the handler; the one that was installed becomes the program's.  A second call does
 * nothing. */
int fault_install(void);
/* Does the same for the further signals that code of a DPA may raise; called after
 * fault_install. */
int fault_install_dpa(void);
/* Is this one of those signals? */
bool fault_is_ours(int signum);
/* Does what sigaction(2) does, for a signal with fault_is_ours. */
int fault_sigaction(int signum, const struct sigaction *act, struct sigaction *oldact);
/* A thread of the program has set an alternate stack of so many bytes.  Signal handlers may call this. */
void fault_signal_stack(size_t bytes);
/* A child of fork(2) calls this. */
void fault_fork_child(void);
