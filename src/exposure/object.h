/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of a process, for people who ask what it is doing (`softhca status`).  Nothing else
 * reads this, and the owner reads none of it back.
 *
 * What a queue counts as it works stays where it is, in private memory of the process, so that a
 * look costs the process nothing.  The exposure names the places: a row for each object has its
 * address, and a form for each kind says how far behind that address each figure lies.  A tool
 * reads there by process_vm_readv.  Meanwhile the object may end, and something else may use its
 * memory.  So what the tool has read counts only if the row has the same serial number afterwards,
 * and if the number that lies in the object is the row's.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define OBJECT_ROWS 65536u /* objects that find no free row are not listed */
/* The most bytes from an object's beginning to its figures. */
#define OBJECT_MAX_BYTES 16384u
#define OBJECT_WHY_BYTES 64u

/* The last two have no figures, and are nowhere. */
enum object_kind { OBJECT_QP, OBJECT_CQ, OBJECT_SRQ, OBJECT_PD, OBJECT_CONTEXT, OBJECT_KINDS };

/* Figures; each kind has some of them. */
enum object_figure {
	FIGURE_NUMBER,	  /* the object's own number */
	FIGURE_STATE,	  /* QP: enum ib_qp_state */
	FIGURE_PEER,	  /* QP: number of the peer */
	FIGURE_PSN_NEXT,  /* QP: PSN of the next request */
	FIGURE_PSN_ACKED, /* QP: all PSNs before it are acknowledged */
	/* QP: PSN of the peer's next request, unless a word says it (qp_word.h). */
	FIGURE_PSN_EXPECTED,
	FIGURE_SENT,	     /* QP: requests begun */
	FIGURE_RETIRED,	     /* QP: requests that have ended */
	FIGURE_SEND_ENTRIES, /* QP: capacity of the send ring, in blocks */
	FIGURE_FETCHED,	     /* QP: blocks of the send ring that were fetched */
	FIGURE_TAKEN,	     /* QP, SRQ: receives taken */
	FIGURE_PRODUCED,     /* CQ: completions written */
	FIGURE_ENTRIES,	     /* CQ, SRQ: capacity; QP: capacity of its own receive queue */
	FIGURE_OVERRUN,	     /* CQ: it has overrun */
	FIGURE_MIGRATION,    /* QP: enum ib_mig_state */
	FIGURE_RECORD,	     /* address of the two words that the program counts in (prm/wqe.h) */
	FIGURES
};

struct object_place {
	uint16_t offset;
	uint16_t bytes; /* 1, 2, 4 or 8; 0: the kind has no such figure */
};

struct object_form {
	struct object_place figures[FIGURES];
};

#define OBJECT_PLACE(type, field)                                    \
	{                                                            \
		offsetof(type, field), sizeof(((type *)NULL)->field) \
	}

/* The part that does not change as the object works. */
struct object_about {
	uint64_t at; /* its address in the owner */
	uint32_t kind;
	uint32_t number;
	uint32_t type; /* QP: enum ib_qp_type */
	uint32_t port; /* row of the subnet */
	uint32_t pdn;
	uint32_t send_cqn, recv_cqn, srqn; /* QP and XRC SRQ; OBJECT_NO_NUMBER: none */
	uint32_t context;		   /* CQ, PD: number of the context that made it */
};

#define OBJECT_NO_NUMBER 0xffffffffu

struct object_row {
	cacheline_aligned _Atomic(uint64_t) serial; /* 0: the row is free */
	struct object_about about;
	_Atomic(uint32_t) failures; /* how often the object has failed */
	char why[OBJECT_WHY_BYTES]; /* the last failure's reason */
};

struct expose;

/* Says where objects of this kind have their figures. */
void expose_object_form(struct expose *e, enum object_kind kind, const struct object_form *form);
/* Lists an object; NULL: there is no room, or nobody may look. */
struct object_row *expose_object(struct expose *e, const struct object_about *about);
/* Called before the object's memory is freed.  row may be NULL, here and below. */
void expose_object_end(struct expose *e, struct object_row *row);
/* Counts a failure of the object. */
void expose_object_failed(struct object_row *row, const char *why);
