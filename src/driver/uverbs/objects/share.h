/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions whose memory peers may reach by themselves (driver/runtime/share.h). */
#pragma once

#include "driver/uverbs/core/file.h"

struct umr;

/* Moves the region to the arena if it has remote rights and may move, and tells the device. */
void ushare_region(const struct ufile *f, struct umr *mr);
