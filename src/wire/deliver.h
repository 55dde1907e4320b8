/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets that have arrived go to the ports of this process. */
#pragma once

#include "wire/process.h"

/* To the port that the packet names, or all those that listen to its group; false: nobody takes
 * it. */
bool wire_process_deliver(struct wire_process *h, const struct pkt *p);
