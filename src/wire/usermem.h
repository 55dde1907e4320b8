/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every touch of application memory.  Registered memory, rings and doorbell records belong to the
 * program, which may unmap them at any moment; a touch of a page that has gone returns false
 * instead of killing the process.  For that, the signal handler for SIGSEGV and SIGBUS (installed
 * by the driver) offers each fault to usermem_fault() first.
 *
 * Order: usermem_copy makes the last bytes of the destination visible last, with release order,
 * because programs poll on the last byte of a message.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "wire/pkt.h"

bool usermem_copy(void *dst, const void *src, size_t n) must_check;
bool usermem_load_be32(const void *addr, uint32_t *out) must_check;
bool usermem_store_be32(void *addr, uint32_t v) must_check;
/* Writes a CQE of n bytes (multiple of 8): the last 8 bytes last, with release order. */
bool usermem_publish(void *dst, const void *src, size_t n) must_check;
/* Atomic on host-order 64-bit words; addr is 8-byte aligned. *orig gets the old value. */
bool usermem_fetch_add(void *addr, uint64_t add, uint64_t *orig) must_check;
bool usermem_compare_swap(void *addr, uint64_t compare, uint64_t swap, uint64_t *orig) must_check;

/* Copies between run lists; from another process if pid != 0 (process_vm_readv). Lengths must be
 * equal. */
bool usermem_pull(const struct run *dst, uint32_t ndst, const struct run *src, uint32_t nsrc,
		  int32_t pid) must_check;

/*
 * For the signal handler: if addr is being touched by a usermem function of this thread, does not
 * return but makes that function return false.  Otherwise returns, and the signal is somebody
 * else's.
 */
void usermem_fault(const void *addr);
