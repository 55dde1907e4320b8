/* SPDX-License-Identifier: BSD-2-Clause */
/* Tunnels that entries put frames into, and take them out of. */
#pragma once

#include "adapter/ste/walk.h"

/* STE_ACT_REMOVE_HEADERS: all up to a header. */
enum ste_verdict ste_remove_headers(struct ste_walk *w, const uint8_t *a) must_check;
/* STE_ACT_INSERT_POINTER: those that a number names. */
enum ste_verdict ste_insert_headers(struct ste_walk *w, const uint8_t *a) must_check;
