/* SPDX-License-Identifier: BSD-2-Clause */
/* A control operation is refused: for traces, and in words for who asked (base/explain.h). */
#pragma once

/* Returns err.  why is where it was refused, a word for traces. */
int uverbs_refused(const char *name, int err, const char *why) __attribute__((cold));
