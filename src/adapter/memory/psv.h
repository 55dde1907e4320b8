/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protected signature values: what SET_PSV writes, and the state to which a signature reports its
 * errors.  A key names two, one for each side of its signatures; more than one key may name the
 * same, so it is the key that knows whether its error is the first, and the PSV how often it has
 * been set since (mkey_indirect.c).
 */
#pragma once

#include "adapter/core/device.h"

/* All under RCU.  How often it has been set; 0 if there is none of that number. */
uint32_t psv_arms(struct adapter *a, uint32_t number);
/* False: there is none of that number. */
bool psv_note_error(struct adapter *a, uint32_t number) must_check;
/* Is there one of that number and domain? */
bool psv_exists(struct adapter *a, uint32_t number, uint32_t pdn) must_check;
/* False: there is none of that number and domain. */
bool psv_set(struct adapter *a, uint32_t number, uint32_t pdn, uint64_t transient) must_check;
