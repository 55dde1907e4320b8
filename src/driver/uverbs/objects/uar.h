/* SPDX-License-Identifier: BSD-2-Clause */
/* User access regions: pages with doorbell registers. */
#pragma once

#include "driver/uverbs/core/file.h"

/* Registers of a page that the program names, or NULL. */
uint8_t *uuar_regs(struct ufile *f, uint32_t page);
/* The program has mapped a part of the file; or no mapping of its pages counts any more. */
void uuar_mapped(struct ufile *f, uintptr_t addr, size_t len, off_t offset);
void uuar_forget(struct ufile *f);
/* Makes sure that the next request for a region succeeds; the file's end gives the region back. */
int uuar_reserve(struct ufile *f) must_check;
void uuar_release(struct ufile *f);
