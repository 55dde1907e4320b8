// SPDX-License-Identifier: BSD-2-Clause
/* Puts a device image into a C source. */
#ifndef SOFTHCA_DPACC_EMBED_H
#define SOFTHCA_DPACC_EMBED_H

#include <stdio.h>

/* Writes a file's bytes as the elements of an array. */
void embed_write(FILE *file, const char *path);
/* Ends the program with a message if the loader would refuse the image. */
void embed_check(const char *path);

#endif
