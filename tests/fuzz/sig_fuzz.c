// SPDX-License-Identifier: BSD-2-Clause
/*
 * Signatures: any 64 bytes as a BSF, any data as the input.  What is accepted moves the same bytes
 * and finds the same errors in one piece and in many, and touches nothing beyond its runs, which
 * end where heap blocks end.
 */
#include <string.h>

#include "adapter/sig/sig.h"
#include "fuzz.h"
#include "prm/bsf.h"

enum { OUT_BYTES = 8192 };

void target_init(void)
{
}

/* What follows on a BSF. */
static void put_transfer(struct seed *s, uint8_t options, uint64_t offset)
{
	put_u8(s, options);
	put_u8(s, 100);
	put_u8(s, 77);
	put_u64(s, offset);
	for (unsigned k = 0; k < 1100; k++)
		put_u8(s, k);
}

static void transaction_seeds(struct seed *s)
{
	char name[16];

	for (unsigned i = 0; i < 4; i++) {
		enum bsf_domain at = i & 1 ? BSF_MEMORY : BSF_WIRE;
		uint8_t bsf[BSF_BYTES] = {0};

		bsf_set(bsf, BSF_SIZE, BSF_SIZE_EXTENDED);
		bsf_set(bsf, BSF_CHECK_MASK, 0xff);
		bsf_set(bsf, BSF_RAW_DATA_BYTES, 700);
		bsf_domain_set(bsf, at, BSF_TRANSACTION_INIT, 1);
		bsf_domain_set(bsf, at, BSF_TRANSACTION_CHECK_GEN, 1);
		bsf_domain_set(bsf, at, BSF_TRANSACTION_FORMAT, BSF_FORMAT_CRC32C);
		put_bytes(s, bsf, sizeof(bsf));
		put_transfer(s, i & 1, i & 2 ? 2000 : 699);
		snprintf(name, sizeof(name), "transaction%u", i);
		put_end(s, name);
	}
}

void target_seeds(struct seed *s)
{
	static const uint8_t formats[] = {0x22, 0x43, 0x52};
	uint8_t bsf[BSF_BYTES] = {0};
	char name[16];

	bsf_set(bsf, BSF_SIZE, BSF_SIZE_INLINE);
	bsf_set(bsf, BSF_CHECK_MASK, 0xff);
	bsf_set(bsf, BSF_WIRE_BLOCK, BSF_BLOCK_512);
	for (size_t i = 0; i <= array_size(formats); i++) {
		if (i < array_size(formats)) {
			bsf_domain_set(bsf, BSF_WIRE, BSF_FORMAT, formats[i]);
		} else {
			bsf_domain_set(bsf, BSF_WIRE, BSF_FORMAT, 0);
			bsf_domain_set(bsf, BSF_WIRE, BSF_INL_VALID, 1);
			bsf_domain_set(bsf, BSF_WIRE, BSF_INL_REPEAT, 1);
			bsf_domain_set(bsf, BSF_WIRE, BSF_INL_GUARD, BSF_GUARD_CRC);
			bsf_domain_set(bsf, BSF_WIRE, BSF_INL_APP_MASK, 0xffff);
		}
		put_bytes(s, bsf, sizeof(bsf));
		put_transfer(s, (uint8_t)i, i * 300);
		snprintf(name, sizeof(name), "wire%zu", i);
		put_end(s, name);
	}
	transaction_seeds(s);
}

/* In pieces of so many bytes; the whole length: in one. */
static struct sig_stream transfer_bytes(const struct sig_plan *p, uint64_t offset, uint8_t *in,
					size_t n, size_t piece, uint8_t *out, size_t room,
					size_t out_piece, uint64_t moved[2])
{
	struct run from = {in, 0};
	struct run to = {out, 0};
	struct sig_cursor f = sig_cursor(&from, 1);
	struct sig_cursor t = sig_cursor(&to, 1);
	struct sig_stream s;
	uint64_t before;

	sig_stream_begin(&s, p, offset);
	do {
		before = f.moved + t.moved;
		if (!sig_cursor_left(&f)) {
			from = (struct run){in + f.moved, min_u64(piece, n - f.moved)};
			f = (struct sig_cursor){&from, 1, 0, f.moved};
			before -= from.len != 0;
		}
		if (!sig_cursor_left(&t)) {
			to = (struct run){out + t.moved, min_u64(out_piece, room - t.moved)};
			t = (struct sig_cursor){&to, 1, 0, t.moved};
			before -= to.len != 0;
		}
		sig_stream_feed(&s, &f, &t);
	} while (f.moved + t.moved != before);
	moved[0] = f.moved;
	moved[1] = t.moved;
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	uint8_t bsf[BSF_BYTES];
	struct sig_config c;
	enum sig_refusal refusal;
	struct sig_stream once;
	struct sig_stream often;
	uint64_t moved[2][2];
	struct sig_plan p;
	uint8_t options;
	size_t piece;
	size_t out_piece;
	uint64_t offset;
	uint8_t *from;
	uint8_t *to[2];
	size_t n;

	in_bytes(&in, bsf, sizeof(bsf));
	options = in_u8(&in);
	piece = 1u + in_u8(&in);
	out_piece = 1u + in_u8(&in);
	offset = in_u64(&in);
	refusal = sig_config_decode(bsf, options & 0x80 ? options & 0x3f : BSF_BYTES, &c);
	MUST(sig_refusal_name(refusal)[0] != '?');
	if (refusal)
		return 0;
	MUST(!sig_config_check(&c));

	n = in.left;
	from = malloc(n + !n);
	to[0] = calloc(1, OUT_BYTES);
	to[1] = calloc(1, OUT_BYTES);
	MUST(from && to[0] && to[1]);
	in_bytes(&in, from, n);
	sig_plan_make(&p, &c, options & 1 ? SIG_GATHER : SIG_SCATTER);
	once = transfer_bytes(&p, offset, from, n, n, to[0], OUT_BYTES, OUT_BYTES, moved[0]);
	often = transfer_bytes(&p, offset, from, n, piece, to[1], OUT_BYTES, out_piece, moved[1]);
	MUST(moved[0][0] == moved[1][0] && moved[0][1] == moved[1][1]);
	MUST(!memcmp(to[0], to[1], OUT_BYTES));
	MUST(once.errors == often.errors && once.error.kind == often.error.kind);
	MUST(once.error.block == often.error.block && once.error.found == often.error.found);
	for (int side = SIG_WIRE; side <= SIG_MEMORY; side++)
		MUST(sig_stream_at(&once, (enum sig_side)side) ==
		     sig_stream_at(&often, (enum sig_side)side));
	(void)sig_stream_lead(&once);
	free(from);
	free(to[0]);
	free(to[1]);
	return 0;
}
