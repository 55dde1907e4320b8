/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs, memory of each, and an indirect key of the second:
 *
 *     a, src --- requests, often through the key ---> b, dst, list
 */
#pragma once

#include "adapter/memory/mkey_indirect.h"
#include "adapter_device.h"
#include "check.h"
#include "prm/bsf.h"
#include "prm/wqe.h"

#define KEYED_PAIR_BYTES (2u << 20)
#define SIGNALED	 WQE_CTRL_CE_ALWAYS

struct keyed_pair {
	struct test_device device;
	struct device_qp a, b;
	uint8_t *src, *dst; /* KEYED_PAIR_BYTES each; a's and b's */
	struct mkey *ma, *mb;
	uint32_t lkey, rkey;
	struct mkey *list;
	uint32_t key; /* of the list */
};

/* A work request that changes a key; a case alters it before it is posted. */
struct change {
	struct umr_ctrl ctrl;
	struct umr_mkey_context context;
	struct umr_klm entry[16];
	uint32_t entries; /* in the work request */
	const uint8_t *bsf;
};

#define MASK_RIGHTS                                                  \
	(UMR_MASK_ACCESS_LOCAL_WRITE | UMR_MASK_ACCESS_REMOTE_READ | \
	 UMR_MASK_ACCESS_REMOTE_WRITE | UMR_MASK_ACCESS_ATOMIC)
#define CTX_ALL                                                      \
	(MKEY_CTX_ACCESS_LOCAL_WRITE | MKEY_CTX_ACCESS_REMOTE_READ | \
	 MKEY_CTX_ACCESS_REMOTE_WRITE | MKEY_CTX_ACCESS_ATOMIC)

void keyed_pair_up(struct keyed_pair *t);
/* The same with a key as mlx5dv_create_mkey makes it: b's, free, with room for 8 entries. */
void keyed_pair_with_empty(struct keyed_pair *t);
void keyed_pair_down(struct keyed_pair *t);

struct mkey_indirect_attr plain(uint32_t pdn, const struct umr_klm *e, uint32_t n, uint64_t length);
struct mkey_indirect_attr empty(uint32_t pdn);
/* The list, in place of the one before. */
void make(struct keyed_pair *t, const struct mkey_indirect_attr *attr);

struct umr_klm klm(uint32_t bytes, uint32_t key, const void *addr);
struct umr_klm header(uint32_t bytes, uint32_t repeat, uint16_t entries);
struct umr_klm stride(uint16_t step, uint16_t bytes, uint32_t key, const void *addr);

void keyed_pair_rdma(struct device_qp *q, uint8_t opcode, uint64_t raddr, uint32_t rkey,
		     uint64_t laddr, uint32_t lkey, uint32_t len);
void keyed_pair_send(struct device_qp *q, uint64_t laddr, uint32_t lkey, uint32_t len);
/* 0, or the syndrome of the error. */
uint8_t outcome(struct device_qp *q);
/* What a's write of its first bytes comes to. */
uint8_t write_through(struct keyed_pair *t, uint32_t key, uint64_t at, uint32_t len);
/* What a peer would be told. */
enum mkey_verdict verdict(struct keyed_pair *t, uint32_t key, uint64_t va, uint64_t len);

/* As mlx5dv_wr_mkey_configure with access flags and a list; the key's variant becomes 0x5a. */
struct change configure(const struct umr_klm *e, uint32_t n, uint64_t length);
/* The same of the first bytes of b's memory. */
struct change of_b(const struct keyed_pair *t, uint32_t len);
void post(struct device_qp *q, uint32_t key, const struct change *c);
/* b changes its key. */
uint8_t change(struct keyed_pair *t, const struct change *c);
