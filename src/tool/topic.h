/* SPDX-License-Identifier: BSD-2-Clause */
/* What softhca explain says of a code.  Each kind of code is a table of topics.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOPIC_CAUSES 6

struct topic {
	const char *name;		  /* "IBV_WC_REM_ACCESS_ERR", "EINVAL ibv_modify_qp" */
	const char *number;		  /* "10"; NULL: no number of it is unique */
	const char *text;		  /* the text of the library, or other names; may be NULL */
	const char *means;		  /* one or two sentences */
	const char *causes[TOPIC_CAUSES]; /* the likeliest first; NULL ends them */
	const char *look;		  /* what to look at; may be NULL */
};

struct topic_kind {
	const char *heading;
	const struct topic *topics;
	size_t count;
};

/* Finds the status of a completion by its name, with or without IBV_WC_, or number.  False: there is none. */
bool status_read(const char *text, uint8_t *syndrome);
/* The name of the status that a syndrome (enum cqe_syndrome) becomes; "?": there is none. */
const char *status_name(uint8_t syndrome);

extern const struct topic_kind topics_status; /* of completions */
extern const struct topic_kind topics_event;  /* asynchronous ones */
extern const struct topic_kind topics_errno;  /* as calls return it */
extern const struct topic_kind topics_reason; /* in trace lines */
