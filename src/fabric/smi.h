/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management interface: hop pointers of directed routes (IBTA 14.2.2).  Pure functions of a
 * MAD, for the daemon's nodes and for a program's write, which must refuse what the kernel refuses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "prm/mad.h"

enum smi_way {
	SMI_DISCARD,
	SMI_LOCAL,  /* handle it at this node, which is where the route ends */
	SMI_OUT,    /* send it out of *port */
	SMI_BY_LID, /* the directed part is over, or has not begun: on by its LIDs */
};

/*
 * A program or an agent at port 'own' sends it; the MAD's hop pointer is moved on.  SMI_DISCARD: a
 * program's write is EINVAL.
 */
enum smi_way smi_send(uint8_t *mad, bool is_switch, uint8_t own, uint8_t *port) must_check;
/* It has come in by 'ingress' of a node with so many ports; hop pointer and return path follow. */
enum smi_way smi_receive(uint8_t *mad, bool is_switch, uint8_t ingress, uint8_t nports,
			 uint8_t *port) must_check;
