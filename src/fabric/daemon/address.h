/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Assigns the addresses of the ports of a topology: GUIDs, LIDs, MACs, GIDs, P_Keys.
 *
 * Ethernet ports of the first host stand for a network interface of this machine and have its MAC
 * and addresses.  The other hosts exist only here: their MACs are locally administered
 * (02:53:48:hh:hh:pp; hh:hh host, pp port), and their IPv4 addresses come from 198.18.0.0/15, which
 * no real network uses because RFC 2544 sets it aside for benchmarks.
 *
 * Each function logs what it cannot do, with the names of host and device.
 */
#pragma once

#include "fabric/daemon/fabric.h"

/* How many entries a port of that host needs in the pool of GIDs. */
uint32_t address_gids(uint32_t host, bool ethernet);
uint64_t address_guid(uint32_t host, uint32_t host_index);
int address_ethernet(struct fabric *f, uint32_t row) must_check;

/*
 * Gives an Ethernet port one address, that of the network behind its carrier, in place of its own,
 * as RoCE v2 at the indexes 0 and 3: programs that choose no index take the first, and 3 is where an
 * IPv4 address of RoCE v2 is on a card.  -EADDRINUSE: another port has it.
 */
int address_rename(struct fabric *f, uint32_t row, const union ib_gid *gid) must_check;
/* Gives the port its own addresses back; true: it did not have them. */
bool address_restore(struct fabric *f, uint32_t row);
