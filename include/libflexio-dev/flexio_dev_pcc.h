/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programmable congestion control: the table at flexio_dev_get_pcc_table_base().
 *
 * The SDK's documents name the table and say nothing of it, so the layout is of this device only
 * (docs/flexio-congestion.md).  Numbers of events and the first 32 bytes of an event are those of
 * the public documentation of DOCA PCC.  Times are nanoseconds, 32 bits of them.
 */
#ifndef _FLEXIO_DEV_PCC_H_
#define _FLEXIO_DEV_PCC_H_

#include <libflexio-dev/flexio_dev.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A rate is a number of 20 fraction bits: this is the port's whole speed. */
#define FLEXIO_DEV_PCC_RATE_MAX (1u << 20)

#define FLEXIO_DEV_PCC_VERSION 1u

/** What has happened to a flow. */
enum flexio_dev_pcc_event_type {
	/** The receiver has told of congestion. */
	FLEXIO_DEV_PCC_EVENT_CNP = 2,
	/** The flow has sent: its first packet, or more since the last such event. */
	FLEXIO_DEV_PCC_EVENT_TX = 3,
	/** The receiver has refused packets: enum flexio_dev_pcc_nack is the subtype. */
	FLEXIO_DEV_PCC_EVENT_NACK = 5,
	/** A probe has come back. */
	FLEXIO_DEV_PCC_EVENT_RTT = 6,
};

enum flexio_dev_pcc_nack {
	FLEXIO_DEV_PCC_NACK_RNR = 1,
	FLEXIO_DEV_PCC_NACK_OOS = 2,
};

/** What FLEXIO_DEV_PCC_EVENT_TX tells. */
struct flexio_dev_pcc_tx {
	/** When the first packet of those that this event counts was sent. */
	uint32_t first_timestamp;
	/** What was sent since the last such event; each count stops at 65535. */
	uint16_t sent_32bytes;
	uint16_t sent_pkts;
	uint32_t flow_qpn;
	uint32_t reserved;
};

/** What FLEXIO_DEV_PCC_EVENT_CNP and FLEXIO_DEV_PCC_EVENT_NACK tell. */
struct flexio_dev_pcc_count {
	uint32_t first_timestamp;
	/** How many came since the last such event, at most 65535. */
	uint32_t count;
	uint32_t reserved[2];
};

/**
 * What FLEXIO_DEV_PCC_EVENT_RTT tells: when the probe was sent, when it reached the receiver, and
 * when the receiver answered.  It came back at the event's timestamp.
 */
struct flexio_dev_pcc_rtt {
	uint32_t sent;
	uint32_t received;
	uint32_t answered;
	uint32_t reserved;
};

/** An event, 64 bytes. */
struct flexio_dev_pcc_event {
	/** enum flexio_dev_pcc_event_type. */
	uint8_t type;
	uint8_t subtype;
	/** Port of the host, counted from 0. */
	uint8_t port;
	uint8_t flags;
	/** Tag of the flow, which no other flow has. */
	uint32_t flow_tag;
	/** The flow's events are numbered from 0. */
	uint32_t sn;
	uint32_t timestamp;
	union {
		struct flexio_dev_pcc_tx tx;
		struct flexio_dev_pcc_count cnp;
		struct flexio_dev_pcc_count nack;
		struct flexio_dev_pcc_rtt rtt;
	};
	/** Number of the flow, for flexio_dev_cc_ring_db() and flexio_dev_pcc_table.flows. */
	uint16_t ccq_id;
	/** Function that the flow is of. */
	uint16_t gvmi;
	/** Queue pair that sends. */
	uint32_t flow_qpn;
	/** TX: octets on the wire and packets, which these counts give in full. */
	uint32_t sent_bytes;
	uint32_t sent_packets;
	uint32_t reserved[4];
};

/** The record of a flow, 64 bytes. */
struct flexio_dev_pcc_flow {
	/** The program's, and zero when a flow begins. */
	uint32_t data[12];
	uint32_t flow_tag;
	uint32_t flow_qpn;
	/** The rate that the program rang last; 0: it rang none. */
	uint32_t rate;
	uint32_t reserved;
};

/** The table of a function, 64 bytes. */
struct flexio_dev_pcc_table {
	/** FLEXIO_DEV_PCC_VERSION. */
	uint32_t version;
	/** Numbers of flows and of events that the table has room for; powers of two. */
	uint32_t flow_entries;
	uint32_t event_entries;
	uint32_t reserved;
	/** Addresses of struct flexio_dev_pcc_flow, by ccq_id, and struct flexio_dev_pcc_event. */
	uint64_t flows;
	uint64_t events;
	/** What FLEXIO_DEV_PCC_RATE_MAX stands for. */
	uint64_t bytes_per_second;
	/** How many events have come, and how many the program took; it writes the latter. */
	uint64_t produced;
	uint64_t consumed;
	uint64_t reserved_too;
};

/**
 * flexio_dev_pcc_next() - the oldest event that was not taken, or NULL.
 * @table: the table
 */
static inline const struct flexio_dev_pcc_event *
flexio_dev_pcc_next(const struct flexio_dev_pcc_table *table)
{
	const struct flexio_dev_pcc_event *events =
		(const struct flexio_dev_pcc_event *)(uintptr_t)table->events;

	if (__atomic_load_n(&table->produced, __ATOMIC_ACQUIRE) == table->consumed)
		return NULL;
	return &events[table->consumed & (table->event_entries - 1)];
}

/**
 * flexio_dev_pcc_take() - take the event of flexio_dev_pcc_next(), which nobody reads any more.
 * @table: the table
 */
static inline void flexio_dev_pcc_take(struct flexio_dev_pcc_table *table)
{
	__atomic_store_n(&table->consumed, table->consumed + 1, __ATOMIC_RELEASE);
}

/**
 * flexio_dev_pcc_flow() - the record of an event's flow.
 * @table: the table
 * @event: the event
 */
static inline struct flexio_dev_pcc_flow *
flexio_dev_pcc_flow(const struct flexio_dev_pcc_table *table,
		    const struct flexio_dev_pcc_event *event)
{
	return (struct flexio_dev_pcc_flow *)(uintptr_t)table->flows + event->ccq_id;
}

#ifdef __cplusplus
}
#endif

#endif
