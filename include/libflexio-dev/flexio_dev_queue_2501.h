/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What generation 25.1 adds to flexio_dev_queue_access.h, which includes this header: registers of
 * the outbox, completions that are compressed, address vectors, and requests that wait for memory.
 * Programs of each generation have them, as with the SDK.
 */
#ifndef _FLEXIO_DEV_QUEUE_2501_H_
#define _FLEXIO_DEV_QUEUE_2501_H_

#ifndef _FLEXIO_DEV_QUEUE_ACCESS_H_
#error "include <libflexio-dev/flexio_dev_queue_access.h>"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Variant of MLX5_CTRL_SEG_OPCODE_WAIT. */
enum {
	MLX5_CTRL_SEGMENT_OPC_MOD_WAIT_ON_DATA = 0x1,
};

/* ---- the outbox ---- */

/**
 * flexio_dev_read_db_value() - what drivers have stored last to a doorbell of an emulated function.
 * @emu_ctx_id: flexio_emu_db_to_cq_ctx_get_id() of the host
 *
 * Returns 0 if nobody has rung, or if the thread's outbox does not go with the context.
 */
uint32_t flexio_dev_read_db_value(uint64_t emu_ctx_id);

/**
 * flexio_dev_cc_ring_db_low64bit() - flexio_dev_cc_ring_db() by the value of the register.
 * @value: OUTBOX_V_CC_DB() of flexio_dev_dpa_arch.h
 */
void flexio_dev_cc_ring_db_low64bit(uint64_t value);

/**
 * flexio_dev_cc_ring_db_high64bit() - store to the second half of a register of congestion control
 * that has 128 bits.
 * @value: what is stored
 *
 * The devices here have 64 bits.  What is stored behind them is dropped, and the host's log says so
 * once.
 */
void flexio_dev_cc_ring_db_high64bit(uint64_t value);

/* ---- compressed completions ---- */

/**
 * flexio_dev_comp_cq_init() - make the entries of a ring ready for compressed completions.
 * @cqe: the first entry
 * @num_cqes: how many
 * @validity_iteration_count: number of the round, which no completion of the first round has
 */
static inline void flexio_dev_comp_cq_init(struct flexio_dev_cqe64 *cqe, int num_cqes,
					   uint8_t validity_iteration_count)
{
	for (int i = 0; i < num_cqes; i++)
		cqe[i].signature = validity_iteration_count;
}

/** flexio_dev_comp_cqe_get_validity_byte() - number of the ring's round in @cqe. */
static inline uint8_t flexio_dev_comp_cqe_get_validity_byte(struct flexio_dev_cqe64 *cqe)
{
	return cqe->signature;
}

/** flexio_dev_comp_cqe_is_comp_cqe_array() - whether @cqe is an entry of several completions. */
static inline uint8_t flexio_dev_comp_cqe_is_comp_cqe_array(struct flexio_dev_cqe64 *cqe)
{
	return flexio_dev_cqe_get_type(cqe) == 3;
}

/** flexio_dev_comp_cqe_get_num_comp_cqes() - how many completions the entry @cqe has. */
static inline uint8_t flexio_dev_comp_cqe_get_num_comp_cqes(struct flexio_dev_cqe64 *cqe)
{
	return (uint8_t)((cqe->op_own >> 4) + 1);
}

/**
 * flexio_dev_comp_cqe_get_comp_cqe() - one completion of an entry of several.
 * @cqe: the entry
 * @comp_cqe_index: which one
 *
 * Returns its eight bytes as they lie in memory.
 */
static inline uint64_t flexio_dev_comp_cqe_get_comp_cqe(struct flexio_dev_cqe64 *cqe,
							int comp_cqe_index)
{
	return ((struct flexio_dev_mini_cqe64 *)(void *)cqe)->mini_cqe[comp_cqe_index];
}

/** The hash of a receive, of what flexio_dev_comp_cqe_get_comp_cqe() returns. */
#define FLEXIO_DEV_COMP_CQE_GET_RX_HASH_RESULT(_x) \
	be32_to_cpu((uint32_t)((uint64_t)(_x)&0xffffffffu))

/* ---- segments of work requests ---- */

/**
 * flexio_dev_swqe_seg_av1_set() - fill in the first segment of an address vector.
 * @swqe: the segment
 * @qkey: queue key of the destination
 * @dqp: number of the destination
 * @ext: 1: two further segments follow; 0: this one is all
 * @stat_rate_sl: bits 4 to 7 rate, 0 to 3 service level
 * @fl_mlid: bit 7 loopback, 0 to 6 the own LID's low bits
 * @rlid: LID of the destination
 */
static inline void flexio_dev_swqe_seg_av1_set(union flexio_dev_sqe_seg *swqe, uint32_t qkey,
					       uint32_t dqp, uint8_t ext, uint8_t stat_rate_sl,
					       uint8_t fl_mlid, uint16_t rlid)
{
	swqe->adres_vector.s1.key.qkey.qkey = cpu_to_be32(qkey);
	swqe->adres_vector.s1.key.qkey.reserved = 0;
	swqe->adres_vector.s1.ext_dqp_dct = cpu_to_be32((uint32_t)ext << 31 | dqp);
	swqe->adres_vector.s1.stat_rate_sl = stat_rate_sl;
	swqe->adres_vector.s1.fl_mlid = fl_mlid;
	swqe->adres_vector.s1.rlid = cpu_to_be16(rlid);
}

/**
 * flexio_dev_swqe_seg_av2_set() - fill in the second segment of an address vector.
 * @swqe: the segment
 * @rmac: MAC of the destination, 6 bytes
 * @tclass: traffic class
 * @hop_limit: hop limit
 * @grh_gid_fl: bit 30 packets have a GRH, 20 to 27 index of the own GID, 0 to 19 flow label
 */
static inline void flexio_dev_swqe_seg_av2_set(union flexio_dev_sqe_seg *swqe, uint8_t *rmac,
					       uint8_t tclass, uint8_t hop_limit,
					       uint32_t grh_gid_fl)
{
	for (int i = 0; i < 4; i++)
		swqe->adres_vector.s2.reserved0[i] = 0;
	for (int i = 0; i < 6; i++)
		swqe->adres_vector.s2.rmac[i] = rmac[i];
	swqe->adres_vector.s2.tclass = tclass;
	swqe->adres_vector.s2.hop_limit = hop_limit;
	swqe->adres_vector.s2.grh_gid_fl = cpu_to_be32(grh_gid_fl);
}

/**
 * flexio_dev_swqe_seg_av3_set() - fill in the third segment of an address vector.
 * @swqe: the segment
 * @rgid: GID of the destination, 16 bytes
 */
static inline void flexio_dev_swqe_seg_av3_set(union flexio_dev_sqe_seg *swqe, uint8_t *rgid)
{
	for (int i = 0; i < 16; i++)
		swqe->adres_vector.s3.rgid[i] = rgid[i];
}

/**
 * flexio_dev_swqe_seg_wait_on_data_set() - fill in what a request waits for.
 * @swqe: the segment
 * @operation: 0 nothing, 1 equal, 2 bigger, 3 smaller, 4 and 5 the same as serial numbers
 * @inv: 1: for the contrary
 * @lkey: key of the memory
 * @addr: its address, a multiple of 8
 * @action_on_fail: what follows from an error, 3 bits; 0 here
 */
static inline flexio_dev_status_t
flexio_dev_swqe_seg_wait_on_data_set(union flexio_dev_sqe_seg *swqe, uint8_t operation, uint8_t inv,
				     uint32_t lkey, uint64_t addr, uint8_t action_on_fail)
{
	for (int i = 0; i < 3; i++)
		swqe->wait_on_data.rsvd0[i] = 0;
	swqe->wait_on_data.op_inv = (uint8_t)(inv << 4 | operation);
	swqe->wait_on_data.lkey = cpu_to_be32(lkey);
	swqe->wait_on_data.va_63_32 = cpu_to_be32((uint32_t)(addr >> 32));
	swqe->wait_on_data.va_31_3_fail_act =
		cpu_to_be32(((uint32_t)addr & 0xfffffff8u) | action_on_fail);
	return FLEXIO_DEV_STATUS_SUCCESS;
}

/**
 * flexio_dev_swqe_seg_wait_on_data_data_set() - fill in the value that memory is compared with.
 * @swqe: the segment
 * @data: the value, as it is to lie in the request: big-endian
 * @data_mask: the bits that are compared
 */
static inline flexio_dev_status_t
flexio_dev_swqe_seg_wait_on_data_data_set(union flexio_dev_sqe_seg *swqe, uint64_t data,
					  uint64_t data_mask)
{
	swqe->wait_on_data_data.data = data;
	swqe->wait_on_data_data.data_mask = cpu_to_be64(data_mask);
	return FLEXIO_DEV_STATUS_SUCCESS;
}

#ifdef __cplusplus
}
#endif

#endif
