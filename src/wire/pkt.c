/* SPDX-License-Identifier: BSD-2-Clause */
/* Names for traces. */
#include "wire/pkt.h"

static const char *const op_names[BTH_OP_COUNT] = {
	[BTH_SEND_FIRST] = "SEND_FIRST",
	[BTH_SEND_MIDDLE] = "SEND_MIDDLE",
	[BTH_SEND_LAST] = "SEND_LAST",
	[BTH_SEND_LAST_IMM] = "SEND_LAST_IMM",
	[BTH_SEND_ONLY] = "SEND_ONLY",
	[BTH_SEND_ONLY_IMM] = "SEND_ONLY_IMM",
	[BTH_WRITE_FIRST] = "WRITE_FIRST",
	[BTH_WRITE_MIDDLE] = "WRITE_MIDDLE",
	[BTH_WRITE_LAST] = "WRITE_LAST",
	[BTH_WRITE_LAST_IMM] = "WRITE_LAST_IMM",
	[BTH_WRITE_ONLY] = "WRITE_ONLY",
	[BTH_WRITE_ONLY_IMM] = "WRITE_ONLY_IMM",
	[BTH_READ_REQUEST] = "READ_REQUEST",
	[BTH_READ_RESP_FIRST] = "READ_RESP_FIRST",
	[BTH_READ_RESP_MIDDLE] = "READ_RESP_MIDDLE",
	[BTH_READ_RESP_LAST] = "READ_RESP_LAST",
	[BTH_READ_RESP_ONLY] = "READ_RESP_ONLY",
	[BTH_ACK] = "ACK",
	[BTH_ATOMIC_ACK] = "ATOMIC_ACK",
	[BTH_COMPARE_SWAP] = "COMPARE_SWAP",
	[BTH_FETCH_ADD] = "FETCH_ADD",
	[BTH_SEND_LAST_INV] = "SEND_LAST_INV",
	[BTH_SEND_ONLY_INV] = "SEND_ONLY_INV",
};

const char *bth_op_name(uint8_t opcode)
{
	const char *name = op_names[opcode & (BTH_OP_COUNT - 1)];

	return name ? name : "RESERVED";
}

const char *aeth_nak_name(uint8_t syndrome)
{
	static const char *const names[AETH_VALUE_MASK + 1] = {
		[NAK_PSN_SEQUENCE] = "PSN_SEQUENCE",
		[NAK_INVALID_REQUEST] = "INVALID_REQUEST",
		[NAK_REMOTE_ACCESS] = "REMOTE_ACCESS",
		[NAK_REMOTE_OPERATIONAL] = "REMOTE_OPERATIONAL",
		[NAK_INVALID_RD_REQUEST] = "INVALID_RD_REQUEST",
		[NAK_SENDER_FAULT] = "SENDER_FAULT",
	};
	const char *name = names[syndrome & AETH_VALUE_MASK];

	return name ? name : "RESERVED";
}
