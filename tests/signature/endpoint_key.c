// SPDX-License-Identifier: BSD-2-Clause
/* Indirect keys: mlx5dv_create_mkey(3), mlx5dv_wr_mkey_configure(3). */
#include <errno.h>

#include "endpoint.h"
#include "reference.h"

struct ibv_sge endpoint_sge(const struct endpoint *d, int key, uint64_t at, uint32_t bytes)
{
	if (key != ORDER_WHOLE)
		return (struct ibv_sge){.addr = at, .length = bytes, .lkey = d->key[key]->lkey};
	return (struct ibv_sge){
		.addr = (uint64_t)(uintptr_t)d->memory + at,
		.length = bytes,
		.lkey = d->mr->lkey,
	};
}

int endpoint_key_create(struct endpoint *d, int key, uint32_t flags, uint16_t entries,
			struct key_names *out)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = d->pd,
		.create_flags = flags,
		.max_entries = entries,
	};

	errno = 0;
	d->key[key] = mlx5dv_create_mkey(&attr);
	if (!d->key[key])
		return errno ? errno : EIO;
	*out = (struct key_names){d->key[key]->lkey, d->key[key]->rkey, attr.max_entries};
	return 0;
}

/* A domain as the library wants it, in one piece. */
struct dv_domain {
	struct mlx5dv_sig_t10dif dif;
	struct mlx5dv_sig_crc crc;
	struct mlx5dv_sig_block_domain block;
};

static const struct mlx5dv_sig_block_domain *dv_domain(const struct domain *d, struct dv_domain *dv)
{
	static const enum mlx5dv_sig_crc_type crc_type[SIGNATURES] = {
		[CRC32] = MLX5DV_SIG_CRC_TYPE_CRC32,
		[CRC32C] = MLX5DV_SIG_CRC_TYPE_CRC32C,
		[CRC64] = MLX5DV_SIG_CRC_TYPE_CRC64_XP10,
	};

	if (d->type == NO_SIGNATURE)
		return NULL;
	dv->block = (struct mlx5dv_sig_block_domain){.block_size = d->size};
	if (reference_is_dif(d->type)) {
		dv->dif = (struct mlx5dv_sig_t10dif){
			.bg_type =
				d->type == DIF_CRC ? MLX5DV_SIG_T10DIF_CRC : MLX5DV_SIG_T10DIF_CSUM,
			.bg = d->ones ? UINT16_MAX : 0,
			.app_tag = d->app,
			.ref_tag = d->ref,
			.flags = d->flags,
		};
		dv->block.sig_type = MLX5DV_SIG_TYPE_T10DIF;
		dv->block.sig.dif = &dv->dif;
		return &dv->block;
	}
	dv->crc = (struct mlx5dv_sig_crc){
		.type = crc_type[d->type],
		.seed = !d->ones	   ? 0
			: d->type == CRC64 ? UINT64_MAX
					   : UINT32_MAX,
	};
	dv->block.sig_type = MLX5DV_SIG_TYPE_CRC;
	dv->block.sig.crc = &dv->crc;
	return &dv->block;
}

static void set_list(struct endpoint *d, const struct key_conf *conf)
{
	struct ibv_sge list[ORDER_PIECES];

	for (int i = 0; i < conf->pieces; i++) {
		const struct piece *p = &conf->piece[i];

		list[i] = endpoint_sge(d, p->key, p->at, p->bytes);
	}
	mlx5dv_wr_set_mkey_layout_list(d->mqpx, conf->pieces, list);
}

static void set_interleaved(struct endpoint *d, const struct key_conf *conf)
{
	struct mlx5dv_mr_interleaved list[ORDER_PIECES];

	for (int i = 0; i < conf->pieces; i++) {
		const struct piece *p = &conf->piece[i];
		struct ibv_sge sge = endpoint_sge(d, p->key, p->at, p->bytes);

		list[i] = (struct mlx5dv_mr_interleaved){
			.addr = sge.addr,
			.bytes_count = p->bytes,
			.bytes_skip = p->skip,
			.lkey = sge.lkey,
		};
	}
	mlx5dv_wr_set_mkey_layout_interleaved(d->mqpx, conf->repeat, conf->pieces, list);
}

static void set_signature(struct endpoint *d, const struct key_conf *conf)
{
	struct dv_domain mem;
	struct dv_domain wire;
	struct mlx5dv_sig_block_attr attr = {
		.mem = dv_domain(&conf->mem, &mem),
		.wire = dv_domain(&conf->wire, &wire),
		.flags = conf->sig_flags,
		.check_mask = conf->check_mask,
		.copy_mask = conf->copy_mask,
	};

	mlx5dv_wr_set_mkey_sig_block(d->mqpx, &attr);
}

void endpoint_key_build(struct endpoint *d, int key, const struct key_conf *conf)
{
	struct mlx5dv_mkey_conf_attr attr = {.conf_flags = conf->conf_flags};
	uint8_t setters = conf->set_access + (conf->layout != LAYOUT_KEPT) + conf->set_signature;

	d->qpx->wr_id = conf->wr_id;
	d->qpx->wr_flags = IBV_SEND_INLINE | conf->wr_flags |
			   (conf->unsignaled ? 0u : (unsigned)IBV_SEND_SIGNALED);
	mlx5dv_wr_mkey_configure(d->mqpx, d->key[key], setters, &attr);
	if (conf->set_access)
		mlx5dv_wr_set_mkey_access_flags(d->mqpx, conf->access);
	if (conf->layout == LAYOUT_LIST)
		set_list(d, conf);
	else if (conf->layout == LAYOUT_INTERLEAVED)
		set_interleaved(d, conf);
	if (conf->set_signature)
		set_signature(d, conf);
}

int endpoint_key_configure(struct endpoint *d, int key, const struct key_conf *conf)
{
	ibv_wr_start(d->qpx);
	endpoint_key_build(d, key, conf);
	return ibv_wr_complete(d->qpx);
}
