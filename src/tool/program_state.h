/* SPDX-License-Identifier: BSD-2-Clause */
/* A process as the system describes it; reading that waits for nobody. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns "running", "stopped" and so on, and gives the command's name, printable. */
const char *program_state(int32_t pid, char *command, size_t size);
/* Makes text from others harmless to terminals and to JSON; it ends within size. */
void text_printable(char *text, size_t size);
