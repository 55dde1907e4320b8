/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A user access region (PRM, "UAR page format"): the page of registers that a program stores to.
 * It has two BlueFlame registers for send queues, each of two halves that the program uses in turn,
 * one register for the arm requests of CQs, and two for the consumer indices of EQs, of which one
 * arms.
 *
 * A store to a half begins with the control segment of the last WQE, struct wqe_ctrl, whose first 8
 * bytes name the queue pair.  A store for a CQ holds the CQ's arm record and number; a store for an
 * EQ holds 32 bits of its number and its consumer index.  None is ever 0.
 */
#pragma once

#define UAR_BYTES     4096u
#define UAR_CQ	      0x20u
#define UAR_EQ_ARM    0x40u
#define UAR_EQ	      0x48u  /* sets the index without arming */
#define UAR_SQ	      0x800u /* the first half of the first register */
#define UAR_SQ_HALF   0x100u
#define UAR_SQ_HALVES 4u
