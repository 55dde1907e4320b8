// SPDX-License-Identifier: BSD-2-Clause
/* Compressed completions; see cq_internal.h. */
#include "adapter/queue/cq_internal.h"

#include <stdlib.h>
#include <string.h>

#include "usermem/usermem.h"

struct cq_zip *cq_zip_create(uint8_t layout, uint8_t format, uint32_t entries)
{
	struct cq_zip *z = calloc(1, sizeof(*z));

	if (!z)
		return NULL;
	z->layout = layout;
	z->format = format;
	/* a small ring fills half at a time */
	z->most = min_u32(layout == CQ_COMPRESSED_ENHANCED ? CQ_ZIP_MOST_ENHANCED : CQ_ZIP_MOST,
			  entries / 2);
	return z;
}

static bool is_request(const struct cqe64 *cqe)
{
	return cqe->op_own >> 4 == CQE_OP_REQ;
}

static bool is_plain(const struct cqe64 *cqe)
{
	return cqe->op_own >> 4 <= CQE_OP_RESP_SEND_INV;
}

/* What two completions must share to stand together: all but what a small one carries, and what
 * compression loses, which is the time and the parts of hash and checksum for which the format has
 * no room. */
static struct cqe64 cqe_common(const struct cq_zip *z, const struct cqe64 *cqe)
{
	struct cqe64 c = *cqe;

	c.byte_cnt = be32_of(0);
	c.timestamp = be64_of(0);
	c.wqe_counter = be16_of(0);
	c.signature = 0;
	c.op_own &= 0xf0;
	c.checksum = be16_of(0);
	c.rss_hash_result = be32_of(0);
	if (is_request(cqe))
		c.sop_drop_qpn = be32_of(be32_get(c.sop_drop_qpn) & 0xffffff);
	if (z->format == CQE_MINI_L3L4)
		c.l4_hdr_type_etc = 0;
	return c;
}

static struct cqe_mini cqe_mini_of(const struct cq_zip *z, const struct cqe64 *cqe)
{
	struct cqe_mini m = {.byte_cnt = cqe->byte_cnt};

	if (is_request(cqe)) {
		m.wqe_counter = cqe->wqe_counter;
		m.opcode = (uint8_t)(be32_get(cqe->sop_drop_qpn) >> 24);
		return m;
	}
	switch (z->format) {
	case CQE_MINI_CSUM:
		m.checksum = cqe->checksum;
		break;
	case CQE_MINI_CSUM_STRIDX:
		m.checksum = cqe->checksum;
		m.stride_index = cqe->wqe_counter;
		break;
	case CQE_MINI_L3L4:
		m.header_type = cqe->l4_hdr_type_etc;
		m.stride_index = cqe->wqe_counter;
		break;
	default:
		m.hash = cqe->rss_hash_result;
		break;
	}
	return m;
}

static bool cq_zip_fits(const struct cq_zip *z, const struct cqe64 *cqe)
{
	struct cqe64 title = cqe_common(z, &z->title), other = cqe_common(z, cqe);

	/* A reader counts the receives by itself. */
	return z->has_title && is_plain(cqe) && !memcmp(&title, &other, sizeof(title)) &&
	       (is_request(cqe) || be16_get(cqe->wqe_counter) == z->next_counter);
}

static void cq_zip_add(struct cq_zip *z, const struct cqe64 *cqe, enum cq_wake wake)
{
	z->mini[z->waiting++] = cqe_mini_of(z, cqe);
	z->last = *cqe;
	if (wake > z->wake)
		z->wake = (uint8_t)wake;
	z->next_counter = (uint16_t)(be16_get(cqe->wqe_counter) + 1);
}

bool cq_zip_joins(struct cq_zip *z, const struct cqe64 *cqe, enum cq_wake wake)
{
	if (!cq_zip_fits(z, cqe))
		return false;
	cq_zip_add(z, cqe, wake);
	return true;
}

bool cq_zip_begins(struct cq_zip *z, const struct cqe64 *cqe, enum cq_wake wake)
{
	z->has_title = z->most > 1 && is_plain(cqe);
	z->title = *cqe;
	z->next_counter = (uint16_t)(be16_get(cqe->wqe_counter) + 1);
	if (!z->has_title || z->layout == CQ_COMPRESSED_ENHANCED)
		return false;
	cq_zip_add(z, cqe, wake);
	return true;
}

void cq_zip_forget_title(struct cq_zip *z)
{
	z->has_title = false;
}

/* Writes the only waiting completion as it is; in the enhanced layout more may follow it. */
static bool cq_zip_write_one(struct cq_zip *z, const struct cq *cq)
{
	z->title = z->last;
	z->has_title = z->layout == CQ_COMPRESSED_ENHANCED;
	cq_seal(cq, cq->pi, &z->last);
	return usermem_publish(cq_entry(cq, cq->pi), &z->last, sizeof(z->last));
}

static bool cq_zip_write_basic(struct cq_zip *z, const struct cq *cq)
{
	struct cqe64 title = z->title;

	for (uint32_t i = 0; i < z->waiting; i += CQE_MINIS) {
		struct cqe_mini array[CQE_MINIS] = {0};

		memcpy(array, z->mini + i, min_u32(CQE_MINIS, z->waiting - i) * sizeof(*array));
		if (!usermem_copy(cq_entry(cq, cq->pi + (i ? i : 1)), array, sizeof(array)))
			return false;
	}
	title.byte_cnt = be32_of(z->waiting);
	title.op_own |= CQE_FORMAT_COMPRESSED;
	cq_seal(cq, cq->pi, &title);
	z->has_title = false;
	return usermem_publish(cq_entry(cq, cq->pi), &title, sizeof(title));
}

static bool cq_zip_write_enhanced(struct cq_zip *z, const struct cq *cq)
{
	struct cqe64 cqe = {.op_own = (uint8_t)((z->waiting - 1) << 4 | CQE_FORMAT_COMPRESSED)};

	memcpy(&cqe, z->mini, z->waiting * sizeof(*z->mini));
	cq_seal(cq, cq->pi, &cqe);
	return usermem_publish(cq_entry(cq, cq->pi), &cqe, sizeof(cqe));
}

bool cq_zip_write(struct cq_zip *z, const struct cq *cq)
{
	bool written;

	if (z->waiting == 1)
		written = cq_zip_write_one(z, cq);
	else if (z->layout == CQ_COMPRESSED_ENHANCED)
		written = cq_zip_write_enhanced(z, cq);
	else
		written = cq_zip_write_basic(z, cq);
	z->waiting = 0;
	z->wake = CQ_WAKE_ARMED;
	return written;
}
