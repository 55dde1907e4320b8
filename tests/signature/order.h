/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a test asks of one side of a connection, as plain data: the side may live in this process or
 * in another one (endpoint_proxy.h), and a test does not know which.
 *
 * Memory is named by its offset in the side's memory region, keys by a small number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/mlx5dv.h>

#define ORDER_MEMORY (256u * 1024)
#define ORDER_KEYS   16
#define ORDER_PIECES 32
#define ORDER_SGES   4
#define ORDER_WRS    8
#define ORDER_WCS    32
#define ORDER_WHOLE  (-1) /* instead of a key: the memory region itself */

enum signature { NO_SIGNATURE, DIF_CRC, DIF_CSUM, CRC32, CRC32C, CRC64, SIGNATURES };

struct domain {
	enum signature type;
	enum mlx5dv_block_size size;
	bool ones; /* the seed; otherwise zero */
	uint16_t app;
	uint32_t ref;
	uint16_t flags; /* MLX5DV_SIG_T10DIF_FLAG_* */
};

enum layout { LAYOUT_KEPT, LAYOUT_LIST, LAYOUT_INTERLEAVED };

struct piece {
	uint32_t at;
	uint32_t bytes;
	uint32_t skip;
	int16_t key; /* ORDER_WHOLE or another key, of which at is then an offset */
};

struct key_conf {
	uint32_t conf_flags; /* MLX5DV_MKEY_CONF_FLAG_* */
	bool set_access;
	uint32_t access;
	enum layout layout;
	uint32_t repeat;
	uint16_t pieces;
	struct piece piece[ORDER_PIECES];
	bool set_signature;
	struct domain mem;
	struct domain wire;
	uint32_t sig_flags; /* MLX5DV_SIG_BLOCK_ATTR_FLAG_* */
	uint8_t check_mask;
	uint8_t copy_mask;
	bool unsignaled;
	unsigned wr_flags; /* more of them */
	uint64_t wr_id;
};

struct slice {
	int key;
	uint64_t at;
	uint32_t bytes;
};

struct request {
	enum ibv_wr_opcode opcode;
	unsigned flags; /* IBV_SEND_* */
	uint64_t id;
	unsigned slices;
	struct slice slice[ORDER_SGES];
	uint32_t rkey; /* also what to invalidate */
	uint64_t raddr;
	uint64_t operand[2]; /* of atomics */
};

enum order_code {
	ORDER_OPEN,
	ORDER_CONNECT,
	ORDER_KEY_CREATE,
	ORDER_KEY_CONFIGURE,
	ORDER_KEY_CHECK,
	ORDER_KEY_DESTROY,
	ORDER_POST,
	ORDER_RECEIVE,
	ORDER_POLL,
	ORDER_CANCEL,
	ORDER_MODIFY,
	ORDER_STATE,
	ORDER_EVENT,
	ORDER_CODES
};

struct open_order {
	char device[64];
	int gid_index;
	enum ibv_mtu mtu;
	bool pipelining;
	bool own_cqs;	    /* not one for sends and receives */
	uint32_t mr_access; /* IBV_ACCESS_* */
	unsigned max_send_wr;
	unsigned inline_bytes;
	unsigned cqe_bytes; /* 0: as ibv_create_cq has it */
};

/* What a side must know of the other one. */
struct address {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	uint16_t lid;
	uint32_t rkey;
	uint64_t base; /* where its memory begins */
	struct mlx5dv_sig_caps caps;
};

struct key_names {
	uint32_t lkey;
	uint32_t rkey;
	uint16_t entries;
};

struct order {
	enum order_code code;
	int key;
	union {
		struct open_order open;
		struct address peer;
		struct {
			uint32_t flags;
			uint16_t entries;
		} create;
		struct key_conf conf;
		struct {
			unsigned count;
			struct request request[ORDER_WRS];
		} post;
		struct {
			uint64_t id;
			unsigned slices;
			struct slice slice[ORDER_SGES];
		} receive;
		struct {
			bool receives;
			unsigned count;
			unsigned limit_ms;
		} poll;
		uint64_t wr_id;
		struct {
			enum ibv_qp_state state;
			bool current; /* say that it was in SQD */
		} modify;
		unsigned limit_ms;
	};
};

struct answer {
	int status; /* 0 or an errno value; of cancel what it returned */
	union {
		struct address address;
		struct key_names names;
		struct mlx5dv_mkey_err error;
		struct {
			unsigned count;
			struct ibv_wc wc[ORDER_WCS];
		} poll;
		enum ibv_qp_state state;
		struct {
			bool happened;
			enum ibv_event_type type;
		} event;
	};
};
