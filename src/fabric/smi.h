/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management interface: hop pointers of directed routes (IBTA 14.2.2).  These are pure
 * functions of a MAD, for the daemon's nodes and for a program's write, which must refuse what the
 * kernel refuses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/mad.h"

enum smi_way {
	SMI_DISCARD,
	SMI_LOCAL,  /* handle it at this node, because the route ends here */
	SMI_OUT,    /* send it out of *port */
	SMI_BY_LID, /* the directed part is over, or has not begun: go on by its LIDs */
};

/*
 * A program or an agent at port 'own' sends the MAD: moves its hop pointer on.  SMI_DISCARD: a
 * program's write fails with EINVAL.
 */
enum smi_way smi_send(uint8_t *mad, bool is_switch, uint8_t own, uint8_t *port) must_check;
/*
 * The MAD has come in by 'ingress' of a node with nports ports: moves hop pointer and return path
 * on.
 */
enum smi_way smi_receive(uint8_t *mad, bool is_switch, uint8_t ingress, uint8_t nports,
			 uint8_t *port) must_check;
