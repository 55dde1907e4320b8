/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host: a program that uses its memory, its process and the system as programs may that know
 * nothing of an adapter in their midst, while a peer reads and writes that memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peer.h"

#define HOST_PAGE  4096u
#define HOST_BYTES PEER_BYTES

#define STATUS_SKIP 77

struct host {
	struct memory_side side;
	struct peer peer;
	const char *device;
};

struct host_case {
	const char *name;
	void (*run)(struct host *h);
	/* What is done before the device is opened; or NULL. */
	void (*early)(struct host *h);
};

/* The cases of each file end with one without a name. */
extern const struct host_case page_cases[], process_cases[], kernel_cases[], limit_cases[],
	flow_cases[], space_cases[];

/* The case cannot be tried here. */
_Noreturn void host_skip(const char *why, ...) __attribute__((format(printf, 1, 2)));
/* The test has failed. */
#define host_want(good, ...)                     \
	do {                                     \
		if (!(good))                     \
			device_die(__VA_ARGS__); \
	} while (0)

/* Private memory full of the value. */
uint8_t *host_map(size_t bytes, int value);
struct ibv_mr *host_reg(struct host *h, void *at, size_t bytes);
void host_dereg(struct ibv_mr *mr);
/* No byte is anything else; `what` names the memory. */
void host_want_all(const void *at, size_t bytes, int value, const char *what);
/* All pages belong to this process alone, as those of malloc do. */
void host_want_private(const void *at, size_t bytes, const char *what);
/* The peer writes the value, reads it back, and the host sees it too. */
void host_exchange(struct host *h, void *at, const struct ibv_mr *mr, size_t bytes, int value);
/* SENDs between both, as long as the memory, which holds the last one afterwards. */
void host_messages_in(struct host *h, void *at, const struct ibv_mr *mr, size_t bytes);
/* The same with all HOST_BYTES. */
void host_messages(struct host *h, void *at, const struct ibv_mr *mr);
/* How much memory the files without names hold that this process has mapped or open. */
uint64_t host_shared_bytes(void);

/* The program that takes the host's place in its process: host --image SOCKET PEER-PID. */
int host_image(int sock, pid_t pid);
