// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queries: walks over all records that there may be, in slices, so that a table of all paths keeps
 * nobody waiting.  A walk sees rows as they are when it comes to them.
 */
#include "fabric/daemon/sa/sa.h"

#include <stdlib.h>
#include <string.h>

#define QUERY_FIRST_ROOM 16u

void sa_query_free(struct sa_query *q)
{
	q->sa->nqueries--;
	q->sa->answer_bytes -= q->room;
	free(q->answer);
	sa_list_free(q);
	free(q);
}

static uint32_t query_record_bytes(const struct sa_query *q)
{
	return (q->kind->bytes + 7u) & ~7u;
}

/* Returns the bytes of that many records, with the header. */
static uint64_t query_bytes(const struct sa_query *q, uint64_t records)
{
	return SA_AT_DATA + records * query_record_bytes(q);
}

/*
 * Makes room for one more record.  The answer grows by halves, so that little stays empty where
 * there are many answers.
 */
static bool query_make_room(struct sa_query *q)
{
	uint64_t need = query_bytes(q, q->nrecords + 1ull), room;
	uint8_t *answer;

	if (need <= q->room)
		return true;
	room = query_bytes(q, q->nrecords + q->nrecords / 2 + QUERY_FIRST_ROOM);
	if (room > SA_MOST_BYTES)
		room = SA_MOST_BYTES;
	if (need > room || q->sa->answer_bytes + room - q->room > SA_MOST_ALL)
		return false;
	answer = realloc(q->answer, room);
	if (!answer)
		return false;
	q->sa->answer_bytes += room - q->room;
	q->answer = answer;
	q->room = (uint32_t)room;
	return true;
}

/* Adds a record; returns a status. */
static unsigned query_add(struct sa_query *q, const uint8_t *record)
{
	if (q->method == MAD_GET && q->nrecords)
		return SA_TOO_MANY;
	if (!query_make_room(q))
		return SA_NO_RESOURCES;
	memcpy(q->answer + query_bytes(q, q->nrecords), record, query_record_bytes(q));
	q->nrecords++;
	return MAD_STATUS_OK;
}

static bool query_wants(const struct sa_query *q, const uint8_t *record)
{
	if (!sa_compare(q->kind, q->mask, q->record, record))
		return false;
	return !q->kind->match || q->kind->match(q, record);
}

/* Looks at count records.  Returns a status; *more: there are others. */
static unsigned query_slice(struct sa_query *q, uint32_t count, bool *more)
{
	uint8_t record[SA_RECORD_BYTES];
	unsigned status = MAD_STATUS_OK;

	for (; count && q->at < q->end && !status; count--, q->at++) {
		memset(record, 0, sizeof(record));
		if (q->kind->get(q, q->at, record) && query_wants(q, record))
			status = query_add(q, record);
	}
	*more = !status && q->at < q->end;
	return status;
}

static void query_end(struct sa_query *q, unsigned status)
{
	if (!status && q->method == MAD_GET && !q->nrecords)
		status = SA_NO_RECORDS;
	if (!status && !query_make_room(q)) /* an empty table has a header too */
		status = SA_NO_RESOURCES;
	if (status) {
		memset(q->record, 0, q->record_bytes);
		sa_answer(q, status);
	} else if (q->method == MAD_GET) {
		memcpy(q->record, q->answer + SA_AT_DATA, q->kind->bytes);
		sa_answer(q, MAD_STATUS_OK);
	} else {
		sa_answer_table(q);
	}
	sa_query_free(q);
}

void sa_query_begin(struct sa_query *q)
{
	struct sa *s = q->sa;
	unsigned status = q->kind->check ? q->kind->check(q) : MAD_STATUS_OK;
	bool more = false;

	if (!status) {
		q->end = q->kind->count(q);
		status = query_slice(q, SA_SLICE, &more);
	}
	if (!more) {
		query_end(q, status);
		return;
	}
	*s->queries_end = q;
	s->queries_end = &q->next;
	loop_queue(s->fabric->loop, &s->work);
}

/* Runs one slice of the first query, which then goes behind the others. */
void sa_query_run(struct loop *l, struct loop_work *w)
{
	struct sa *s = (struct sa *)((char *)w - offsetof(struct sa, work));
	struct sa_query *q = s->queries;
	unsigned status;
	bool more;

	if (!q)
		return;
	s->queries = q->next;
	if (!s->queries)
		s->queries_end = &s->queries;
	q->next = NULL;
	status = query_slice(q, SA_SLICE, &more);
	if (more) {
		*s->queries_end = q;
		s->queries_end = &q->next;
	} else {
		query_end(q, status);
	}
	if (s->queries)
		loop_queue(l, w);
}
