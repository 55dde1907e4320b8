// SPDX-License-Identifier: BSD-2-Clause
/* A stand-in for libflexio: it keeps what an archive of dpacc registers, and calls device functions in the
 * test's own process, with an image that it loads itself. */
#ifndef SOFTHCA_TEST_REGISTRY_H
#define SOFTHCA_TEST_REGISTRY_H

#include <libflexio/flexio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What flexio_process_call does: packs the arguments, unpacks them for the device function. */
uint64_t registry_call(struct flexio_app *app, flexio_func_t *stub, ...);
/* What the archive says of a function: "device name, unpack name, bytes of the buffer". */
const char *registry_text(struct flexio_app *app, flexio_func_t *stub);
/* Functions registered, or 0 for no application. */
unsigned int registry_count(struct flexio_app *app);

#ifdef __cplusplus
}
#endif

#endif
