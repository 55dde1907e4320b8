// SPDX-License-Identifier: BSD-2-Clause
/*
 * A window: the DPA reads and writes memory of the host.
 *
 * The host registers two buffers, makes a window on the same protection domain, and tells the DPA
 * addresses, keys and the number of the window.  The DPA changes the text in the first buffer by loads
 * and stores, and copies it to the second one with the functions for it.  What a key does not cover, or
 * does not allow, is not there for it.
 *
 *	make && softhca run -- ./window
 *
 * Its end is 0 if both buffers have the text that the DPA was to write, and nothing beside them changed.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <libflexio/flexio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "window.h"

#define ROOM 256u

extern struct flexio_app *window_app;
extern flexio_func_t capitalize_and_copy;

static const char before[] = "the quick brown fox jumps over the lazy dog, and it does so again, "
			     "through a window";
static const char after[] = "The Quick Brown Fox Jumps Over The Lazy Dog, And It Does So Again, "
			    "Through A Window";

static void check(flexio_status status, const char *what)
{
	if (status != FLEXIO_STATUS_SUCCESS) {
		fprintf(stderr, "%s: status %d\n", what, (int)status);
		exit(1);
	}
}

static void *need(void *object, const char *what)
{
	if (!object) {
		perror(what);
		exit(1);
	}
	return object;
}

static struct ibv_context *open_first_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (list)
		ibv_free_device_list(list);
	if (!context) {
		fprintf(stderr, "there is no device: try softhca run -- ...\n");
		exit(1);
	}
	return context;
}

static uint64_t call(struct flexio_process *process, struct work *work)
{
	flexio_uintptr_t address;
	uint64_t sum;

	check(flexio_copy_from_host(process, work, sizeof(*work), &address),
	      "flexio_copy_from_host");
	check(flexio_process_call(process, capitalize_and_copy, &sum, address),
	      "flexio_process_call");
	check(flexio_buf_dev_free(process, address), "flexio_buf_dev_free");
	return sum;
}

/* What the DPA did, compared with what it was to do. */
static int is_right(const char *text, const char *copy, uint64_t sum)
{
	uint64_t wanted = 0;

	for (const char *at = after; *at; at++)
		wanted += (unsigned char)*at;
	for (size_t i = sizeof(after) - 1; i < ROOM; i++)
		if (text[i] || copy[i])
			return 0;
	return sum == wanted && !strcmp(text, after) && !strcmp(copy, after);
}

int main(void)
{
	static char text[ROOM], copy[ROOM];
	struct ibv_context *context = open_first_device();
	struct ibv_pd *pd = need(ibv_alloc_pd(context), "ibv_alloc_pd");
	struct ibv_mr *text_mr =
		need(ibv_reg_mr(pd, text, ROOM, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
	struct ibv_mr *copy_mr =
		need(ibv_reg_mr(pd, copy, ROOM, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
	struct work work = {.text = (uintptr_t)text,
			    .copy = (uintptr_t)copy,
			    .bytes = sizeof(before) - 1,
			    .text_key = text_mr->lkey,
			    .copy_key = copy_mr->lkey};
	struct flexio_process *process;
	struct flexio_window *window;
	uint64_t sum;
	int good;

	check(flexio_process_create(context, window_app, NULL, &process), "flexio_process_create");
	check(flexio_window_create(process, pd, &window), "flexio_window_create");
	work.window = flexio_window_get_id(window);
	strcpy(text, before);
	sum = call(process, &work);
	good = is_right(text, copy, sum);
	printf("the DPA has written: %s\n", text);
	printf("and copied:          %s\n", copy);
	printf("the sum of its bytes is %" PRIu64 ": %s\n", sum, good ? "right" : "wrong");
	check(flexio_window_destroy(window), "flexio_window_destroy");
	check(flexio_process_destroy(process), "flexio_process_destroy");
	if (ibv_dereg_mr(copy_mr) || ibv_dereg_mr(text_mr) || ibv_dealloc_pd(pd) ||
	    ibv_close_device(context))
		return 1;
	return good ? 0 : 1;
}
