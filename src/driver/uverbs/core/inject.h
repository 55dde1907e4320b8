/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that fail on demand, and what happens to objects (softhca inject, registry/fault.h). */
#pragma once

#include <stdint.h>

#include "base/compiler.h"

struct process;
struct ufile;

/*
 * 0, or the negative errno with which this call is to fail.  name: of the method or command, as the
 * tables of objects have it ("UVERBS_METHOD_CQ_CREATE", "EX_CREATE_QP", "REG_MR").  The file's lock is
 * held.
 */
int inject_call(const struct ufile *f, const char *name) must_check;
/* Makes happen to objects of this process what the rule in that row says (process_on_fault). */
void inject_objects(struct process *p, uint32_t row);
/* The child counts by itself, and another thread of the parent may have held the lock. */
void inject_fork_child(void);
