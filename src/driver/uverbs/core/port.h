/* SPDX-License-Identifier: BSD-2-Clause */
/* What the file's port says of itself, to whichever request asks. */
#pragma once

#include "driver/uverbs/core/file.h"

#define UVERBS_PORTS 1u

const struct subnet_port *ufile_port(const struct ufile *f);
uint32_t ufile_port_state(const struct ufile *f); /* enum ib_port_state */
uint8_t uport_phys_state(uint32_t state);	  /* as PortInfo counts */
uint32_t uverbs_comp_vectors(void);
