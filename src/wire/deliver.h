/* SPDX-License-Identifier: BSD-2-Clause */
/* Delivers packets that have arrived to the ports of this process. */
#pragma once

#include "wire/process.h"

/* Delivers to the port that the packet names, or to all ports that listen to its group.  False:
 * nobody takes it. */
bool wire_process_deliver(struct wire_process *h, const struct pkt *p);
