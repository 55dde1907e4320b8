/* SPDX-License-Identifier: BSD-2-Clause */
/* Actions that put frames into tunnels and take them out. */
#pragma once

#include "adapter/ste/walk.h"

/* STE_ACT_REMOVE_HEADERS: removes all bytes up to a header. */
enum ste_verdict ste_remove_headers(struct ste_walk *w, const uint8_t *a) must_check;
/* STE_ACT_INSERT_POINTER: inserts headers that a number names. */
enum ste_verdict ste_insert_headers(struct ste_walk *w, const uint8_t *a) must_check;
