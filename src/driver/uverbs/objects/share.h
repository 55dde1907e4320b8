/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions whose memory peers may reach by themselves (driver/runtime/share.h). */
#pragma once

#include "driver/uverbs/core/file.h"

struct umr;

/* Decides how peers reach the region, if it has remote rights, and tells the device. */
void ushare_region(const struct ufile *f, struct umr *mr);
