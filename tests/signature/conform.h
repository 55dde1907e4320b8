/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of what the manual pages promise: mlx5dv_wr_set_mkey_sig_block(3), mlx5dv_mkey_check(3),
 * mlx5dv_qp_cancel_posted_send_wrs(3), and of mlx5dv_wr_mkey_configure(3), mlx5dv_create_mkey(3),
 * mlx5dv_create_qp(3) and mlx5dv_wr_post(3) what these need.
 *
 * Each statement of the pages has a number (conform_list.c); each test says which it proves.
 */
#pragma once

#include "connected_pair.h"

#define CONFORM_IDS 8

struct test {
	const char *name;
	/* In a process of its own; returns if all is well. */
	void (*run)(const struct test *t);
	uint8_t ids[CONFORM_IDS]; /* statements */
	uintptr_t arg;
};

/* One table per file, ended by a test without a name. */
extern const struct test matrix_tests[];
extern const struct test vector_tests[];
extern const struct test mask_tests[];
extern const struct test tag_tests[];
extern const struct test example_tests[];
extern const struct test length_tests[];
extern const struct test layout_tests[];
extern const struct test error_tests[];
extern const struct test pipeline_tests[];
extern const struct test cancel_tests[];
extern const struct test task_tests[];
extern const struct test refusal_tests[];
extern const struct test config_tests[];
extern const struct test create_tests[];
extern const struct test raw_tests[];
extern const struct test transaction_tests[];
extern const struct test abuse_tests[];

struct statement {
	const char *page;
	const char *says;
	const char *unobservable; /* why no program can see it */
};

#define STATEMENTS 108
extern const struct statement statements[STATEMENTS + 1]; /* [0] is none */
