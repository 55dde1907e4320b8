/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers of an outbox page, 4 KiB, 64 bits each, little-endian, at these byte offsets.
 *
 * For programs that name the registers.  Here an outbox is no memory: doorbells are rung by the
 * functions of flexio_dev_queue_access.h, and a store to an outbox page is a fault.
 */
#ifndef _FLEXIO_DEV_DPA_ARCH_H_
#define _FLEXIO_DEV_DPA_ARCH_H_

#include <stdint.h>

#define OUTBOX_PAGE_BSIZE (4096)

#define OUTBOX_UCTL	       (0x000)
#define OUTBOX_BUFFER	       (0x040)
#define OUTBOX_CQ_DB	       (0x100)
#define OUTBOX_EQ_DB_REARM     (0x140)
#define OUTBOX_EQ_DB_NO_REARM  (0x180)
#define OUTBOX_SXD_DB	       (0x1c0)
#define OUTBOX_EMU_CAP	       (0x200)
#define OUTBOX_EMU_CAP_TRIGGER (0x240)
#define OUTBOX_RXT_DB	       (0x280)
#define OUTBOX_RXT_DONE0       (0x2c0)
#define OUTBOX_RXT_DONE1       (0x2c8)
#define OUTBOX_RXC_RD	       (0x300)
#define OUTBOX_CC_DB	       (0x340)
#define OUTBOX_SW_RESERVE      (0xfc0)

#define __OUTBOX_FIELD(value, position, width) \
	(((uint64_t)(value) & ((UINT64_C(1) << (width)) - 1)) << (position))

/** Values of the registers, made of their fields. */
#define OUTBOX_V_CQ_DB(cqn, ci)		 (__OUTBOX_FIELD(cqn, 0, 24) | __OUTBOX_FIELD(ci, 32, 24))
#define OUTBOX_V_EQ_DB_REARM(eqn, ci)	 (__OUTBOX_FIELD(eqn, 0, 24) | __OUTBOX_FIELD(ci, 32, 26))
#define OUTBOX_V_EQ_DB_NO_REARM(eqn, ci) (__OUTBOX_FIELD(eqn, 0, 24) | __OUTBOX_FIELD(ci, 32, 26))
#define OUTBOX_V_SXD_DB(wqe_index, queue) \
	(__OUTBOX_FIELD(wqe_index, 0, 16) | __OUTBOX_FIELD(queue, 32, 24))
#define OUTBOX_V_RXT_DB(cqn)	     __OUTBOX_FIELD(cqn, 0, 24)
#define OUTBOX_V_EMU_CAP(qpn, index) (__OUTBOX_FIELD(qpn, 0, 24) | __OUTBOX_FIELD(index, 32, 26))
#define OUTBOX_V_EMU_CAP_TRIGGER(qpn, index) \
	(__OUTBOX_FIELD(qpn, 0, 24) | __OUTBOX_FIELD(index, 32, 26))
#define OUTBOX_V_CC_DB(rate, rtt_req, next_act, queue)                  \
	(__OUTBOX_FIELD(rate, 0, 32) | __OUTBOX_FIELD(rtt_req, 32, 1) | \
	 __OUTBOX_FIELD(next_act, 34, 2) | __OUTBOX_FIELD(queue, 48, 16))

/** outbox_write() - store @value in the register OUTBOX_@reg of the outbox page at @page. */
#define outbox_write(page, reg, value) \
	(*(volatile uint64_t *)((uintptr_t)(page) + (OUTBOX_##reg)) = (value))

#endif
