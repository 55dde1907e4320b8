/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Versions of the Flex IO host interface.
 *
 * A program that is written against a later generation than 24.01 (the one of the DOCA 2.6
 * manual) says so between this header and flexio.h:
 *
 *	#include <libflexio/flexio_ver.h>
 *	#define FLEXIO_VER_USED FLEXIO_VER(25, 4, 0)
 *	#include <libflexio/flexio.h>
 *
 * and gets the names and shapes of that generation.  Without the definition it gets those of the
 * manual, which knows no such macros.
 */
#ifndef _FLEXIO_VER_H_
#define _FLEXIO_VER_H_

/** A version as one number, which grows with the version: year, month, patch (0 to 255 each). */
#define FLEXIO_VER(year, month, patch) ((year)*65536 + (month)*256 + (patch))

/** Parts of a version. */
#define FLEXIO_VER_MAJOR(version) (((version) / 65536) & 255)
#define FLEXIO_VER_MINOR(version) (((version) / 256) & 255)
#define FLEXIO_VER_PATCH(version) ((version)&255)

/** Stands for the latest generation whose names these headers know. */
#define FLEXIO_VER_LATEST      FLEXIO_VER(255, 255, 255)
#define FLEXIO_CURRENT_VERSION FLEXIO_VER(26, 4, 0)

/** The oldest generation that these headers serve, and the one without FLEXIO_VER_USED. */
#define FLEXIO_LAST_SUPPORTED_VERSION FLEXIO_VER(24, 1, 0)

#endif
