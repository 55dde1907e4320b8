/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what a carrier knows of the machines that its port exchanges packets with. */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "registry/registry.h"
#include "registry/tied_peers.h"

struct wire;

/* Maps it, to be read.  NULL: the process in the slot is no carrier of UDP, or has ended. */
const struct tied_peers *tied_peers_map(const struct slot *carrier) must_check;
void tied_peers_unmap(const struct tied_peers *p);
/* The row of an address; NULL: it has none. */
const struct tied_peer *tied_peer_find(const struct tied_peers *p,
				       const union ib_gid *gid) must_check;

/* Copies the row of an address as the carrier of this port has it.  False: there is none. */
bool wire_tied_peer(const struct wire *w, const union ib_gid *gid,
		    struct tied_peer *out) must_check;
