/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A memory key through which the adapter checks protection information on the way, in either
 * direction: mlx5dv_create_mkey(3), mlx5dv_wr_mkey_configure(3), mlx5dv_wr_set_mkey_sig_block(3).
 */
#pragma once

#include <infiniband/mlx5dv.h>
#include <stdbool.h>

#include "dif.h"
#include "endpoint.h"

/* What memory holds. */
enum key_memory {
	KEY_PROTECTED, /* blocks with protection information, as on the wire: checked and passed on
			*/
	KEY_BARE       /* data alone: protection information is made on the way out, checked and
			* removed on the way in */
};

struct key_use {
	const struct dif_format *format;
	enum key_memory memory;
	struct ibv_sge place; /* in memory; its length decides how many blocks */
	uint64_t block;	      /* number of the first */
	unsigned remote;      /* IBV_ACCESS_REMOTE_..., or 0 */
};

struct mlx5dv_mkey *key_create(struct endpoint *e);
void key_destroy(struct mlx5dv_mkey *key);

/*
 * Configures the key for a transfer; between endpoint_begin and endpoint_commit.  Work requests
 * behind it on this queue pair may use it at once; addresses in it begin at 0, and lengths count
 * the bytes on the wire.
 */
void key_configure(struct endpoint *e, struct mlx5dv_mkey *key, const struct key_use *use,
		   uint64_t wr_id);

/* Work requests that a configuration occupies in the ring: one for the key and one per domain. */
#define KEY_CONFIGURE_WRS 3u

/* Bytes of a block in memory. */
static inline uint32_t key_unit(const struct key_use *use)
{
	return use->memory == KEY_PROTECTED ? dif_unit(use->format) : use->format->block_size;
}

/*
 * The first error since the last call, in a transfer with the use that the key was configured for;
 * part DIF_NO_ERROR if there was none.  False (after complaining) if the check itself failed.
 * Completions must have been polled first: polling is what hands the adapter's report to the key.
 */
bool key_check(struct mlx5dv_mkey *key, const struct key_use *use, struct dif_error *error);
