// SPDX-License-Identifier: BSD-2-Clause
/* Generated C: what carries arguments from the host to the functions of the device. */
#ifndef SOFTHCA_DPACC_STUBS_H
#define SOFTHCA_DPACC_STUBS_H

#include <stdio.h>

#include "dpacc/interface.h"

/* The section of the host's part that the image is in; the application's name follows. */
#define SECTION_IMAGE ".dpa_image."

/* The functions of the device that take arguments out of the buffer, one for each of the interface
 * that has none yet. */
void stubs_device(FILE *file, const struct interface *interface);
/* For each function of the interface: the stub whose address is its name in the host program, what
 * puts arguments into the buffer, and a record that ties them together. */
void stubs_host(FILE *file, const struct interface *interface);
/* The application: the image (from the file that __DPA_EXEC_STUB_FILE__ names), the variable, and
 * what registers the functions when the program starts.  Those in own have a record in any case, of
 * the others (device libraries') it depends on what the host program is linked with. */
void stubs_app(FILE *file, const char *app, const struct words *functions, const struct words *own);

#endif
