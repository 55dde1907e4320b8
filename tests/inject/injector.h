/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the parts of the injector tell whose call it is.  They are to be compiled without what makes
 * one name of libc out of another.
 */
#pragma once

#undef _FILE_OFFSET_BITS /* would make open another name of open64 */
#undef _FORTIFY_SOURCE

#include <stdbool.h>
#include <stdint.h>

#define exported __attribute__((visibility("default")))

#define CALLER __builtin_return_address(0)

/* This thread is in a counted call: what it calls below is part of that. */
extern __thread bool injector_inside __attribute__((tls_model("initial-exec")));

/* There is an object file whose calls count. */
bool injector_is_on(void);
/* What its addresses begin with. */
uintptr_t injector_base(void);
bool injector_is_theirs(const void *caller);
/* Says whether this call is to fail. */
bool injector_fails(const void *caller, const char *name);
