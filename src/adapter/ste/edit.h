/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of a frame that come and go.  What its headers say is not looked at anew. */
#pragma once

#include "adapter/ste/tag.h"

/* Makes it one that may be changed; false: there is no room for that. */
bool ste_edit_own(struct ste_frame *f) must_check;
/* False: such a place is not there, or the frame would be too long. */
bool ste_edit_insert(struct ste_frame *f, uint32_t at, const uint8_t *bytes, uint32_t n) must_check;
bool ste_edit_remove(struct ste_frame *f, uint32_t at, uint32_t n) must_check;
