/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Returns the flags of open that a mode of fopen means, or -1. */
int stdio_open_flags(const char *mode);
