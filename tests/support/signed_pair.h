/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs, and memory keys with any signature on both sides:
 *
 *	one process	both on one device: packets loop back inside of it
 *	two processes	each on a device of its own, in fabric slots of their own: packets cross a
 *			channel
 *
 * Configurations are put into the key itself, not by work requests: a BSF knows a few block sizes
 * only.
 */
#pragma once

#include "adapter_device.h"
#include "prm/wqe.h"
#include "sig_case.h"
#include "test_fabric.h"

enum { SIGNED_PAIR_BYTES = 1 << 20, SIGNED_PAIR_ENTRIES = 512 };

struct signed_pair_side {
	struct device_qp q;
	uint8_t *memory; /* SIGNED_PAIR_BYTES, all of it one region */
	struct mkey *region, *list;
	uint32_t lkey; /* of the region */
	uint32_t skey; /* of the list, for signatures */
	struct psv *psv[SIG_SIDES];
};

struct signed_pair {
	bool two_processes;
	bool exposed;
	enum ib_qp_type type;
	struct test_device device; /* of two processes only what the device's functions look at */
	struct test_fabric *fabric;
	struct test_process process[2];
	uint32_t chunks;
	struct signed_pair_side side[2];
};

void signed_pair_up(struct signed_pair *t, bool two_processes);
/* Two processes, and each lays its responders open to the other. */
void signed_pair_up_exposed(struct signed_pair *t);
/* Near, with queue pairs of that type. */
void signed_pair_up_of(struct signed_pair *t, enum ib_qp_type type);
void signed_pair_down(struct signed_pair *t);
/* Both from whatever state to RTS. */
void signed_pair_connect(struct signed_pair *t, enum ib_mtu mtu);
/* Lets everything go on that can. */
void signed_pair_progress(struct signed_pair *t);
struct adapter *signed_pair_adapter(struct signed_pair *t, unsigned side);
/* One more key like the side's list; its skey says which is meant. */
struct mkey *signed_pair_key(struct signed_pair *t, unsigned side);

/*
 * The side's key is a list of these entries, its memory's stream length bytes long, with these
 * signatures; armed.
 */
void signed_pair_sign(struct signed_pair *t, unsigned side, const struct sig_config *c,
		      const struct umr_klm *e, uint32_t n, uint64_t length);
struct umr_klm signed_pair_klm(const struct signed_pair *t, unsigned side, uint64_t at,
			       uint32_t bytes);

/* The next completion of the side, of its send (or receive) CQ; fails after ten seconds. */
const struct cqe64 *signed_pair_wait(struct signed_pair *t, struct device_cq *cq);
uint8_t cqe_op(const struct cqe64 *cqe);
/* Is it what that error should look like? */
void check_sig_err(const struct signed_pair *t, unsigned side, const struct cqe64 *cqe,
		   const struct sig_error *e, enum sig_report_style style);

/* ---- the usual key: blocks with a CRC32 each in memory, none on the wire ---- */

enum { BLOCK = 512, UNIT = BLOCK + 4, BLOCKS = 8 };

struct sig_config crc32(uint8_t check);
void key_up(struct signed_pair *t, unsigned side, uint8_t check);
/* Good blocks, but for those of the mask. */
void fill(struct signed_pair *t, unsigned side, unsigned bad);
/* Connected anew: side 0 has the key, side 1 eight receives of 16 bytes; pipelining of side 0. */
void start(struct signed_pair *t, bool pipelining, uint8_t check, unsigned bad);

const struct cqe64 *next(struct signed_pair *t, unsigned side);
bool idle(struct signed_pair *t);
/* The next completion tells of this block's guard. */
void expect_error(struct signed_pair *t, unsigned side, uint64_t block);
