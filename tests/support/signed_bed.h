/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs, and memory keys with any signature on both sides:
 *
 *	near	both on one device: packets loop back inside of the process
 *	far	each on a device of its own, in fabric slots of their own: packets cross a channel
 *
 * Configurations are put into the key itself, not by work requests: a BSF knows a few block sizes
 * only.
 */
#pragma once

#include "adapter_rig.h"
#include "prm/umr.h"
#include "sig_scene.h"
#include "testbed.h"

enum { BED_BYTES = 1 << 20, BED_ENTRIES = 512 };

struct bed_side {
	struct rig_qp q;
	uint8_t *memory; /* BED_BYTES, all of it one region */
	struct mkey *region, *list;
	uint32_t lkey; /* of the region */
	uint32_t skey; /* of the list, for signatures */
	struct psv *psv[SIG_SIDES];
};

struct bed {
	bool far;
	enum ib_qp_type type;
	struct rig rig; /* near; of far only what the rig's functions look at */
	struct testbed *testbed;
	struct station station[2];
	uint32_t chunks;
	struct bed_side side[2];
};

/* Faults are the device's business, as in the driver. */
void bed_catch_faults(void);
void bed_up(struct bed *t, bool far);
/* Near, with queue pairs of that type. */
void bed_up_of(struct bed *t, enum ib_qp_type type);
void bed_down(struct bed *t);
/* Both from whatever state to RTS. */
void bed_connect(struct bed *t, enum ib_mtu mtu);
/* Lets everything go on that can. */
void bed_progress(struct bed *t);
struct adapter *bed_adapter(struct bed *t, unsigned side);

/*
 * The side's key is a list of these entries, its memory's stream length bytes long, with these
 * signatures; armed.
 */
void bed_sign(struct bed *t, unsigned side, const struct sig_config *c, const struct umr_klm *e,
	      uint32_t n, uint64_t length);
struct umr_klm bed_klm(const struct bed *t, unsigned side, uint64_t at, uint32_t bytes);

/* The next completion of the side, of its send (or receive) CQ; fails after ten seconds. */
const struct cqe64 *bed_wait(struct bed *t, struct rig_cq *cq);
uint8_t cqe_op(const struct cqe64 *cqe);
/* Is it what that error should look like? */
void check_sig_err(const struct bed *t, unsigned side, const struct cqe64 *cqe,
		   const struct sig_error *e, enum sig_report_style style);

/* ---- the usual key: blocks with a CRC32 each in memory, none on the wire ---- */

enum { BLOCK = 512, UNIT = BLOCK + 4, BLOCKS = 8 };

struct sig_config crc32(uint8_t check);
void key_up(struct bed *t, unsigned side, uint8_t check);
/* Good blocks, but for those of the mask. */
void fill(struct bed *t, unsigned side, unsigned bad);
/* Connected anew: side 0 has the key, side 1 eight receives of 16 bytes; pipelining of side 0. */
void start(struct bed *t, bool pipelining, uint8_t check, unsigned bad);

const struct cqe64 *next(struct bed *t, unsigned side);
bool idle(struct bed *t);
/* The next completion tells of this block's guard. */
void expect_error(struct bed *t, unsigned side, uint64_t block);
