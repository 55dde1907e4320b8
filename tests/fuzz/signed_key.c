// SPDX-License-Identifier: BSD-2-Clause
#include "signed_key.h"

#include "adapter/memory/mkey_indirect.h"
#include "base/hazard.h"

#define ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
/* In pieces of so many bytes; more of them than one packet describes. */
#define PIECE	13u
#define ENTRIES 128u

static struct sig_domain domain_of_type(unsigned type, bool ones)
{
	static const uint32_t blocks[] = {512, 8, 64, 40};
	enum sig_type t = (enum sig_type)(type % SIG_TYPES);

	if (t == SIG_NONE)
		return (struct sig_domain){.type = t};
	return (struct sig_domain){
		.type = t,
		.block = blocks[type / SIG_TYPES % array_size(blocks)],
		.seed_ones = ones,
		.ref_increment = ones,
		.escape = (enum sig_escape)(type % 3),
		.app_tag = 0xffff,
		.app_mask = 0xffff,
	};
}

static struct sig_config config_of(uint8_t what)
{
	struct sig_config c = {
		.side = {[SIG_WIRE] = domain_of_type(what % 24, what & 1),
			 [SIG_MEMORY] = domain_of_type(what / 8u % 24, what & 2)},
		.check_mask = 0xff,
		.data_bytes = UINT32_MAX,
	};

	c.same_structure = true;
	if (sig_config_check(&c))
		c.same_structure = false;
	else
		c.copy_mask = what;
	MUST(sig_config_check(&c) == SIG_ACCEPTED);
	return c;
}

void signed_begin(struct fuzz_signed *s, struct fuzz_device *d, uint8_t what)
{
	struct adapter *a = d->device.adapter[d->dev];
	const struct fuzz_mr *m = &d->mr[0];
	const struct sig_config c = config_of(what);
	struct umr_klm entry[ENTRIES];
	struct mkey_indirect_attr attr = {
		.pdn = d->pdn,
		.access = ACCESS,
		.local_read = true,
		.qpn = MKEY_ANY_QPN,
		.signature = true,
		.bsf_octowords = 4,
		.max_entries = ENTRIES,
		.entry = entry,
	};
	struct indirect *k;

	for (; attr.entries < ENTRIES && (attr.entries + 1u) * PIECE <= m->len; attr.entries++)
		entry[attr.entries] = (struct umr_klm){
			be32_of(PIECE), be32_of(mkey_key(m->mkey)),
			be64_of((uintptr_t)(m->area + m->off + attr.entries * PIECE))};
	attr.length = (uint64_t)attr.entries * PIECE;
	MUST(!mkey_create_indirect(a, &attr, &s->mkey) && !psv_create(a, d->pdn, &s->psv));
	hazard_enter();
	k = indirect_find(a, mkey_key(s->mkey));
	MUST(k);
	spin_lock(&k->lock);
	k->has_bsf = true;
	sig_plan_make(&k->plan[SIG_GATHER], &c, SIG_GATHER);
	sig_plan_make(&k->plan[SIG_SCATTER], &c, SIG_SCATTER);
	for (unsigned i = 0; i < SIG_SIDES; i++)
		k->psv[i] = psv_number(s->psv);
	spin_unlock(&k->lock);
	hazard_leave();
}

void signed_end(struct fuzz_signed *s, struct fuzz_device *d)
{
	if (!s->mkey)
		return;
	mkey_destroy(d->device.adapter[d->dev], s->mkey);
	psv_destroy(d->device.adapter[d->dev], s->psv);
	*s = (struct fuzz_signed){0};
}
