/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protected signature values: SET_PSV writes them, and a signature reports its errors to their
 * state.  A key names two, one for each side of its signatures, and several keys may name the same
 * one.  So the key knows whether its error is the first, and the PSV counts how often it has been
 * set (mkey_indirect.c).
 */
#pragma once

#include "adapter/core/device.h"

/* How often it has been set; 0 if none has that number.  All of these under RCU. */
uint32_t psv_arms(struct adapter *a, uint32_t number);
/* False: none has that number. */
bool psv_note_error(struct adapter *a, uint32_t number) must_check;
/* Does one of that number exist in that domain? */
bool psv_exists(struct adapter *a, uint32_t number, uint32_t pdn) must_check;
/* False: none of that number exists in that domain. */
bool psv_set(struct adapter *a, uint32_t number, uint32_t pdn, uint64_t transient) must_check;
