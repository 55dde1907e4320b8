// SPDX-License-Identifier: BSD-2-Clause
/* Generates C code that carries arguments from the host to the functions of the device. */
#pragma once

#include <stdio.h>

#include "dpacc/interface.h"

/* The section of the host's part that holds the image; the application's name follows. */
#define SECTION_IMAGE ".dpa_image."

/* Writes the functions of the device that take arguments out of the buffer: one for each function
 * of the interface that has none yet. */
void stubs_device(FILE *file, const struct interface *interface);
/* Writes for each function of the interface: the stub whose address is its name in the host
 * program, the function that puts arguments into the buffer, and a record that ties them
 * together. */
void stubs_host(FILE *file, const struct interface *interface);
/* Writes the application: the image (from the file that __DPA_EXEC_STUB_FILE__ names), the
 * variable, and the code that registers the functions when the program starts.  Functions in own
 * always have a record; for the others, those of device libraries, that depends on what the host
 * program is linked with. */
void stubs_app(FILE *file, const char *app, const struct words *functions, const struct words *own);
