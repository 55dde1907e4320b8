/* SPDX-License-Identifier: BSD-2-Clause */
/* What entries do with a frame that they match. */
#pragma once

#include "adapter/ste/walk.h"

/* Performs the actions of an entry.  *tag_valid becomes false if tags may have changed. */
enum ste_verdict ste_perform(struct ste_walk *w, const uint8_t *entry, bool *tag_valid);
