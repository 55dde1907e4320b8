/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes what the compiler takes for this machine's mean what it means on the DPA. */
#pragma once

/*
 * Rewrites a file with a module of LLVM's intermediate representation, as the compiler makes it
 * before it optimizes: annotated functions go to their sections, and divisions do not trap.
 */
void rewrite_module(const char *path);
