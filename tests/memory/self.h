/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program does to itself. */
#pragma once

/* A filter that refuses process_vm_readv and process_vm_writev from now on. */
void self_refuse_process_vm(int err);

/* A signal every so many microseconds, which interrupts system calls; 0 ends them. */
void self_tick(unsigned us);
unsigned long self_ticks(void);
