/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block signatures: integrity fields between data blocks, checked, made, copied, stripped and
 * changed while data moves between memory and the wire (mlx5dv_wr_set_mkey_sig_block(3)).
 *
 *	BSF of a UMR	 sig_config_decode()	-> struct sig_config, or a reason for the refusal
 *	once per key	 sig_plan_make()	-> struct sig_plan, for each direction
 *	access		 sig_place()		what of the key's memory it touches
 *			 sig_stream_begin()	at the offset of the access
 *			 sig_stream_lead(), sig_stream_prime()	if that is inside of a unit
 *	each packet	 sig_stream_feed()	runs of memory on one side, the payload on the other
 *	end		 sig_stream_finish()	-> struct sig_error
 *	first error	 sig_psv_raise(), sig_error_report()
 *
 * An access to the key names offset and length of the wire's stream.  To gather, feed the memory
 * runs of [sig_place(off), sig_place(off + len)) and let each packet's payload be the destination;
 * after the last the memory cursor is at its end too.  To scatter it is the other way about.  A
 * packet that is sent again starts from a copy of the stream, or begins anew at its offset.
 *
 * A plain library: no globals, no allocation, no locks.  A stream belongs to one thread at a time;
 * plans are read only, and a PSV is safe to share.
 */
#pragma once

#include "adapter/sig/domain.h"
#include "adapter/sig/error.h"
#include "adapter/sig/plan.h"
#include "adapter/sig/stream.h"
