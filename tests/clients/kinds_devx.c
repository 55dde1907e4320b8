// SPDX-License-Identifier: BSD-2-Clause
/* See kinds.h. */
#include "kinds.h"

#include <stdlib.h>
#include <string.h>

#include "prm/cmd_mkey.h"

#define BYTES	 4096u
#define ANY_QPN	 0xffffffu
#define LOW_BYTE 0x5au

static uint32_t pd_number(struct ibv_pd *pd)
{
	struct mlx5dv_pd out = {0};
	struct mlx5dv_obj obj = {.pd = {.in = pd, .out = &out}};

	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD))
		device_die("mlx5dv_init_obj: %m");
	return out.pdn;
}

void kinds_devx_key(const struct device_port *port, struct ibv_pd *pd)
{
	const uint32_t access = IBV_ACCESS_LOCAL_WRITE;
	uint8_t in[CREATE_MKEY_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	uint8_t *mkc = in + CREATE_MKEY_CONTEXT;
	void *memory = aligned_alloc(BYTES, BYTES);
	struct mlx5dv_devx_umem *umem =
		memory ? mlx5dv_devx_umem_reg(port->ctx, memory, BYTES, access) : NULL;

	if (!umem)
		device_die("mlx5dv_devx_umem_reg: %m");
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_MKEY);
	prm_set(in, CREATE_MKEY_UMEM, umem->umem_id);
	prm_set(mkc, MKC_PD, pd_number(pd));
	prm_set(mkc, MKC_QPN, ANY_QPN);
	prm_set(mkc, MKC_VARIANT, LOW_BYTE);
	prm_set(mkc, MKC_ACCESS_MODE_LOW, MKC_MODE_MTT);
	prm_set(mkc, MKC_LOCAL_READ, 1);
	prm_set(mkc, MKC_LOCAL_WRITE, 1);
	prm_set(mkc, MKC_REMOTE_READ, 1);
	prm_set(mkc, MKC_REMOTE_WRITE, 1);
	prm_set(mkc, MKC_START, (uintptr_t)memory);
	prm_set(mkc, MKC_LENGTH, BYTES);
	prm_set(mkc, MKC_LIST_OCTOWORDS, 1);
	if (!mlx5dv_devx_obj_create(port->ctx, in, sizeof(in), out, sizeof(out)))
		device_die("CREATE_MKEY: %m");
	kinds_tell("devx", prm_get32(out, CMD_OUT_NUMBER) << 8 | LOW_BYTE);
}
