/* SPDX-License-Identifier: BSD-2-Clause */
/* Hears of changes of this machine's network interfaces, in the network namespace that we are in. */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"

/* Returns a descriptor that is readable after an interface has changed or, if 'addresses' is set,
 * after its addresses have; -1 with errno. */
int link_watch_open(bool addresses) must_check;
/* Makes it unreadable until the next change. */
void link_watch_drain(int fd);
