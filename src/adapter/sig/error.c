// SPDX-License-Identifier: BSD-2-Clause
/* Signature errors; see sig.h. */
#include "adapter/sig/sig.h"

static const char *const names[] = {
	[SIG_NO_ERROR] = "no error",
	[SIG_BAD_GUARD] = "guard",
	[SIG_BAD_APP_TAG] = "application tag",
	[SIG_BAD_REF_TAG] = "reference tag",
};

const char *sig_error_name(enum sig_error_kind k)
{
	return (unsigned)k < array_size(names) ? names[k] : "?";
}

/* Makes a number of the bytes in stream order. */
static uint64_t sig_error_number(enum sig_type t, uint64_t word)
{
	switch (t) {
	case SIG_CRC32C:
		return (uint64_t)__builtin_bswap32((uint32_t)(word >> 32)) << 32;
	case SIG_CRC64_XP10:
		return __builtin_bswap64(word);
	default:
		return word;
	}
}

struct sig_report sig_error_report(const struct sig_error *e, enum sig_report_style style)
{
	uint64_t found = sig_error_number(e->type, e->found);
	uint64_t computed = sig_error_number(e->type, e->computed);

	if (style == SIG_REPORT_HARDWARE)
		return (struct sig_report){found, computed, (e->block + 1) * e->unit - 1};
	return (struct sig_report){computed, found, e->block * e->unit};
}

uint64_t sig_report_part(const struct sig_error *e, uint64_t value)
{
	switch (e->kind) {
	case SIG_BAD_APP_TAG:
		return value >> 32 & 0xffff;
	case SIG_BAD_REF_TAG:
		return value & UINT32_MAX;
	default:
		break;
	}
	switch (e->type) {
	case SIG_CRC64_XP10:
		return value;
	case SIG_CRC32:
	case SIG_CRC32C:
		return value >> 32;
	default:
		return value >> 48;
	}
}

void sig_psv_arm(struct sig_psv *p, uint64_t transient)
{
	atomic_store_explicit(&p->transient, transient, memory_order_relaxed);
	/* Relaxed, because the state publishes no data: the thread that raises an error has the
	 * error itself. */
	atomic_store_explicit(&p->state, SIG_PSV_ARMED, memory_order_relaxed);
}

bool sig_psv_raise(struct sig_psv *p)
{
	return atomic_exchange_explicit(&p->state, SIG_PSV_REPORTED, memory_order_relaxed) ==
	       SIG_PSV_ARMED;
}
