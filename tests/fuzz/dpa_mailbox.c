// SPDX-License-Identifier: BSD-2-Clause
/* See dpa_mailbox.h. */
#include "dpa_mailbox.h"

#include <string.h>

#include "driver/emulation/function.h"
#include "prm/cmd_cq_eq.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd_emulation.h"
#include "prm/cmd.h"
#include "prm/cmd_mkey.h"
#include "prm/ib.h"

#define HEAP_GUARD (64u << 10)

struct dpa_known dpa_known;

void dpa_known_forget(void)
{
	memset(&dpa_known, 0, offsetof(struct dpa_known, image));
}

uint32_t dpa_number(enum dpa_kind kind, uint8_t choice)
{
	return choice & 0x80 || !dpa_known.count[kind]
		       ? choice & 7
		       : dpa_known.numbers[kind]
					  [choice % min_u32(dpa_known.count[kind], DPA_NUMBERS)];
}

uint32_t dpa_handle(enum dpa_kind kind, uint8_t choice)
{
	return choice & 0x80 || !dpa_known.count[kind]
		       ? choice & 7
		       : dpa_known.handles[kind]
					  [choice % min_u32(dpa_known.count[kind], DPA_NUMBERS)];
}

void dpa_number_note(enum dpa_kind kind, uint32_t number, uint32_t handle)
{
	dpa_known.handles[kind][dpa_known.count[kind] % DPA_NUMBERS] = handle;
	dpa_known.numbers[kind][dpa_known.count[kind]++ % DPA_NUMBERS] = number;
}

uint64_t dpa_place(uint8_t choice)
{
	static const uint64_t nowhere[] = {0, 8, 4096, 1ull << 63, UINT64_MAX, UINT64_MAX - 7};

	return nowhere[choice % array_size(nowhere)];
}

/* A function of a process, or nearly so. */
uint64_t dpa_function(uint8_t choice)
{
	uint64_t code = dpa_known.code[choice >> 4];

	if (!code || choice % 8 == 7)
		return dpa_place(choice >> 4);
	if (choice % 8 == 6)
		return code + 0x1000; /* data */
	if (choice % 8 == 5)
		return code +
		       0xff0; /* behind the last function: zeroes of its page, never called */
	return code + small_offsets[choice % 8];
}

uint64_t dpa_memory(uint8_t choice)
{
	if (choice & 0x80 || !dpa_known.blocks)
		return dpa_place(choice);
	return dpa_known.memory[choice % min_u32(dpa_known.blocks, DPA_NUMBERS)] +
	       (choice & 0x40 ? 8 * (choice % 16) : 0);
}

uint64_t dpa_address_tame(uint64_t addr)
{
	for (unsigned i = 0; i < DPA_NUMBERS; i++) {
		uint64_t off = addr - dpa_known.code[i];

		if (!dpa_known.code[i] || off >= 4096)
			continue;
		for (unsigned k = 0; k < SMALL_FUNCTIONS; k++)
			if (off == small_offsets[k])
				return addr;
		return dpa_known.code[i];
	}
	return addr;
}

bool dpa_is_heap_guard(const void *addr)
{
	for (unsigned i = 0; i < DPA_NUMBERS; i++) {
		uint64_t off = (uintptr_t)addr - dpa_known.heap[i];

		if (dpa_known.heap[i] && off + HEAP_GUARD < dpa_known.heap_bytes + 2 * HEAP_GUARD &&
		    off >= dpa_known.heap_bytes)
			return true;
	}
	return false;
}

/* ---- objects ---- */

static size_t completions_fill(uint8_t *box, uint8_t first, uint8_t second)
{
	uint8_t *c = box + CREATE_CQ_CONTEXT;
	uint64_t memory = dpa_memory(second);

	prm_set(box, CMD_IN_OPCODE, PRM_OP_CREATE_CQ);
	prm_set(box, CREATE_CQ_UMEM, DPA_UMEM + dpa_number(KIND_PROCESS, first));
	prm_set(box, CREATE_CQ_OFFSET, memory);
	prm_set(c, CQC_DBR_UMEM, DPA_UMEM + dpa_number(KIND_PROCESS, first));
	prm_set(c, CQC_DBR_ADDR, memory);
	prm_set(c, CQC_LOG_SIZE, 2);
	prm_set(c, CQC_UAR_PAGE, dpa_number(KIND_DUAR, second));
	prm_set(c, CQC_APU, 1);
	prm_set(c, CQC_STATE, CQC_STATE_ALWAYS);
	/* some name an interrupt of the function, or an event queue, instead of a thread */
	if (first & 0x08) {
		prm_set(c, CQC_ELEMENT, CQC_ELEMENT_EQ);
		prm_set(c, CQC_EQN, dpa_number(KIND_EQ, second));
	} else if (first & 0x40) {
		prm_set(c, CQC_ELEMENT, CQC_ELEMENT_EMULATED_EQ);
		prm_set(c, CQC_EQN, dpa_number(KIND_INTERRUPT, second));
	} else {
		prm_set(c, CQC_EQN, dpa_number(KIND_THREAD, second));
	}
	prm_set(c, CQC_COMPRESSION, first >> 5 & 1);
	prm_set(c, CQC_LAYOUT, first >> 4 & 1);
	return CREATE_CQ_IN_BYTES;
}

static size_t key_fill(uint8_t *box, uint8_t first, uint8_t second)
{
	uint8_t *c = box + CREATE_MKEY_CONTEXT;

	prm_set(box, CMD_IN_OPCODE, PRM_OP_CREATE_MKEY);
	prm_set(box, CREATE_MKEY_UMEM, DPA_UMEM + dpa_number(KIND_PROCESS, first));
	prm_set(box, CREATE_MKEY_OFFSET, dpa_memory(second));
	prm_set(c, MKC_ACCESS_MODE_LOW, MKC_MODE_MTT);
	prm_set(c, MKC_LOCAL_WRITE, 1);
	prm_set(c, MKC_QPN, IB_QPN_MASK);
	prm_set(c, MKC_PD, dpa_number(KIND_PD, second));
	prm_set(c, MKC_START, dpa_memory(second));
	prm_set(c, MKC_LENGTH, 64);
	prm_set(c, MKC_LOG_ENTRY_BYTES, 12);
	return CREATE_MKEY_IN_BYTES;
}

static size_t events_fill(uint8_t *box, uint8_t first, uint8_t second)
{
	uint8_t *c = box + CREATE_EQ_CONTEXT;

	prm_set(box, CMD_IN_OPCODE, PRM_OP_CREATE_EQ);
	prm_set(box, CREATE_EQ_UMEM, DPA_UMEM + dpa_number(KIND_PROCESS, first));
	prm_set(box, CREATE_EQ_OFFSET, dpa_memory(second));
	memset(box + CREATE_EQ_EVENTS, 0xff, 32);
	prm_set(c, EQC_LOG_SIZE, 1);
	prm_set(c, EQC_UAR_PAGE, dpa_number(KIND_DUAR, second));
	prm_set(c, EQC_STATE, EQC_STATE_ARMED);
	prm_set(c, EQC_OVERRUN_IGNORE, first >> 6 & 1);
	return CREATE_EQ_IN_BYTES;
}

static size_t emulation_fill(uint8_t *box, enum dpa_kind kind, uint8_t first, uint8_t second)
{
	uint32_t vhca = first & 0x80 ? first : FUNCTION_VHCA_FIRST + 1;

	switch (kind) {
	case KIND_FUNCTION:
		prm_set(box, EMULATION_VHCA, vhca);
		return EMULATION_IN_BYTES;
	case KIND_DOORBELL:
		prm_set(box, DB_CQ_KIND, EMULATED_VIRTIO_NET);
		prm_set(box, DB_CQ_DEVICE, vhca);
		prm_set(box, DB_CQ_QUEUE, second & 0x80 ? second : second % 4u);
		prm_set(box, DB_CQ_CQN, dpa_number(KIND_CQ, second));
		return DB_CQ_BYTES;
	default:
		prm_set(box, EMULATED_EQ_DEVICE, vhca);
		prm_set(box, EMULATED_EQ_VECTOR, second >> 7);
		return EMULATED_EQ_BYTES;
	}
}

size_t dpa_object_fill(uint8_t *box, enum dpa_kind kind, uint8_t first, uint8_t second)
{
	static const uint16_t types[KIND_COUNT] = {
		[KIND_PROCESS] = GENERAL_DPA_PROCESS,
		[KIND_STREAM] = GENERAL_DPA_STREAM,
		[KIND_WINDOW] = GENERAL_DPA_WINDOW,
		[KIND_CMDQ] = GENERAL_DPA_CMDQ,
		[KIND_THREAD] = GENERAL_DPA_THREAD,
		[KIND_OUTBOX] = GENERAL_DPA_OUTBOX,
		[KIND_DUAR] = GENERAL_DUAR,
		[KIND_ALIAS] = GENERAL_DPA_ALIAS,
		[KIND_FUNCTION] = GENERAL_VIRTIO_NET_EMULATION,
		[KIND_DOORBELL] = GENERAL_DB_CQ_MAPPING,
		[KIND_INTERRUPT] = GENERAL_EMULATED_EQ,
	};
	uint32_t owner = dpa_number(KIND_PROCESS, first);

	prm_set(box, CMD_IN_OPCODE, PRM_OP_CREATE_GENERAL_OBJECT);
	prm_set(box, GENERAL_IN_TYPE, types[kind]);
	switch (kind) {
	case KIND_PROCESS:
		prm_set(box, DPA_PROCESS_ELF,
			second & 0x80 ? dpa_place(second) : (uintptr_t)dpa_known.image);
		prm_set(box, DPA_PROCESS_ELF_BYTES,
			second & 0x40 ? 8u * second : sizeof(dpa_known.image));
		return DPA_PROCESS_IN_BYTES;
	case KIND_STREAM:
		prm_set(box, DPA_STREAM_PROCESS, owner);
		prm_set(box, DPA_STREAM_MODE, second % 4);
		prm_set(box, DPA_STREAM_LEVEL, second >> 4);
		prm_set(box, DPA_STREAM_BUFFER, 2048);
		return DPA_STREAM_IN_BYTES;
	case KIND_WINDOW:
		prm_set(box, DPA_WINDOW_PROCESS, owner);
		prm_set(box, DPA_WINDOW_PD, dpa_number(KIND_PD, second));
		return DPA_WINDOW_IN_BYTES;
	case KIND_CMDQ:
		prm_set(box, DPA_CMDQ_PROCESS, owner);
		prm_set(box, DPA_CMDQ_WORKERS_NR, 1 + second % 3);
		prm_set(box, DPA_CMDQ_BATCH, 1 + second % 5);
		prm_set(box, DPA_CMDQ_RUNNING, second >> 7);
		return DPA_CMDQ_IN_BYTES;
	case KIND_THREAD:
		prm_set(box, DPA_THREAD_PROCESS, owner);
		prm_set(box, DPA_THREAD_FUNCTION, dpa_function(second));
		prm_set(box, DPA_THREAD_STRICT, first & 1);
		return DPA_THREAD_IN_BYTES;
	case KIND_OUTBOX:
		prm_set(box, DPA_OUTBOX_PROCESS, owner);
		prm_set(box, DPA_OUTBOX_UAR, dpa_number(KIND_DUAR, second));
		prm_set(box, DPA_OUTBOX_INITIAL, second & 1);
		return DPA_OUTBOX_IN_BYTES;
	case KIND_CQ:
		return completions_fill(box, first, second);
	case KIND_MKEY:
		return key_fill(box, first, second);
	case KIND_ALIAS:
		prm_set(box, DPA_ALIAS_NUMBER, second & 1 ? dpa_number(KIND_THREAD, first) : owner);
		prm_set(box, DPA_ALIAS_THREAD, second & 1);
		return DPA_ALIAS_IN_BYTES;
	case KIND_FUNCTION:
	case KIND_DOORBELL:
	case KIND_INTERRUPT:
		return emulation_fill(box, kind, first, second);
	case KIND_EQ:
		return events_fill(box, first, second);
	case KIND_PD:
		prm_set(box, CMD_IN_OPCODE, PRM_OP_ALLOC_PD);
		return CMD_IN_BYTES;
	case KIND_TIS:
	case KIND_QP:
	case KIND_RMP:
	case KIND_RQ:
	case KIND_SQ:
	case KIND_TIR:
		return dpa_queue_fill(box, kind, first, second);
	default:
		return CMD_IN_BYTES;
	}
}
