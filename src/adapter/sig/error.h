/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signature errors.  They are data: the transfer goes on, and the device keeps the error for the
 * program to ask for (mlx5dv_mkey_check(3)).
 */
#pragma once

#include <stdatomic.h>

#include "adapter/sig/domain.h"

/* The parts of a unit, in the order of the checks; the first one that differs is the error. */
enum sig_error_kind { SIG_NO_ERROR, SIG_BAD_GUARD, SIG_BAD_APP_TAG, SIG_BAD_REF_TAG };

struct sig_error {
	enum sig_error_kind kind;
	enum sig_side side; /* the domain that the data came from */
	enum sig_type type;
	bool transaction;
	uint64_t block; /* counted from offset 0 of the key */
	uint64_t unit;	/* bytes of a block and its signature */
	/* The whole signature that stood there, as a word like those of guard.h. */
	uint64_t found;
	uint64_t computed; /* the signature that it should have been; unchecked parts as found */
};

/*
 * Two readings of "actual", "expected" and "offset".  In the manual page "actual" is the calculated
 * value, "expected" is the field's value, and the offset is a block boundary: the start of the
 * failing unit.  Devices are seen to swap the two values and to give the last byte of the unit.
 */
enum sig_report_style { SIG_REPORT_MANUAL, SIG_REPORT_HARDWARE };

/* The values as the error CQE carries them: T10-DIF guard 63:48, application tag 47:32, reference
 * tag 31:0; CRC32 and CRC32C 63:32; all of CRC64.  CRCs are numbers here, whatever their byte order
 * in the stream is. */
struct sig_report {
	uint64_t actual;
	uint64_t expected;
	uint64_t offset;
};

struct sig_report sig_error_report(const struct sig_error *e, enum sig_report_style style);
/* The part of a report's value that the error concerns. */
uint64_t sig_report_part(const struct sig_error *e, uint64_t value);
const char *sig_error_name(enum sig_error_kind k);

/*
 * A protected signature value object: the value that SET_PSV wrote, and whether an error was
 * reported since.  Block signatures take their seed and tags from the BSF, so the object only keeps
 * the value.
 *
 * All QPs that use the key share the state: sig_psv_raise moves ARMED to REPORTED (one of the
 * threads that race succeeds), sig_psv_arm moves it back.
 */
enum sig_psv_state { SIG_PSV_ARMED, SIG_PSV_REPORTED };

struct sig_psv {
	_Atomic uint32_t state;
	_Atomic uint64_t transient;
};

void sig_psv_arm(struct sig_psv *p, uint64_t transient);
/* True: this is the first error, so report it.  False: one was reported, and nobody has armed it
 * since. */
bool sig_psv_raise(struct sig_psv *p) must_check;
