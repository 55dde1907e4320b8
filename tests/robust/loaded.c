// SPDX-License-Identifier: BSD-2-Clause
/* What loader loads: a library that needs libibverbs, as plug-ins do. */
#include <infiniband/verbs.h>

/* Keeps the linker from leaving libibverbs out. */
struct ibv_device **(*loaded_list)(int *n) = ibv_get_device_list;
