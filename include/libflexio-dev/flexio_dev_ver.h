/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Versions of the Flex IO device interface; see libflexio/flexio_ver.h.
 *
 *	#include <libflexio-dev/flexio_dev_ver.h>
 *	#define FLEXIO_DEV_VER_USED FLEXIO_DEV_VER(25, 4, 0)
 *	#include <libflexio-dev/flexio_dev.h>
 */
#ifndef _FLEXIO_DEV_VER_H_
#define _FLEXIO_DEV_VER_H_

/** A version as one number, the same as FLEXIO_VER() of the host: year, month, patch. */
#define FLEXIO_DEV_VER(year, month, patch) ((year)*65536 + (month)*256 + (patch))

/** Stands for the latest generation whose names these headers know. */
#define FLEXIO_DEV_VER_LATEST	   FLEXIO_DEV_VER(255, 255, 255)
#define FLEXIO_DEV_CURRENT_VERSION FLEXIO_DEV_VER(26, 4, 0)

/** The oldest generation that these headers serve, and the one without FLEXIO_DEV_VER_USED. */
#define FLEXIO_DEV_LAST_SUPPORTED_VERSION FLEXIO_DEV_VER(24, 1, 0)

#endif
