// SPDX-License-Identifier: BSD-2-Clause
/* The same for a later generation of the device library. */
#include <libflexio-dev/flexio_dev_ver.h>
#define FLEXIO_DEV_VER_USED FLEXIO_DEV_VER(24, 10, 0)

#include "device.c"
