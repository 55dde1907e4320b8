// SPDX-License-Identifier: BSD-2-Clause
/*
 * The debug information says where members lie.  It does not say that a structure is packed, nor
 * where bit fields without a name are, nor whether an alignment belongs to the member or to its
 * type.  The last two differ: only a type's can be less than the type has, and a packed structure
 * ignores it.  All of this follows from the places of the members.  So this tries layouts, the
 * usual one first, and fills holes with bit fields without a name, which calls pass as they pass
 * holes.
 */
#include "dpacc/layout.h"

#include <string.h>

#include "dpacc/words.h"

#define BYTE 8u

enum way {
	WAY_MEMBERS, /* alignments belong to members */
	WAY_TYPES,   /* alignments belong to types */
	WAY_PACKED_MEMBERS,
	WAY_PACKED_TYPES,
	WAYS,
};

struct attempt {
	const struct layout *layout;
	enum way way;
	bool packed;
	size_t at;    /* how many bits are taken */
	size_t align; /* bytes */
	char *before; /* definitions that the members need */
	char *members;
	char *proofs;
};

static size_t round_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* Fills up with bit fields that cross no border of a byte, so they lie where they are written. */
static void attempt_fill(struct attempt *a, size_t until)
{
	while (a->at < until) {
		size_t bits = BYTE - a->at % BYTE;

		if (bits > until - a->at)
			bits = until - a->at;
		a->members = text_of("%s\tunsigned char : %zu;\n", a->members, bits);
		a->at += bits;
	}
}

/* Returns the alignment that a member has in this attempt; what its place tells comes first. */
static size_t attempt_align(const struct attempt *a, const struct layout_member *m)
{
	size_t usual = a->packed ? 1 : m->align;

	if (!m->wanted || (a->packed && m->bits))
		return usual;
	switch (a->way) {
	case WAY_MEMBERS:
		return m->wanted < usual && m->at % (usual * BYTE) == 0 ? usual : m->wanted;
	case WAY_PACKED_MEMBERS:
		return m->at % (m->wanted * BYTE) ? usual : m->wanted;
	case WAY_PACKED_TYPES:
		return a->layout->is_union || m->at == round_up(a->at, BYTE) ? usual : m->wanted;
	default:
		return m->wanted;
	}
}

/* Tells whether the compiler puts the member at its place, if what is taken ends there. */
static bool attempt_fits(const struct attempt *a, const struct layout_member *m, size_t align)
{
	size_t unit = m->bytes * BYTE;

	if (!m->bits)
		return m->at % (align * BYTE) == 0;
	return a->packed || m->at % unit + m->bits <= unit;
}

/* Returns where the compiler would put the member now. */
static size_t attempt_place(const struct attempt *a, const struct layout_member *m, size_t align)
{
	size_t unit = m->bytes * BYTE;

	if (!m->bits)
		return round_up(a->at, align * BYTE);
	return a->packed || a->at % unit + m->bits <= unit ? a->at : round_up(a->at, unit);
}

static void attempt_write(struct attempt *a, const struct layout_member *m, size_t number,
			  size_t align)
{
	const char *text = m->text;
	char *attribute = text_of("%s", "");

	if (m->bits) {
		a->members = text_of("%s\t%s m%zu : %zu;\n", a->members, text, number, m->bits);
		return;
	}
	if (!a->packed && align < m->align) {
		/* Only a type of its own can have less. */
		char *alias = text_of("%s_m%zu", strchr(a->layout->name, ' ') + 1, number);

		a->before = text_of("%stypedef %s %s __attribute__((aligned(%zu)));\n", a->before,
				    text, alias, align);
		text = alias;
	} else if (align != (a->packed ? 1 : m->align)) {
		attribute = text_of(" __attribute__((aligned(%zu)))", align);
	}
	a->members =
		text_of("%s\t%s m%zu%s%s;\n", a->members, text, number, m->dimensions, attribute);
	a->proofs = text_of("%s_Static_assert(__builtin_offsetof(%s, m%zu) == %zu, \"place\");\n",
			    a->proofs, a->layout->name, number, m->at / BYTE);
}

static bool attempt_member(struct attempt *a, size_t number)
{
	const struct layout_member *m = &a->layout->members[number];
	size_t align = attempt_align(a, m);
	size_t end = m->at + (m->bits ? m->bits : m->bytes * BYTE);

	if (!attempt_fits(a, m, align))
		return false;
	if (!a->layout->is_union) {
		if (attempt_place(a, m, align) < m->at)
			attempt_fill(a, m->at);
		if (attempt_place(a, m, align) != m->at)
			return false;
	}
	attempt_write(a, m, number, align);
	if (a->at < end)
		a->at = end;
	if (a->align < align)
		a->align = align;
	return true;
}

static char *attempt_text(struct attempt *a)
{
	const struct layout *l = a->layout;
	char *attribute = text_of("%s", "");

	for (size_t i = 0; i < l->count; i++)
		if (!attempt_member(a, i))
			return NULL;
	if (a->align < l->wanted)
		a->align = l->wanted;
	if (round_up(a->at, a->align * BYTE) < l->bytes * BYTE && !l->is_union)
		attempt_fill(a, l->bytes * BYTE);
	if (round_up(a->at, a->align * BYTE) != l->bytes * BYTE)
		return NULL;
	if (a->packed)
		attribute = text_of(" __attribute__((packed, aligned(%zu)))", a->align);
	else if (l->wanted)
		attribute = text_of(" __attribute__((aligned(%zu)))", l->wanted);
	return text_of("%s%s {\n%s}%s;\n_Static_assert(sizeof(%s) == %zu, \"size\");\n"
		       "_Static_assert(_Alignof(%s) == %zu, \"alignment\");\n%s\n",
		       a->before, l->name, a->members, attribute, l->name, l->bytes, l->name,
		       a->align, a->proofs);
}

char *layout_text(const struct layout *layout, size_t *align)
{
	for (int way = 0; way < WAYS; way++) {
		struct attempt a = {.layout = layout,
				    .way = (enum way)way,
				    .packed = way >= WAY_PACKED_MEMBERS,
				    .align = 1,
				    .before = text_of("%s", ""),
				    .members = text_of("%s", ""),
				    .proofs = text_of("%s", "")};
		char *text = attempt_text(&a);

		*align = a.align;
		if (text)
			return text;
	}
	return NULL;
}
