/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lies in the rings of the queues: completions, events and segments of work requests, as the
 * adapter reads and writes them.
 *
 * Source of names and layouts: DOCA Driver APIs 2.6.0 Reference Manual, sections 3.5 to 3.18; the
 * bits of flags and codes: infiniband/mlx5dv.h.
 *
 * A byte offset stands at each field.  __be16, __be32 and __be64 are big-endian.
 */
#ifndef _FLEXIO_DEV_QUEUE_TYPES_H_
#define _FLEXIO_DEV_QUEUE_TYPES_H_

#include <libflexio-dev/flexio_dev.h>

/* Linux's own header has the same names for types of the same sizes. */
#ifndef _LINUX_TYPES_H
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef uint64_t __be64;
#endif

/** Logarithm of the segments in a block of 64 bytes, the unit by which send queues count. */
#define LOG_SQE_NUM_SEGS (2)

#define __FLEXIO_DEV_LAYOUT __attribute__((__packed__, __aligned__(8)))

/* Structures without a name in unions without a name: C has them, C++ as an extension. */
#if defined(__cplusplus) && defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wnested-anon-types"
#endif

/** A completion, 64 bytes. */
struct flexio_dev_cqe64 {
#if FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)
	__be32 rsvd0[5]; /* 0x00 */
	/** Checksum field of the later generations. */
	__be16 csum_ok;	   /* 0x14 */
	uint8_t rsvd22[2]; /* 0x16 */
	__be32 rsvd24[2];  /* 0x18 */
#else
	__be32 rsvd0[7]; /* 0x00 */
	/** Bits 0 to 2: the checksums of layers 2, 3 and 4 are right. */
	uint8_t csum_ok;   /* 0x1c */
	uint8_t rsvd29[3]; /* 0x1d */
#endif
	/** Number of the shared receive queue, or the queue's user index; 24 bits. */
	__be32 srqn_uidx; /* 0x20 */
#if FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)
	/** The sender's immediate, or the key that was invalidated. */
	union {
		__be32 imm_inval_pkey;
		__be32 immediate;
	};	       /* 0x24 */
	__be32 rsvd40; /* 0x28 */
#else
	__be32 rsvd36[2];  /* 0x24 */
#endif
	/** Bytes that were received or read. */
	__be32 byte_cnt; /* 0x2c */
	__be32 rsvd48;	 /* 0x30 */
#if FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)
	/** Syndromes of an error: the hardware's, the vendor's and the standard's. */
	union {
		uint8_t hw_err_syndrome;
		uint8_t hw_err_synd;
	};			 /* 0x34 */
	uint8_t rsvd50;		 /* 0x35 */
	uint8_t vendor_err_synd; /* 0x36 */
	union {
		uint8_t syndrome;
		uint8_t err_synd;
	}; /* 0x37 */
#else
	/** Syndromes of an error: the standard's in the low byte, the vendor's in the next. */
	__be32 err_syndrome; /* 0x34 */
#endif
	/** Number of the queue pair, or of the send queue; 24 bits. */
	union {
		__be32 qpn;
		__extension__ struct {
			/** Opcode of the send, or receives that were dropped. */
			uint8_t sop_rdrop;
			uint8_t qpn24[3];
		};
	}; /* 0x38 */
	/** Counter of the request, in a send queue of its first block; not modulo the ring's
	 * size. */
	__be16 wqe_counter; /* 0x3c */
	/** Of compressed completions the number of the ring's round. */
	union {
		uint8_t signature;
		uint8_t validity_iteration_count;
	}; /* 0x3e */
	/** Bits 4 to 7 opcode, 2 and 3 format, 1 solicited, 0 owner.  Written last. */
	volatile uint8_t op_own; /* 0x3f */
} __FLEXIO_DEV_LAYOUT;

/** An entry of several completions, of a CQ with FLEXIO_CQE_COMP_ENH. */
struct flexio_dev_mini_cqe64 {
	/** The first of them; there are no more than these. */
	__be64 mini_cqe[7];		  /* 0x00 */
	uint8_t rsvd0[6];		  /* 0x38 */
	uint8_t validity_iteration_count; /* 0x3e */
	/** Bits 4 to 7 their number less one, 2 and 3 format: 3. */
	uint8_t num_and_type; /* 0x3f */
} __FLEXIO_DEV_LAYOUT;

/** An event, 64 bytes. */
struct flexio_dev_eqe {
	uint8_t rsvd00; /* 0x00 */
	/** 0: a completion. */
	uint8_t type;	   /* 0x01 */
	uint8_t rsvd02;	   /* 0x02 */
	uint8_t sub_type;  /* 0x03 */
	uint8_t rsvd4[28]; /* 0x04 */
	struct {
		__be32 rsvd00[6]; /* 0x20 */
		/** Number of the CQ; 24 bits. */
		__be32 cqn; /* 0x38 */
	} event_data;
	__be16 rsvd3c;	   /* 0x3c */
	uint8_t signature; /* 0x3e */
	/** Bit 0: owner. */
	uint8_t owner; /* 0x3f */
} __FLEXIO_DEV_LAYOUT;

/** Control segment: the first of each work request. */
struct flexio_dev_wqe_ctrl_seg {
	/** Bits 0 to 7 opcode, 8 to 23 counter of the first block, 24 to 31 opcode's variant. */
	__be32 idx_opcode; /* 0x0 */
	/** Bits 0 to 5 number of segments, 8 to 31 number of the queue. */
	__be32 qpn_ds; /* 0x4 */
	/** Bit 1 solicited event, 2 and 3 enum cq_ce_mode, 5 to 7 fence, 24 to 31 signature. */
	__be32 signature_fm_ce_se; /* 0x8 */
	/** Immediate, or the key to invalidate. */
	__be32 general_id; /* 0xc */
} __FLEXIO_DEV_LAYOUT;

/** Ethernet segment. */
struct flexio_dev_wqe_eth_seg {
	__be32 rsvd0; /* 0x0 */
	/** flexio_dev_wqe_eth_seg_cs_swp_flags_t */
	__be16 cs_swp_flags; /* 0x4 */
	/** Payload bytes of each packet of a large send; otherwise 0. */
	__be16 mss;   /* 0x6 */
	__be32 rsvd2; /* 0x8 */
	/** Bytes of headers that lie in the work request, from inline_hdrs on. */
	__be16 inline_hdr_bsz;	/* 0xc */
	uint8_t inline_hdrs[2]; /* 0xe */
} __FLEXIO_DEV_LAYOUT;

/** Flags of an Ethernet segment, as numbers of the machine's byte order. */
typedef enum {
	/** The adapter fills in the checksum of layer 4, of layer 3. */
	FLEXIO_ETH_SEG_L4CS = 0x8000,
	FLEXIO_ETH_SEG_L3CS = 0x4000,
	/** The same for an encapsulated packet. */
	FLEXIO_ETH_SEG_L4CS_INNER = 0x2000,
	FLEXIO_ETH_SEG_L3CS_INNER = 0x1000,
	FLEXIO_ETH_SEG_TRAILER_ALIGN = 0x0200,
	/** Where the program gives the offsets of the headers: a set bit means UDP, or IPv6. */
	FLEXIO_ETH_SEG_SWP_OUTER_L4_TYPE = 0x0040,
	FLEXIO_ETH_SEG_SWP_OUTER_L3_TYPE = 0x0020,
	FLEXIO_ETH_SEG_SWP_INNER_L4_TYPE = 0x0002,
	FLEXIO_ETH_SEG_SWP_INNER_L3_TYPE = 0x0001,
} flexio_dev_wqe_eth_seg_cs_swp_flags_t;

/** 16 bytes of data that continue those of the segment before. */
struct flexio_dev_wqe_inline_data_seg {
	uint8_t inline_data[16]; /* 0x0 */
} __FLEXIO_DEV_LAYOUT;

/** Remote address. */
struct flexio_dev_wqe_rdma_seg {
	__be64 raddr; /* 0x0 */
	__be32 rkey;  /* 0x8 */
	__be32 rsvd0; /* 0xc */
} __FLEXIO_DEV_LAYOUT;

/** Data in memory that is sent, or written to by a read. */
struct flexio_dev_wqe_mem_ptr_send_data_seg {
	__be32 byte_count; /* 0x0 */
	__be32 lkey;	   /* 0x4 */
	__be64 addr;	   /* 0x8 */
} __FLEXIO_DEV_LAYOUT;

/** Data in the work request: bit 31 of byte_count is set, and it may go on in further segments. */
struct flexio_dev_wqe_inline_send_data_seg {
	__be32 byte_count;	    /* 0x0 */
	__be32 data_and_padding[3]; /* 0x4 */
} __FLEXIO_DEV_LAYOUT;

/** Memory to receive into: an entry of a receive queue. */
struct flexio_dev_wqe_rcv_data_seg {
	__be32 byte_count; /* 0x0 */
	__be32 lkey;	   /* 0x4 */
	__be64 addr;	   /* 0x8 */
} __FLEXIO_DEV_LAYOUT;

/** Operands of an atomic operation. */
struct flexio_dev_wqe_atomic_seg {
	__be64 swap_or_add_data; /* 0x0 */
	__be64 compare_data;	 /* 0x8 */
} __FLEXIO_DEV_LAYOUT;

/** Shape of a matrix to transpose. */
struct flexio_dev_wqe_transpose_seg {
	uint8_t rsvd0[3]; /* 0x0 */
	/** Bytes of an element. */
	uint8_t element_size; /* 0x3 */
	uint8_t rsvd1;	      /* 0x4 */
	/** 7 bits each. */
	uint8_t num_of_cols; /* 0x5 */
	uint8_t rsvd2;	     /* 0x6 */
	uint8_t num_of_rows; /* 0x7 */
	uint8_t rsvd4[8];    /* 0x8 */
} __FLEXIO_DEV_LAYOUT;

/** First segment of an entry of a linked list of receive buffers. */
struct flexio_dev_wqe_shared_receive_seg {
	uint8_t rsvd0[2];      /* 0x0 */
	__be16 next_wqe_index; /* 0x2 */
	uint8_t signature;     /* 0x4 */
	uint8_t rsvd1[11];     /* 0x5 */
} __FLEXIO_DEV_LAYOUT;

/** What a request waits for in memory; its fields are big-endian. */
struct flexio_dev_wqe_wait_on_data_seg {
	uint8_t rsvd0[3]; /* 0x0 */
	/** Bits 0 to 3 the condition, 4 its contrary. */
	uint8_t op_inv; /* 0x3 */
	uint32_t lkey;	/* 0x4 */
	/** The address; the low 3 bits of the second part say what follows from an error. */
	uint32_t va_63_32;	   /* 0x8 */
	uint32_t va_31_3_fail_act; /* 0xc */
} __FLEXIO_DEV_LAYOUT;

/** What it is compared with. */
struct flexio_dev_wqe_wait_on_data_data_seg {
	__be64 data;	  /* 0x0 */
	__be64 data_mask; /* 0x8 */
} __FLEXIO_DEV_LAYOUT;

/** One of the three segments of an address vector; the first may stand alone. */
struct flexio_dev_wqe_datagram_seg {
	union {
		struct {
			union {
				struct {
					__be32 qkey;	 /* 0x0 */
					__be32 reserved; /* 0x4 */
				} qkey;
				/** Of DC. */
				__be64 dc_key; /* 0x0 */
			} key;
			/** Bit 31 two further segments follow, 0 to 23 number of the destination. */
			__be32 ext_dqp_dct; /* 0x8 */
			/** Bits 4 to 7 rate, 0 to 3 service level. */
			uint8_t stat_rate_sl; /* 0xc */
			/** Bit 7 loopback, 0 to 6 low bits of the own LID. */
			uint8_t fl_mlid; /* 0xd */
			__be16 rlid;	 /* 0xe */
		} s1;
		struct {
			uint8_t reserved0[4]; /* 0x0 */
			uint8_t rmac[6];      /* 0x4 */
			uint8_t tclass;	      /* 0xa */
			uint8_t hop_limit;    /* 0xb */
			/** Bit 30 GRH, 20 to 27 index of the own GID, 0 to 19 flow label. */
			__be32 grh_gid_fl; /* 0xc */
		} s2;
		struct {
			uint8_t rgid[16]; /* 0x0 */
		} s3;
	};
} __FLEXIO_DEV_LAYOUT;

/** A segment of a work request in a send queue, 16 bytes. */
union flexio_dev_sqe_seg {
	struct flexio_dev_wqe_ctrl_seg ctrl;
	struct flexio_dev_wqe_eth_seg eth;
	struct flexio_dev_wqe_inline_data_seg inline_data;
	struct flexio_dev_wqe_rdma_seg rdma;
	struct flexio_dev_wqe_mem_ptr_send_data_seg mem_ptr_send_data;
	struct flexio_dev_wqe_inline_send_data_seg inline_send_data;
	struct flexio_dev_wqe_atomic_seg atomic;
	struct flexio_dev_wqe_transpose_seg transpose;
	struct flexio_dev_wqe_shared_receive_seg shared_receive;
	struct flexio_dev_wqe_wait_on_data_seg wait_on_data;
	struct flexio_dev_wqe_wait_on_data_data_seg wait_on_data_data;
	struct flexio_dev_wqe_datagram_seg adres_vector;
};

#if defined(__cplusplus) && defined(__clang__)
#pragma clang diagnostic pop
#endif

#endif
