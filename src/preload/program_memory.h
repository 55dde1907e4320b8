/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that a program names in a system call.  Where the kernel answers EFAULT for an address that
 * cannot be read, we must not read it ourselves.  These functions ask the kernel, which needs no
 * signal handler: most processes never open a device and have none of ours.  All keep errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Copies n bytes; false: some of it cannot be read.  Where process_vm_readv is forbidden (a filter
 * of seccomp), the address is trusted. */
bool program_read(void *to, const void *from, size_t n) must_check;

/* The same for calls that all programs make: no system call for which a filter of seccomp may kill
 * the program. */
bool program_byte_can_be_read(const void *at) must_check;
bool program_word_read(uint64_t *to, const void *from) must_check;
/* Likewise: can this be read up to its end, and is it short enough for a path? */
bool program_path_is_valid(const char *path) must_check;
