/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells traces, and in words whoever asked (base/explain.h), that a control operation was refused.
 */
#pragma once

/* Returns err.  why is a word for traces that says where it was refused. */
int uverbs_refused(const char *name, int err, const char *why) __attribute__((cold));
