// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/ste/edit.h"

#include <string.h>

bool ste_edit_own(struct ste_frame *f)
{
	if (!f->room || f->len > f->room_bytes)
		return false;
	if (f->bytes != f->room) {
		memcpy(f->room, f->bytes, f->len);
		f->bytes = f->room;
	}
	return true;
}

bool ste_edit_insert(struct ste_frame *f, uint32_t at, const uint8_t *bytes, uint32_t n)
{
	if (!ste_edit_own(f) || at > f->len || n > f->room_bytes - f->len || f->len + n > FRAME_MAX)
		return false;
	memmove(f->room + at + n, f->room + at, f->len - at);
	memcpy(f->room + at, bytes, n);
	f->len += n;
	return true;
}

bool ste_edit_remove(struct ste_frame *f, uint32_t at, uint32_t n)
{
	if (!ste_edit_own(f) || !range_inside(at, n, f->len))
		return false;
	memmove(f->room + at, f->room + at + n, f->len - at - n);
	f->len -= n;
	return true;
}
