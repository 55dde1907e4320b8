/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that fail on demand (softhca inject, registry/fault.h). */
#pragma once

#include "base/compiler.h"

struct ufile;

/*
 * 0, or the negative errno with which this call is to fail.  name: of the method or command, as the
 * tables of objects have it ("UVERBS_METHOD_CQ_CREATE", "EX_CREATE_QP", "REG_MR").  The file's lock is
 * held.
 */
int inject_call(const struct ufile *f, const char *name) must_check;
/* The child counts by itself, and another thread of the parent may have held the lock. */
void inject_fork_child(void);
