/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells traces, and in words those who asked (base/explain.h), of a refused operation. */
#pragma once

/* Returns err.  why is a word for traces that says where it was refused. */
int uverbs_refused(const char *name, int err, const char *why) __attribute__((cold));
