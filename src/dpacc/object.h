// SPDX-License-Identifier: BSD-2-Clause
/* Objects that the command line names instead of sources. */
#ifndef SOFTHCA_DPACC_OBJECT_H
#define SOFTHCA_DPACC_OBJECT_H

/* The section of a host object in which the device's object lies until a program is linked. */
#define SECTION_OBJECT ".dpa_obj"

enum object_kind {
	OBJECT_OTHER,  /* archives, scripts of the linker, and files that cannot be read */
	OBJECT_DEVICE, /* made by dpa-clang */
	OBJECT_HOST,   /* made by dpacc --compile, with the device's object inside */
};

enum object_kind object_kind(const char *path);
/* Writes the device's object out of a host object.  Ends the program with a message if that
 * fails. */
void object_extract(const char *path, const char *to);

#endif
