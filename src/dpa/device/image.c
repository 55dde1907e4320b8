// SPDX-License-Identifier: BSD-2-Clause
/*
 * The record by which the runtime knows an image, and which the runtime completes (door.h).
 */
#include "dpa/device/image.h"

#include <libflexio-dev/flexio_dev_tracer.h>

#ifdef DPA_CHECKED
#define IMAGE_FLAGS DPA_IMAGE_CHECKED
#else
#define IMAGE_FLAGS 0
#endif

/* exported, whatever visibility the program is compiled with; used, although nothing may call it */
__attribute__((visibility("default"), used)) struct dpa_image_info __dpa_image_info = {
	.magic = DPA_IMAGE_MAGIC,
	.version = DPA_DOOR_VERSION,
	.bytes = sizeof(struct dpa_image_info),
	.door_bytes = sizeof(struct dpa_door),
	.flags = IMAGE_FLAGS,
};

_Static_assert(sizeof(struct flexio_dev_process_tracer_ctx) == sizeof(__dpa_image_info.tracers),
	       "the table of tracers is the one of the public header");

struct flexio_dev_process_tracer_ctx *g_dev_p_tracer_ctx =
	(struct flexio_dev_process_tracer_ctx *)__dpa_image_info.tracers;
