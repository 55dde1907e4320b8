/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Constants, types and attribute structures of the Flex IO host interface.  Included by flexio.h,
 * which says what holds for all of them.
 *
 * The order of the fields is part of the interface: programs initialise by position.  A structure
 * that is cleared has the defaults; what the defaults are stands at each field.
 */
#ifndef _FLEXIO_TYPES_H_
#define _FLEXIO_TYPES_H_

#ifndef _FLEXIO_SDK_H_
#error "include <libflexio/flexio.h>"
#endif

/** Longest name of an application or of a device function, in bytes without the terminator. */
#define FLEXIO_MAX_NAME_LEN (256)

/* Execution units (EU), each of which runs one DPA thread at a time. */
#define PHY_CORES_NUM	(16)
#define EUS_PER_CORE	(16)
#define EUS_LIMIT	(PHY_CORES_NUM * EUS_PER_CORE)
#define OS_RESERVED_EUS (2)
/** EUs that programs can use: FLEXIO_AFFINITY_STRICT takes 0 to USER_EUS_LIMIT - 1. */
#define USER_EUS_LIMIT (EUS_LIMIT - OS_RESERVED_EUS)
/** Bytes of a set of EUs, one bit for each. */
#define EU_BITMASK_LEN (EUS_LIMIT / 8)

/* Message streams. */

/** Logarithm of the bytes of the pieces in which a stream's buffer is handed over. */
#define FLEXIO_MSG_DEV_LOG_DATA_CHUNK_BSIZE (9)
/** Most streams of one process; their numbers are 0 to 254. */
#define FLEXIO_MSG_DEV_MAX_STREAMS_AMOUNT (255)
/** Number of the default stream, which is the first that a process makes. */
#define FLEXIO_MSG_DEV_DEFAULT_STREAM_ID (0)

/* Levels of messages and streams.  A stream shows messages of its own level and of those above. */
#define FLEXIO_MSG_DEV_NO_PRINT	    (0)
#define FLEXIO_MSG_DEV_ALWAYS_PRINT (1)
#define FLEXIO_MSG_DEV_ERROR	    (2)
#define FLEXIO_MSG_DEV_WARN	    (3)
#define FLEXIO_MSG_DEV_INFO	    (4)
#define FLEXIO_MSG_DEV_DEBUG	    (5)

/** One of the levels above. */
typedef uint8_t flexio_msg_dev_level;

/** An address in the memory of a DPA process.  The host never dereferences it. */
typedef uint64_t flexio_uintptr_t;

/** Number by which device code selects the device of an extended UAR. */
typedef uint32_t flexio_uar_device_id;

/**
 * Type of the host's stand-in of a device function.  dpacc makes one for each function annotated
 * with __dpa_rpc__ or __dpa_global__, and a program declares it before it names the function:
 *
 *	extern flexio_func_t name_of_the_device_function;
 *
 * Only its address matters (name and &name are the same); it is not to be called.
 */
typedef void(flexio_func_t)(void);

/**
 * Type of the functions that store the arguments of a call for the device.  dpacc makes one for
 * each __dpa_rpc__ function; the library calls it on behalf of flexio_process_call().
 * @argbuf: the buffer of as many bytes as flexio_func_pup_register() was told
 * @ap: the caller's arguments, initialised with va_start
 */
typedef void(flexio_func_arg_pack_fn_t)(void *argbuf, va_list ap);

/* Objects of the library; programs see only pointers to them. */
struct flexio_process;
struct flexio_window;
struct flexio_outbox;
struct flexio_event_handler;
struct flexio_thread;
struct flexio_cq;
struct flexio_emu_db_to_cq_ctx;
struct flexio_rq;
struct flexio_rmp;
struct flexio_sq;
struct flexio_qp;
struct flexio_mkey;
struct flexio_uar;
struct flexio_app;
struct flexio_cmdq;
struct flexio_msg_stream;

/** What the functions return. */
typedef enum {
	/** It is done. */
	FLEXIO_STATUS_SUCCESS = 0,
	/** It is not done, and nothing has changed; a line of the log says why. */
	FLEXIO_STATUS_FAILED = 1,
	/** The DPA did not answer in time. */
	FLEXIO_STATUS_TIMEOUT = 2,
	/** The DPA process has ended by an error; see flexio_err_status_get(). */
	FLEXIO_STATUS_FATAL_ERR = 3,
} flexio_status;

/** Whether and by what a DPA process has ended. */
enum flexio_err_status {
	FLEXIO_DEV_NO_ERROR = 0,
	/** A fault, or an error that the SDK or the firmware found. */
	FLEXIO_DEV_FATAL_ERROR = 1,
	/** The program's own flexio_dev_error(). */
	FLEXIO_DEV_USER_ERROR = 2,
};

/** Which EUs a DPA thread may run on. */
enum flexio_affinity_type {
	/** Any EU. */
	FLEXIO_AFFINITY_NONE = 0,
	/** The one EU of that number. */
	FLEXIO_AFFINITY_STRICT = 1,
	/** Any EU of the group of that number. */
	FLEXIO_AFFINITY_GROUP = 2,
};

/** State of a command queue. */
enum flexio_cmdq_state {
	/** Tasks are kept until flexio_cmdq_state_running(). */
	FLEXIO_CMDQ_STATE_PENDING = 0,
	/** Tasks run as soon as a worker is free. */
	FLEXIO_CMDQ_STATE_RUNNING = 1,
};

/** From when the period of a CQ's moderation is counted. */
enum flexio_cq_period_mode {
	/** From the last event. */
	FLEXIO_CQ_PERIOD_MODE_EVENT = 0x0,
	/** From the last completion. */
	FLEXIO_CQ_PERIOD_MODE_CQE = 0x1,
};

/** Compression of completions. */
enum flexio_cqe_comp_type {
	FLEXIO_CQE_COMP_NONE = 0x0,
	FLEXIO_CQE_COMP_BASIC = 0x1,
	FLEXIO_CQE_COMP_ENH = 0x2,
};

/** Levels of the log that the library writes on the host. */
typedef enum flexio_log_lvl {
	FLEXIO_LOG_LVL_ERR = 0,
	FLEXIO_LOG_LVL_WARN = 1,
	FLEXIO_LOG_LVL_INFO = 2,
	FLEXIO_LOG_LVL_DBG = 3,
} flexio_log_lvl_t;

/** Where the memory of a queue lies. */
enum flexio_memtype {
	/** In the memory of the DPA process.  Zero, so that a cleared structure means it. */
	FLEXIO_MEMTYPE_DPA = 0,
	/** In a umem of the host. */
	FLEXIO_MEMTYPE_HOST = 1,
};

/** When the messages of a stream reach the host's file. */
typedef enum flexio_log_dev_sync_mode {
	/** At once; a thread of the host writes them. */
	FLEXIO_LOG_DEV_SYNC_MODE_SYNC = 0,
	/** At flexio_msg_stream_flush(); the buffer can overrun before. */
	FLEXIO_LOG_DEV_SYNC_MODE_ASYNC = 1,
	/** As with SYNC, but several at a time. */
	FLEXIO_LOG_DEV_SYNC_MODE_BATCH = 2,
	/** The stream carries binary records of flexio_dev_trace_0() and so on. */
	FLEXIO_LOG_DEV_SYNC_MODE_TRACER = 3,
} flexio_msg_dev_sync_mode;

/* The same values by the names of later generations. */
#define FLEXIO_MSG_DEV_SYNC_MODE_SYNC	FLEXIO_LOG_DEV_SYNC_MODE_SYNC
#define FLEXIO_MSG_DEV_SYNC_MODE_ASYNC	FLEXIO_LOG_DEV_SYNC_MODE_ASYNC
#define FLEXIO_MSG_DEV_SYNC_MODE_BATCH	FLEXIO_LOG_DEV_SYNC_MODE_BATCH
#define FLEXIO_MSG_DEV_SYNC_MODE_TRACER FLEXIO_LOG_DEV_SYNC_MODE_TRACER

#if FLEXIO_VER_USED >= FLEXIO_VER(24, 10, 0) || defined(__FLEXIO_EITHER)
/** How messages reach the host, by the names of later generations: each is a QP here. */
enum flexio_msg_transport_mode {
	FLEXIO_MSG_TRANSPORT_QP_RC = 0,
	FLEXIO_MSG_TRANSPORT_QP_UC = 0,
	FLEXIO_MSG_TRANSPORT_QP_UD = 0,
};
#endif

/** How the records of a tracer reach the host. */
enum flexio_tracer_transport {
	FLEXIO_TRACER_TRANSPORT_QP = 0,
	FLEXIO_TRACER_TRANSPORT_WINDOW = 1,
};

/** Operations of a QP; they were the bits of flexio_qp_attr.ops_flag. */
enum flexio_qp_op_types {
	FLEXIO_QP_WR_RDMA_WRITE = 0x4,
	FLEXIO_QP_WR_RDMA_READ = 0x8,
	FLEXIO_QP_WR_ATOMIC_CMP_AND_SWAP = 0x10,
};

/** Path MTU of a QP. */
enum flexio_qp_qpc_mtu {
	FLEXIO_QP_QPC_MTU_BYTES_256 = 0x1,
	FLEXIO_QP_QPC_MTU_BYTES_512 = 0x2,
	FLEXIO_QP_QPC_MTU_BYTES_1K = 0x3,
	FLEXIO_QP_QPC_MTU_BYTES_2K = 0x4,
	FLEXIO_QP_QPC_MTU_BYTES_4K = 0x5,
};

/** State of a QP. */
enum flexio_qp_state {
	FLEXIO_QP_STATE_RST = 0x0,
	FLEXIO_QP_STATE_INIT = 0x1,
	FLEXIO_QP_STATE_RTR = 0x2,
	FLEXIO_QP_STATE_RTS = 0x3,
	FLEXIO_QP_STATE_ERR = 0x6,
};

/** Transport of a QP. */
enum flexio_qp_transport_type {
	FLEXIO_QPC_ST_RC = 0x0,
	FLEXIO_QPC_ST_UC = 0x1,
	FLEXIO_QPC_ST_UD = 0x2,
	FLEXIO_QPC_ST_XRC = 0x3,
	FLEXIO_QPC_ST_IBL2 = 0x4,
	FLEXIO_QPC_ST_DCI = 0x5,
	FLEXIO_QPC_ST_QP0 = 0x7,
	FLEXIO_QPC_ST_QP1 = 0x8,
	FLEXIO_QPC_ST_RAW_DATAGRAM = 0x9,
	FLEXIO_QPC_ST_REG_UMR = 0xc,
	FLEXIO_QPC_ST_DC_CNAK = 0x10,
};

/** What a CQ activates: values of flexio_cq_attr.element_type. */
enum {
	/** The thread flexio_cq_attr.thread. */
	FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD = 0x0,
	/** The event queue of the number flexio_cq_attr.emulated_eqn. */
	FLEXIO_CQ_ELEMENT_TYPE_EXT_EQ = 0x2,
	/** Nothing: the CQ is polled. */
	FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ = 0x8,
	/** The MSI-X vector of an emulated device, by flexio_cq_attr.emulated_eqn. */
	FLEXIO_CQ_ELEMENT_TYPE_DPA_MSIX_EMULATED_CQ = 0x9,
};

/** What a QP receives with: values of flexio_qp_attr.rq_type. */
enum {
	/** A receive queue of its own. */
	FLEXIO_QP_QPC_RQ_TYPE_REGULAR = 0x0,
	/** The receive memory pool flexio_qp_attr.rmpqn. */
	FLEXIO_QP_QPC_RQ_TYPE_SRQ_RMP_XRC_SRQ_XRQ = 0x1,
	/** Nothing. */
	FLEXIO_QP_QPC_RQ_TYPE_ZERO_SIZE_RQ = 0x3,
};

/** Order of the entries of a receive memory pool. */
enum flexio_wq_type {
	/** Each entry names the next. */
	FLEXIO_WQ_TYPE_LINKED_LIST = 0x0,
	/** A ring; no receive memory pool has it yet. */
	FLEXIO_WQ_TYPE_CYCLIC = 0x1,
};

/** Memory of a queue, or of its doorbell record. */
struct flexio_qmem {
	enum flexio_memtype memtype;
	union {
		/** FLEXIO_MEMTYPE_DPA: an address on the heap of the process. */
		flexio_uintptr_t daddr;
		/** FLEXIO_MEMTYPE_HOST: bytes from the start of the umem. */
		uint64_t humem_offset;
	};
	/** FLEXIO_MEMTYPE_HOST: the umem's number. */
	uint32_t umem_id;
};

/** State of the heap of a process. */
struct flexio_heap_mem_info {
	/** DPA address of its first byte. */
	uint64_t base_addr;
	/** All its bytes. */
	size_t size;
	/** Bytes that the present allocations asked for. */
	size_t requested;
	/** Bytes that they take, with what is lost to alignment and management. */
	size_t allocated;
};

/** EUs of a thread.  Cleared: any. */
struct flexio_affinity {
	enum flexio_affinity_type type;
	/** Number of the EU or of the group of EUs; ignored with FLEXIO_AFFINITY_NONE. */
	uint32_t id;
};

/** Attributes of a process. */
struct flexio_process_attr {
	/** Protection domain of the queues and keys that the library makes for the process itself,
	 * of its context; NULL: the library allocates one. */
	struct ibv_pd *pd;
	/** Not 0: the process controls congestion; the context is of an Ethernet device. */
	int en_pcc;
};

/** Attributes of an event handler. */
struct flexio_event_handler_attr {
	/** The handler's entry function, annotated with __dpa_global__. */
	flexio_func_t *host_stub_func;
	/** Not 0: flexio_dev_yield() works in it. */
	int continuable;
	/** The entry function's argument if flexio_event_handler_run() does not give one. */
	uint64_t arg;
	/** What flexio_dev_get_thread_local_storage() returns; 0: none. */
	flexio_uintptr_t thread_local_storage_daddr;
	struct flexio_affinity affinity;
};

/** Attributes of a completion queue. */
struct flexio_cq_attr {
	/** Logarithm of the number of entries, which have 64 bytes each. */
	uint8_t log_cq_depth;
	/** What completions activate: FLEXIO_CQ_ELEMENT_TYPE_... */
	uint8_t element_type;
	union {
		/** Event queue of an element type that means one. */
		uint32_t emulated_eqn;
		/** Thread of FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD. */
		struct flexio_thread *thread;
	};
	/** flexio_uar_get_id() for a queue that the DPA handles, the page of a DEVX UAR for one
	 * that the host handles. */
	uint32_t uar_id;
	/** Mapped page of a DEVX UAR, where the host arms the queue; otherwise it must be NULL. */
	void *uar_base_addr;
	enum flexio_cqe_comp_type cqe_comp_type;
	enum flexio_cq_period_mode cq_period_mode;
	/** Moderation: microseconds until an event, if fewer than cq_max_count completions came; at
	 * most 4095. */
	uint16_t cq_period;
	/** Moderation: completions until an event. */
	uint16_t cq_max_count;
	/** The CQ is not armed when it is made; without it the first completion activates. */
	bool no_arm;
	/** All completions are written to the first entry. */
	bool cc;
	/** Not 0: it is no error if completions overwrite others that were not consumed. */
	uint8_t overrun_ignore;
	/** Not 0: each completion activates, without flexio_dev_cq_arm(). */
	uint8_t always_armed;
	/** The ring, at a multiple of 64; every entry's owner bit is to be 1 before the CQ is made. */
	struct flexio_qmem cq_ring_qmem;
	/** Doorbell record, 8 bytes of DPA memory at a multiple of 8, which are to be 0 before the CQ
	 * is made. */
	flexio_uintptr_t cq_dbr_daddr;
};

/** Attributes that only send queues have. */
struct flexio_wq_sq_attr {
	/** Not 0: multi-packet send work requests are allowed. */
	uint8_t allow_multi_pkt_send_wqe;
};

/** Attributes that only receive memory pools have. */
struct flexio_wq_rq_attr {
	/** FLEXIO_WQ_TYPE_LINKED_LIST; FLEXIO_WQ_TYPE_CYCLIC is not supported. */
	enum flexio_wq_type wq_type;
};

/** Attributes of a receive queue, a send queue or a receive memory pool. */
struct flexio_wq_attr {
	/** Logarithm of the bytes of an entry; 0 stands for 4, one segment of 16 bytes. */
	uint8_t log_wq_stride;
	/** Logarithm of the number of entries; of a send queue, of blocks of 64 bytes. */
	uint8_t log_wq_depth;
	/** flexio_uar_get_id() of the UAR through which the queue's doorbell comes. */
	uint32_t uar_id;
	/** Comes back in the completions; 24 bits. */
	uint32_t user_index;
	/** Protection domain of the keys in the entries. */
	struct ibv_pd *pd;
	union {
		struct flexio_wq_sq_attr sq;
		struct flexio_wq_rq_attr rq;
	};
	/** The ring, at a multiple of 64. */
	struct flexio_qmem wq_ring_qmem;
	/** Doorbell record, 8 bytes at a multiple of 8: receive counter, send counter, big-endian. */
	struct flexio_qmem wq_dbr_qmem;
};

/** Which of the fields that are optional in a transition flexio_qp_modify() sets. */
struct flexio_qp_attr_opt_param_mask {
	bool qp_access_mask;
	bool min_rnr_nak_timer;
};

/** Attributes of a queue pair, for its creation and for its transitions. */
struct flexio_qp_attr {
	/** enum flexio_qp_transport_type; only FLEXIO_QPC_ST_RC is promised by the manual. */
	uint32_t transport_type;
	/** flexio_uar_get_id() of the UAR through which the doorbell comes. */
	uint32_t uar_id;
	/** Comes back in the completions; 24 bits. */
	uint32_t user_index;
	/** IBV_ACCESS_REMOTE_WRITE, _REMOTE_READ, _REMOTE_ATOMIC, _LOCAL_WRITE. */
	int qp_access_mask;
	/** Deprecated and ignored. */
	int ops_flag;
	struct ibv_pd *pd;
	/** Logarithm of the number of blocks of 64 bytes. */
	int log_sq_depth;
	/** Not 0: the QP has no send queue. */
	int no_sq;
	/** CQ of the send queue. */
	uint32_t sq_cqn;
	/** Logarithm of the number of entries of 16 bytes. */
	int log_rq_depth;
	/** FLEXIO_QP_QPC_RQ_TYPE_... */
	int rq_type;
	/** CQ of the receive queue; ignored with a receive memory pool. */
	uint32_t rq_cqn;
	/** flexio_rmp_get_wq_num() of the pool, if rq_type says that there is one. */
	uint32_t rmpqn;
	/** Both rings, at a multiple of 64: the receive queue comes first. */
	struct flexio_qmem qp_wq_buff_qmem;
	/** Doorbell record, 8 bytes at a multiple of 8: receive counter, send counter, big-endian. */
	struct flexio_qmem qp_wq_dbr_qmem;

	/* What follows is for flexio_qp_modify() alone. */

	/** State that the QP is moved to. */
	enum flexio_qp_state next_state;
	uint32_t remote_qp_num;
	/** Index of the own GID in the port's table. */
	uint8_t gid_table_index;
	/** Not 0: packets to the own port are looped back. */
	uint8_t fl;
	/** Six bytes, for Ethernet. */
	uint8_t *dest_mac;
	/** GID of the peer, or its IP address as a GID. */
	union ibv_gid rgid_or_rip;
	/** LID of the peer, for InfiniBand. */
	uint16_t rlid;
	/** Code of the InfiniBand specification, 0 to 31. */
	uint32_t min_rnr_nak_timer;
	enum flexio_qp_qpc_mtu path_mtu;
	/** Retries before the QP goes to error, 0 to 7. */
	uint8_t retry_count;
	/** Port, from 1. */
	uint8_t vhca_port_num;
	/** First packet sequence numbers, 24 bits. */
	uint32_t next_rcv_psn;
	uint32_t next_send_psn;
	/** UDP source port of RoCE packets. */
	uint16_t udp_sport;
	/** Not 0: packets have a global route header. */
	uint8_t grh;
	/** Logarithm of the reads and atomics that the peer may have outstanding here. */
	uint8_t log_rra_max;
	/** Logarithm of the reads and atomics that this QP may have outstanding. */
	uint8_t log_sra_max;
	/** Not 0: packets use a virtual lane or traffic class of their own, where there is one. */
	uint8_t isolate_vl_tc;
};

/** Attributes of a key over DPA memory. */
struct flexio_mkey_attr {
	/** Protection domain of the process's context, or of another whose queues use the key. */
	struct ibv_pd *pd;
	/** First byte, and number of bytes. */
	flexio_uintptr_t daddr;
	size_t len;
	/** IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE; IBV_ACCESS_REMOTE_READ,
	 * IBV_ACCESS_REMOTE_ATOMIC and IBV_ACCESS_RELAXED_ORDERING are taken as well. */
	int access;
};

/** Attributes of a command queue. */
struct flexio_cmdq_attr {
	/** DPA threads that run tasks, at least 1; there may be more of them than EUs.  Event
	 * handlers, workers and calls share the 1024 threads of a process. */
	int workers;
	/** Tasks that one worker runs before it gives its EU back, at least 1. */
	int batch_size;
	/** State at the start. */
	enum flexio_cmdq_state state;
};

/** Attributes of an application. */
struct flexio_app_attr {
	/** Name, up to FLEXIO_MAX_NAME_LEN bytes. */
	const char *app_name;
	/** The device's ELF file in memory, and its bytes.  The library copies it. */
	void *app_ptr;
	size_t app_bsize;
	/** Section of the file with a signature; NULL or "": it is not signed. */
	char *app_sig_sec_name;
};

/** Attributes of a message stream. */
#if FLEXIO_VER_USED >= FLEXIO_VER(24, 10, 0)
typedef struct flexio_msg_stream_attr {
#else
typedef struct flexio_log_dev_attr {
#endif
	/** Deprecated and ignored. */
	struct flexio_uar *uar;
	/** Bytes of the buffer: a power of two, from 2048 to 64 MiB. */
	size_t data_bsize;
	flexio_msg_dev_sync_mode sync_mode;
	/** For the log and for the name of the thread that writes; NULL: none. */
	char *stream_name;
	/** Most detailed level that is shown; in the default stream FLEXIO_MSG_DEV_INFO. */
	flexio_msg_dev_level level;
	/** EUs that make and end the stream on the DPA; cleared: any. */
	struct flexio_affinity mgmt_affinity;
	/** Read with FLEXIO_LOG_DEV_SYNC_MODE_TRACER only. */
#if FLEXIO_VER_USED >= FLEXIO_VER(24, 10, 0) || defined(__FLEXIO_EITHER)
	union {
		enum flexio_tracer_transport tracer_mode;
		enum flexio_msg_transport_mode transport_mode;
	};
#else
	enum flexio_tracer_transport tracer_mode;
#endif
	/** Read with FLEXIO_LOG_DEV_SYNC_MODE_TRACER only: formats as of printf, by the format
	 * number of a record; NULL behind the last. */
	char **tracer_msg_formats;
} flexio_msg_stream_attr_t;
#ifdef __FLEXIO_EITHER
#define flexio_msg_stream_attr flexio_log_dev_attr
#endif

/** Attributes of an outbox. */
struct flexio_outbox_attr {
	/** Deprecated and ignored: it is the UAR of the process. */
	struct flexio_uar *uar;
	/** Not 0: doorbells of congestion control go through it; the process has en_pcc, too. */
	uint32_t en_pcc;
};

#endif
