/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules for work requests on memory windows, and how a breach of each is explained. */
#pragma once

enum breach {
	OTHER_PD,
	NO_WINDOW,
	OTHER_TYPE,
	BOUND_ALREADY,
	INVALIDATE_STALE,
	INVALIDATE_FREE,
	INVALIDATE_TYPE_1,
	UNBIND_TYPE_2,
	/* not a bind that this device knows */
	TOO_SHORT,
	NO_KLM,
	KLM_TOO_SHORT,
	NO_LENGTH,
	OTHER_QPN,
	UNKNOWN_MASK,
	BSF,
	BREACHES,
};

static const char *const breach_said[BREACHES] = {
	[OTHER_PD] = ": bind by a QP of another protection domain",
	[NO_WINDOW] = ": it is no indirect key",
	[OTHER_TYPE] = ": bind as a window of the other type",
	[BOUND_ALREADY] = ": bind of a type 2 window that is bound",
	[INVALIDATE_STALE] = ": no memory window or mkey is bound to it",
	[INVALIDATE_FREE] = ": no memory window or mkey is bound to it",
	[INVALIDATE_TYPE_1] = " a memory window of type 1, which ",
	[UNBIND_TYPE_2] = ": bind of no bytes for a key that is no type 1 window",
	[TOO_SHORT] = " ends before the key's context does",
	[NO_KLM] = " lacks length, ",
	[KLM_TOO_SHORT] = " is to have 100 bytes, and its list has 99",
	[NO_LENGTH] = " is to have 0 bytes, ",
	[OTHER_QPN] = " of type 2 names QP 0x",
	[UNKNOWN_MASK] = " changes what no window has",
	[BSF] = " changes what no window has",
};
