/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests that a family of objects takes, as data: its ioctl methods with their attributes,
 * and its commands.  Each family has its tables beside its handlers; uverbs/ioctl.c lists the
 * families.  Numbers, sizes and what is optional follow the kernel's uverbs and mlx5_ib.
 */
#pragma once

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>

#include "driver/uverbs/core/request.h"

/* ---- ioctl methods ---- */

struct method_spec {
	uint16_t object;
	uint16_t method;
	bool before_context; /* allowed before GET_CONTEXT */
	bool inherited;	     /* allowed in a forked child, where it runs without the file's lock */
	bool uhw;	     /* takes the provider's private parts */
	uint8_t nattrs;
	const char *name;
	const struct attr_spec *attrs;
	int (*run)(struct ureq *req);
};

#define OPT	   .optional = 1
#define IN(n)	   ATTR_PTR_IN, .min = (n), .max = (n)
#define OUT(n)	   ATTR_PTR_OUT, .min = (n), .max = (n)
#define IN_MIN(n)  ATTR_PTR_IN, .min = (n), .max = UINT16_MAX
#define OUT_MIN(n) ATTR_PTR_OUT, .min = (n), .max = UINT16_MAX
/* A number: always 8 bytes, whatever the width of what it stands for. */
#define CONST_IN ATTR_PTR_IN, .min = 8, .max = 8
/* Bits, which libraries send as 4 or as 8 bytes: for ureq_flags. */
#define FLAGS_IN   ATTR_PTR_IN, .min = 4, .max = 8
#define IDR(what)  ATTR_IDR, .object = (what)
#define CHANNEL(k) ATTR_FD, .object = (k)

#define METHOD_ROW(object_id, method_id, fn, list)                                         \
	.object = (object_id), .method = (method_id), .name = #method_id, .attrs = (list), \
	.nattrs = array_size(list), .run = (fn)
#define METHOD(object_id, method_id, fn, list)             \
	{                                                  \
		METHOD_ROW(object_id, method_id, fn, list) \
	}
#define INHERITED_METHOD(object_id, method_id, fn, list)                      \
	{                                                                     \
		METHOD_ROW(object_id, method_id, fn, list), .inherited = true \
	}
#define UHW_METHOD(object_id, method_id, fn, list)                      \
	{                                                               \
		METHOD_ROW(object_id, method_id, fn, list), .uhw = true \
	}

/* ---- commands ---- */

/*
 * Sizes are the least that an ABI 6 program sends and expects; ubuf_read and ubuf_write handle what
 * newer programs have beyond.
 */
struct command_spec {
	uint32_t number; /* with IB_USER_VERBS_CMD_FLAG_EXTENDED */
	const char *name;
	int (*run)(struct ureq *req);
	uint16_t in; /* legacy: core struct without header; extended: what must be there */
	uint16_t out;
	bool has_response; /* the struct begins with the address of the response */
	bool uhw;	   /* legacy: what follows the core struct is the provider's part */
	bool before_context;
	bool inherited; /* only looks: a forked child may call it, as in struct method_spec */
};

#define END_OF(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

#define CMD_ROW(num, fn, type) \
	.number = IB_USER_VERBS_CMD_##num, .name = #num, .run = (fn), .in = sizeof(struct type)
#define CMD(num, fn, type)             \
	{                              \
		CMD_ROW(num, fn, type) \
	}
#define CMD_RESP(num, fn, type, resp)                                                    \
	{                                                                                \
		CMD_ROW(num, fn, type), .out = sizeof(struct resp), .has_response = true \
	}
#define CMD_LOOK(num, fn, type, resp)                                                     \
	{                                                                                 \
		CMD_ROW(num, fn, type), .out = sizeof(struct resp), .has_response = true, \
					.inherited = true                                 \
	}
#define CMD_UHW(num, fn, type)                      \
	{                                           \
		CMD_ROW(num, fn, type), .uhw = true \
	}
#define CMD_RESP_UHW(num, fn, type, resp)                                                 \
	{                                                                                 \
		CMD_ROW(num, fn, type), .out = sizeof(struct resp), .has_response = true, \
					.uhw = true                                       \
	}
#define EX(num, fn, need_in, need_out)                                                  \
	{                                                                               \
		.number = IB_USER_VERBS_EX_CMD_##num | IB_USER_VERBS_CMD_FLAG_EXTENDED, \
		.name = "EX_" #num, .run = (fn), .in = (need_in), .out = (need_out)     \
	}

/* ---- families ---- */

struct uverbs_family {
	const struct method_spec *methods;
	size_t nmethods;
	const struct command_spec *commands;
	size_t ncommands;
};

#define METHODS(list)  .methods = (list), .nmethods = array_size(list)
#define COMMANDS(list) .commands = (list), .ncommands = array_size(list)
