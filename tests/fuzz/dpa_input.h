/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The language of the dpa target's inputs.  A mailbox is built with good values from numbers that were given out
 * before; the input chooses these, then the length, and puts words of its own over it:
 *
 *      u8 context, u8 what, u16 length (0: the right one), u8 words;  per word: u8 offset / 4, u32 value
 */
#pragma once

#include "fuzz.h"

enum dpa_step {
	STEP_CREATE, /* what: enum dpa_kind; then u8 of each kind of thing that it names */
	STEP_GENERAL, /* what: op_mod; then u8 process or queue, u8 function, u8 of memory, u8 source */
	STEP_MODIFY,   /* what: handle */
	STEP_DESTROY,  /* what: handle */
	STEP_COMPLETE, /* u8 CQ: a completion without a message */
	STEP_READ,     /* a thread that waits for what a stream has */
	STEP_REOPEN,   /* the context is closed and another one opened */
	STEP_RING, /* what: which register of an outbox; then u8 of each kind of number, u32 value */
	STEP_DRIVER, /* what: a queue of the emulated function; then u32 value, as another process stores it */
	STEP_CHANGE, /* what: enum dpa_change; then u8 of that kind */
	STEP_POST, /* what: block; u8 offset / 64, u8 queue, u8 opcode, u8 flags, u8 key, u8 place, u16 length */
	STEP_COUNT,
};

enum dpa_kind {
	KIND_PROCESS,
	KIND_STREAM,
	KIND_WINDOW,
	KIND_CMDQ,
	KIND_THREAD,
	KIND_OUTBOX,
	KIND_DUAR,
	KIND_CQ,
	KIND_PD,
	KIND_MKEY,
	KIND_ALIAS,
	KIND_FUNCTION,
	KIND_DOORBELL,
	KIND_INTERRUPT,
	KIND_EQ,
	KIND_TIS,
	KIND_QP,
	KIND_RMP,
	KIND_RQ,
	KIND_SQ,
	KIND_TIR,
	KIND_COUNT,
};

/* A change of a queue, as its owner makes it. */
enum dpa_change {
	CHANGE_QP_INIT,
	CHANGE_QP_RTR, /* connected with itself */
	CHANGE_QP_RTS,
	CHANGE_QP_ERR,
	CHANGE_QP_RST,
	CHANGE_RQ_RDY,
	CHANGE_RQ_ERR,
	CHANGE_RQ_RST,
	CHANGE_SQ_RDY,
	CHANGE_SQ_ERR,
	CHANGE_SQ_RST,
	CHANGE_RMP_LIMIT,
	CHANGE_TIR_HASH,
	CHANGE_COUNT,
};

#define CONTEXTS 3u /* two of one device, one of another */
