/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes what the compiler takes for this machine's mean what it means on the DPA. */
#pragma once

/*
 * Rewrites a file with a module of LLVM's intermediate representation, as the compiler makes it
 * before it optimizes: annotated functions go to their sections, divisions do not trap, and inline
 * assembly of RISC-V becomes code.  Complains, by file and line, about assembly that it does not
 * understand (report_at).
 */
void rewrite_module(const char *path);
