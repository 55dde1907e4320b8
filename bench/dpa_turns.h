/* SPDX-License-Identifier: BSD-2-Clause */
/* What programs need that measure one turn after another. */
#pragma once

#include <sched.h>
#include <stdint.h>

uint64_t turn_now_ns(void);

/* Of 'n' times, which it sorts. */
double turns_median(uint64_t *times, unsigned n);

/* The calling thread, and those that it makes from now on. */
void run_on(const cpu_set_t *cpus);

/* The n-th that the program may use. */
cpu_set_t one_of(const cpu_set_t *all, int n);

/* The number in the list of devices; a missing device ends the program. */
unsigned device_number(const char *name);
