/* SPDX-License-Identifier: BSD-2-Clause */
/* Signature keys; see key.h. */
#include "key.h"

#include <string.h>

#include "complain.h"

struct mlx5dv_mkey *key_create(struct endpoint *e)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = e->pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT |
				MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE,
		.max_entries = 1,
	};
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);

	if (!key)
		complain("cannot create a signature key: %m");
	return key;
}

void key_destroy(struct mlx5dv_mkey *key)
{
	if (key)
		mlx5dv_destroy_mkey(key);
}

void key_configure(struct endpoint *e, struct mlx5dv_mkey *key, const struct key_use *use,
		   uint64_t wr_id)
{
	const struct mlx5dv_sig_t10dif dif = {
		.bg_type = MLX5DV_SIG_T10DIF_CRC,
		.bg = 0,
		.app_tag = use->format->app_tag,
		.ref_tag = (uint32_t)use->block,
		.flags = MLX5DV_SIG_T10DIF_FLAG_REF_REMAP, /* one more with each block */
	};
	const struct mlx5dv_sig_block_domain domain = {
		.sig_type = MLX5DV_SIG_TYPE_T10DIF,
		.sig.dif = &dif,
		.block_size = use->format->block_size == 512 ? MLX5DV_BLOCK_SIZE_512
							     : MLX5DV_BLOCK_SIZE_4096,
	};
	/* Both domains alike: the adapter checks what comes in and copies it to the other side. */
	const struct mlx5dv_sig_block_attr attr = {
		.mem = use->memory == KEY_PROTECTED ? &domain : NULL,
		.wire = &domain,
		.check_mask = MLX5DV_SIG_MASK_T10DIF_GUARD | MLX5DV_SIG_MASK_T10DIF_APPTAG |
			      MLX5DV_SIG_MASK_T10DIF_REFTAG,
	};
	struct mlx5dv_mkey_conf_attr conf = {};

	e->wr->wr_id = wr_id;
	e->wr->wr_flags = IBV_SEND_INLINE; /* the configuration itself, not the data */
	mlx5dv_wr_mkey_configure(e->dv, key, 3, &conf);
	mlx5dv_wr_set_mkey_access_flags(e->dv, IBV_ACCESS_LOCAL_WRITE | use->remote);
	mlx5dv_wr_set_mkey_layout_list(e->dv, 1, &use->place);
	mlx5dv_wr_set_mkey_sig_block(e->dv, &attr);
}

/* What should have stood in the part of a block that a transfer has left in memory. */
static uint64_t right_value(const struct key_use *use, enum dif_part part, uint64_t index)
{
	const uint8_t *data = (const uint8_t *)(uintptr_t)use->place.addr + index * key_unit(use);

	switch (part) {
	case DIF_GUARD:
		return dif_guard(data, use->format->block_size);
	case DIF_APP_TAG:
		return use->format->app_tag;
	default:
		return (uint32_t)(use->block + index);
	}
}

bool key_check(struct mlx5dv_mkey *key, const struct key_use *use, struct dif_error *error)
{
	static const enum dif_part parts[] = {
		[MLX5DV_MKEY_NO_ERR] = DIF_NO_ERROR,
		[MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD] = DIF_GUARD,
		[MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG] = DIF_REF_TAG,
		[MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG] = DIF_APP_TAG,
	};
	struct mlx5dv_mkey_err found;
	int failed = mlx5dv_mkey_check(key, &found);
	uint64_t index;

	if (failed) {
		complain("cannot check the key of a transfer: %s", strerror(failed));
		return false;
	}
	*error = (struct dif_error){.part = DIF_NO_ERROR};
	if (found.err_type == MLX5DV_MKEY_NO_ERR)
		return true;
	/* Of the failing unit it is the first byte (manual page) or the last (devices). */
	index = found.err.sig.offset / dif_unit(use->format);
	if ((unsigned)found.err_type >= sizeof(parts) / sizeof(parts[0]) ||
	    index >= use->place.length / key_unit(use)) {
		complain("a key reports error %d at offset %llu, which cannot be",
			 (int)found.err_type, (unsigned long long)found.err.sig.offset);
		return false;
	}
	error->part = parts[found.err_type];
	error->block = use->block + index;
	error->expected = found.err.sig.expected_value;
	error->actual = found.err.sig.actual_value;
	/*
	 * Which of the two stood in the field?  "expected" to mlx5dv_mkey_check(3), "actual" to
	 * devices.  Here "expected" is what should have, whoever reports.
	 */
	if (error->actual == right_value(use, error->part, index)) {
		error->actual = error->expected;
		error->expected = found.err.sig.actual_value;
	}
	return true;
}
