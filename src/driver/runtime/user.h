/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that the program names in a call on a device file, which may not be there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/* From now on our handler of faults, which this installs, finds bad addresses. */
void user_guard(void);
/* Has that been done, so that a touch of bad memory ends no process? */
bool user_is_guarded(void);
/* Each copies n bytes and returns 0 or -EFAULT. */
int user_load(void *to, const void *from, size_t n) must_check;
int user_store(void *to, const void *from, size_t n) must_check;
