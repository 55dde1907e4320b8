/* SPDX-License-Identifier: BSD-2-Clause */
/* Says in words why a key refuses (base/explain.h). */
#pragma once

#include "adapter/memory/mkey.h"
#include "base/explain.h"

/* What a refused access was. */
struct mkey_refusal {
	struct mkey_use use; /* use.remote is not NULL: the use of a peer */
	uint64_t va;
	uint64_t len;
	enum mkey_verdict verdict;
};

/* Notes the reason, for the code that says what follows from it.  The caller is a reader. */
void mkey_explain(struct adapter *a, const struct mkey_refusal *r) __attribute__((cold));
/* Notes that the key of this region ends, which explains a later use of the key. */
void mkey_explain_gone(struct adapter *a, const struct mkey_meaning *m) __attribute__((cold));
/* The names of rights with '|' between: "IBV_ACCESS_LOCAL_WRITE|IBV_ACCESS_REMOTE_READ". */
const char *access_text(uint32_t access, char *text, size_t size);
