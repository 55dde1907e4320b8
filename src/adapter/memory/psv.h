/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protected signature values: SET_PSV writes them, and a signature reports its errors to their
 * state.  A key names two, one for each side of its signatures, and several keys may name the same
 * one.  So the key knows whether its error is the first, and the PSV counts how often it has been
 * set (mkey_indirect.c).
 */
#pragma once

#include "adapter/core/device.h"

/* How often the PSV was set; 0 if no PSV has that number.  All of these run in a reader. */
uint32_t psv_arms(struct adapter *a, uint32_t number);
/* False: no PSV has that number. */
bool psv_note_error(struct adapter *a, uint32_t number) must_check;
/* The value that a transaction signature carries in the PSV, as SET_PSV writes it; 0 if no PSV has
 * that number. */
uint64_t psv_value(struct adapter *a, uint32_t number);
/* Stores such a value, if there is such a PSV. */
void psv_carry(struct adapter *a, uint32_t number, uint64_t value);
/* True if the domain has a PSV with that number. */
bool psv_exists(struct adapter *a, uint32_t number, uint32_t pdn) must_check;
/* False: the domain has no PSV with that number. */
bool psv_set(struct adapter *a, uint32_t number, uint32_t pdn, uint64_t transient) must_check;
