// SPDX-License-Identifier: BSD-2-Clause
/*
 * Commands are arrays of big-endian words.  Their fields have public names and places (in the headers of
 * rdma-core and of Linux); those that a receiving RC queue pair needs are here.
 */
#include "receiver.h"

#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>

/* A field: its first bit, counted from the most significant one of the command's first byte, and its bits. */
struct field {
	unsigned int at, bits;
};

#define COMMAND_BYTES 272u
#define ANSWER_BYTES  16u
#define QPC	      0xc0u	    /* the context of the queue pair in both commands */
#define PATH	      (QPC + 0xc0u) /* and the address path in that */

enum { CREATE_QP = 0x500, RST2INIT_QP = 0x502, INIT2RTR_QP = 0x503 };

static const struct field opcode = {0x00, 16};
static const struct field number = {0x48,
				    24}; /* of the queue pair, in commands and in the answer */
static const struct field ring_address = {0x800, 64}, ring_umem = {0x840, 32};
static const struct field service = {QPC + 0x08, 8};
static const struct field pd = {QPC + 0x28, 24};
static const struct field mtu = {QPC + 0x40, 3};
static const struct field log_rq_size = {QPC + 0x49, 4};
static const struct field no_sq = {QPC + 0x50, 1};
static const struct field remote_qpn = {QPC + 0xa8, 24};
static const struct field min_rnr_nak = {QPC + 0x4a3, 5};
static const struct field cqn_receive = {QPC + 0x4e8, 24};
static const struct field record_address = {QPC + 0x500, 64};
static const struct field record_umem = {QPC + 0x720, 32};
static const struct field path_lid = {PATH + 0x30, 16};
static const struct field path_port = {PATH + 0x128, 8};

static void put(uint8_t *command, struct field field, uint64_t value)
{
	for (unsigned int bit = field.at + field.bits; bit-- > field.at; value >>= 1)
		if (value & 1)
			command[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
}

static uint64_t get(const uint8_t *command, struct field field)
{
	uint64_t value = 0;

	for (unsigned int bit = field.at; bit < field.at + field.bits; bit++)
		value = value << 1 | (command[bit / 8] >> (7 - bit % 8) & 1);
	return value;
}

static uint32_t number_of_pd(struct ibv_pd *of)
{
	struct mlx5dv_pd out;
	struct mlx5dv_obj object = {.pd = {.in = of, .out = &out}};

	if (mlx5dv_init_obj(&object, MLX5DV_OBJ_PD)) {
		perror("mlx5dv_init_obj");
		exit(1);
	}
	return out.pdn;
}

void receiver_make(struct receiver *receiver, struct ibv_context *context,
		   struct flexio_process *process, uint32_t cqn, flexio_uintptr_t ring,
		   unsigned int log_entries, flexio_uintptr_t record)
{
	uint8_t command[COMMAND_BYTES] = {0}, answer[ANSWER_BYTES] = {0};
	/* To commands, the memory of a process is one umem, in which places are its addresses. */
	uint32_t umem = flexio_process_get_dumem_id(process);

	put(command, opcode, CREATE_QP);
	put(command, ring_umem, umem);
	put(command, ring_address, ring);
	put(command, record_umem, umem);
	put(command, record_address, record);
	put(command, service, 0); /* RC */
	put(command, pd, number_of_pd(flexio_process_get_pd(process)));
	put(command, no_sq, 1);
	put(command, log_rq_size, log_entries);
	put(command, cqn_receive, cqn);
	receiver->object =
		mlx5dv_devx_obj_create(context, command, sizeof(command), answer, sizeof(answer));
	if (!receiver->object) {
		perror("a queue pair");
		exit(1);
	}
	receiver->number = (uint32_t)get(answer, number);
}

static void receiver_move(struct receiver *receiver, unsigned int command_opcode, uint32_t qpn,
			  uint16_t lid)
{
	uint8_t command[COMMAND_BYTES] = {0}, answer[ANSWER_BYTES] = {0};

	put(command, opcode, command_opcode);
	put(command, number, receiver->number);
	put(command, mtu, IBV_MTU_1024);
	put(command, remote_qpn, qpn);
	put(command, min_rnr_nak, 12); /* 0.64 ms */
	put(command, path_port, 1);
	put(command, path_lid, lid);
	if (mlx5dv_devx_obj_modify(receiver->object, command, sizeof(command), answer,
				   sizeof(answer))) {
		perror("the queue pair's state");
		exit(1);
	}
}

void receiver_connect(struct receiver *receiver, uint32_t qpn, uint16_t lid)
{
	receiver_move(receiver, RST2INIT_QP, qpn, lid);
	receiver_move(receiver, INIT2RTR_QP, qpn, lid);
}

void receiver_free(struct receiver *receiver)
{
	if (mlx5dv_devx_obj_destroy(receiver->object)) {
		perror("the queue pair's end");
		exit(1);
	}
}
