/* SPDX-License-Identifier: BSD-2-Clause */
/* Inserts and removes bytes of a frame.  It does not look at the frame's headers again. */
#pragma once

#include "adapter/ste/tag.h"

/* Makes the frame one that may be changed; false: there is no room for that. */
bool ste_edit_own(struct ste_frame *f) must_check;
/* False: the frame has no such place, or would be too long. */
bool ste_edit_insert(struct ste_frame *f, uint32_t at, const uint8_t *bytes, uint32_t n) must_check;
bool ste_edit_remove(struct ste_frame *f, uint32_t at, uint32_t n) must_check;
