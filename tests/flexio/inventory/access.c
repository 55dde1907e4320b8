// SPDX-License-Identifier: BSD-2-Clause
/*
 * The inline half of the device interface: what the setters store, and what the accessors read, byte
 * by byte. Compiled as device code with a main function, for each generation. The status is the line
 * of the first thing that is wrong, modulo 256 but never 0.
 */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev_err.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <libflexio-dev/flexio_dev_tracer.h>
#include <libflexio-libc/string.h>

#define LATER (FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0))

#define EXPECT(condition)                                                                        \
	do {                                                                                     \
		if (!(condition)) {                                                              \
			__builtin_printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			return __LINE__ % 255 + 1;                                               \
		}                                                                                \
	} while (0)

union flexio_dev_sqe_seg seg;

static int bytes_are(const char *hex)
{
	const uint8_t *bytes = (const uint8_t *)&seg;
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < sizeof(seg); i++)
		if (hex[2 * i] != digits[bytes[i] >> 4] || hex[2 * i + 1] != digits[bytes[i] & 15])
			return 0;
	return hex[2 * i] == 0;
}

static void spoil(void)
{
	memset(&seg, 0xee, sizeof(seg));
}

static int byte_order(void)
{
	const uint16_t two = 0x0102;
	const uint32_t four = 0x01020304;
	const uint64_t eight = 0x0102030405060708;
	uint8_t bytes[8];

	EXPECT(be16_to_cpu(cpu_to_be16(two)) == two && le16_to_cpu(cpu_to_le16(two)) == two);
	EXPECT(be32_to_cpu(cpu_to_be32(four)) == four && le32_to_cpu(cpu_to_le32(four)) == four);
	EXPECT(be64_to_cpu(cpu_to_be64(eight)) == eight &&
	       le64_to_cpu(cpu_to_le64(eight)) == eight);
	*(uint64_t *)bytes = cpu_to_be64(eight);
	EXPECT(bytes[0] == 1 && bytes[7] == 8);
	*(uint64_t *)bytes = cpu_to_le64(eight);
	EXPECT(bytes[0] == 8 && bytes[7] == 1);
	*(uint32_t *)bytes = cpu_to_be32(four);
	EXPECT(bytes[0] == 1 && bytes[3] == 4);
	*(uint32_t *)bytes = cpu_to_le32(four);
	EXPECT(bytes[0] == 4 && bytes[3] == 1);
	*(uint16_t *)bytes = cpu_to_be16(two);
	EXPECT(bytes[0] == 1 && bytes[1] == 2);
	*(uint16_t *)bytes = cpu_to_le16(two);
	EXPECT(bytes[0] == 2 && bytes[1] == 1);
	return 0;
}

static int completions(void)
{
	static _Alignas(8) uint8_t raw[64];
	struct flexio_dev_cqe64 *cqe = (struct flexio_dev_cqe64 *)raw;
	struct flexio_dev_eqe *eqe = (struct flexio_dev_eqe *)raw;
	size_t i;

	for (i = 0; i < sizeof(raw); i++)
		raw[i] = (uint8_t)(0xa0 + i);
	EXPECT(flexio_dev_cqe_get_user_index(cqe) == 0xc1c2c3);
	EXPECT(flexio_dev_cqe_get_byte_cnt(cqe) == 0xcccdcecf);
	EXPECT(flexio_dev_cqe_get_qpn(cqe) == 0xd9dadb);
	EXPECT(flexio_dev_cqe_get_wqe_counter(cqe) == 0xdcdd);
	EXPECT(flexio_dev_cqe_get_opcode(cqe) == 0xd && flexio_dev_cqe_get_owner(cqe) == 1);
	raw[63] = 0x2e;
	EXPECT(flexio_dev_cqe_get_opcode(cqe) == 2 && flexio_dev_cqe_get_owner(cqe) == 0);
#if LATER
	EXPECT(flexio_dev_cqe_get_csum_ok(cqe) == 0xb4b5);
	EXPECT(flexio_dev_cqe_get_err_synd(cqe) == 0xd7);
	EXPECT(flexio_dev_cqe_get_vendor_err_synd(cqe) == 0xd6);
	EXPECT(flexio_dev_cqe_get_hw_err_synd(cqe) == 0xd4);
	EXPECT(cqe->hw_err_syndrome == 0xd4 && cqe->syndrome == 0xd7 && cqe->sop_rdrop == 0xd8);
	EXPECT(cqe->imm_inval_pkey == cqe->immediate && cqe->qpn24[2] == 0xdb);
	EXPECT(flexio_dev_cqe_get_type(cqe) == 3);
#else
	EXPECT(flexio_dev_cqe_get_csum_ok(cqe) == 0xbc);
	EXPECT(flexio_dev_cqe_get_err_synd(cqe) == 0xd4d5d6d7);
	EXPECT(flexio_dev_cqe_get_hw_err_synd(cqe) == 0xd4);
#endif
	EXPECT(flexio_dev_eqe_get_cqn(eqe) == 0xd9dadb && flexio_dev_eqe_get_owner(eqe) == 0);
	raw[63] = 1;
	EXPECT(flexio_dev_eqe_get_owner(eqe) == 1);
	return 0;
}

/* Kind, then the control segment of counter 0x12345, queue 0xabcdef, every completion. */
static const struct {
	flexio_ctrl_seg_t kind;
	const char *hex;
} controls[] = {
	{FLEXIO_CTRL_SEG_SEND_EN, "0023450aabcdef030000000800000000"},
	{FLEXIO_CTRL_SEG_SEND_RC, "0023450aabcdef020000000800000000"},
	{FLEXIO_CTRL_SEG_LDMA, "01234532abcdef040000000800000000"},
	{FLEXIO_CTRL_SEG_RDMA_WRITE, "00234508abcdef030000000800000000"},
	{FLEXIO_CTRL_SEG_RDMA_READ, "00234510abcdef030000000800000000"},
	{FLEXIO_CTRL_SEG_ATOMIC_COMPARE_AND_SWAP, "00234511abcdef040000000800000000"},
	{FLEXIO_CTRL_SEG_LSO, "0023450eabcdef040000000800000000"},
	{FLEXIO_CTRL_SEG_NOP, "00234500abcdef010000000800000000"},
	{FLEXIO_CTRL_SEG_RDMA_WRITE_IMM, "00234509abcdef030000000800000000"},
	{FLEXIO_CTRL_SEG_TRANSPOSE, "00234532abcdef040000000800000000"},
#if LATER
	{FLEXIO_CTRL_SEG_SEND_UC, "0023450aabcdef020000000800000000"},
	{FLEXIO_CTRL_SEG_SEND_UD, "0023450aabcdef030000000800000000"},
	{FLEXIO_CTRL_SEG_WAIT_ON_DATA, "0123450fabcdef030000000800000000"},
	{FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD, "00234512abcdef040000000800000000"},
#endif
};

static int control_segments(void)
{
	size_t i;

	for (i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
		spoil();
		EXPECT(!flexio_dev_swqe_seg_ctrl_set(
			&seg, 0x12345, 0xabcdef, MLX5_CTRL_SEG_CE_CQE_ALWAYS, controls[i].kind));
		EXPECT(bytes_are(controls[i].hex));
	}
	(void)flexio_dev_swqe_seg_ctrl_set(&seg, 1, 2, MLX5_CTRL_SEG_CE_CQE_ON_CQE_ERROR,
					   FLEXIO_CTRL_SEG_NOP);
	EXPECT(bytes_are("00000100000002010000000000000000"));
	(void)flexio_dev_swqe_seg_ctrl_set(&seg, 1, 2, MLX5_CTRL_SEG_CE_CQE_ON_FIRST_CQE_ERROR,
					   FLEXIO_CTRL_SEG_NOP);
	EXPECT(bytes_are("00000100000002010000000400000000"));
	(void)flexio_dev_swqe_seg_ctrl_set(&seg, 1, 2, MLX5_CTRL_SEG_CE_CQE_AND_EQE,
					   FLEXIO_CTRL_SEG_NOP);
	EXPECT(bytes_are("00000100000002010000000c00000000"));
	return 0;
}

static int other_segments(void)
{
	uint8_t headers[2] = {0x11, 0x22};
	uint32_t data[3] = {0x01020304, 0x05060708, 0x090a0b0c};

	spoil();
	EXPECT(!flexio_dev_swqe_seg_eth_set(&seg, FLEXIO_ETH_SEG_L4CS | FLEXIO_ETH_SEG_L3CS, 0x1234,
					    0x0002, headers));
	EXPECT(bytes_are("00000000c00012340000000000021122"));
	(void)flexio_dev_swqe_seg_eth_set(&seg, 0, 0, 0, NULL);
	EXPECT(bytes_are("00000000000000000000000000001122"));
	spoil();
	EXPECT(!flexio_dev_swqe_seg_rdma_set(&seg, 0x11223344, 0x0102030405060708));
	EXPECT(bytes_are("01020304050607081122334400000000"));
	EXPECT(!flexio_dev_swqe_seg_mem_ptr_data_set(&seg, 0x100, 0x11223344, 0x0102030405060708));
	EXPECT(bytes_are("00000100112233440102030405060708"));
	EXPECT(flexio_dev_rwqe_get_addr((struct flexio_dev_wqe_rcv_data_seg *)&seg) ==
	       (void *)0x0102030405060708);
	EXPECT(!flexio_dev_swqe_seg_inline_data_set(&seg, 12, data));
#if LATER
	EXPECT(bytes_are("8000000c04030201080706050c0b0a09"));
#else
	EXPECT(bytes_are("0000000c0102030405060708090a0b0c"));
#endif
	EXPECT(!flexio_dev_swqe_seg_atomic_set(&seg, 0x0102030405060708, 0x1112131415161718));
	EXPECT(bytes_are("01020304050607081112131415161718"));
	EXPECT(!flexio_dev_swqe_seg_shared_receive_set(&seg, 0x1234, 0x56));
	EXPECT(bytes_are("00001234560000000000000000000000"));
	spoil();
	EXPECT(!flexio_dev_swqe_seg_transpose_set(&seg, 8, 0x85, 0x86));
	EXPECT(bytes_are("00000008000500060000000000000000"));
	return 0;
}

/* Several completions in an entry: three bytes of it say so. */
static int compressed(void)
{
	static _Alignas(8) struct flexio_dev_cqe64 ring[3];
	struct flexio_dev_mini_cqe64 *mini = (struct flexio_dev_mini_cqe64 *)&ring[1];
	const uint8_t first[8] = {0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0x55};

	memset(ring, 0, sizeof(ring));
	flexio_dev_comp_cq_init(ring, 2, 0xff);
	EXPECT(flexio_dev_comp_cqe_get_validity_byte(&ring[0]) == 0xff);
	EXPECT(flexio_dev_comp_cqe_get_validity_byte(&ring[1]) == 0xff &&
	       mini->validity_iteration_count == 0xff);
	EXPECT(flexio_dev_comp_cqe_get_validity_byte(&ring[2]) == 0);
	EXPECT(!flexio_dev_comp_cqe_is_comp_cqe_array(&ring[1]));
	mini->num_and_type = 0x6c;
	memcpy(&mini->mini_cqe[6], first, sizeof(first));
	EXPECT(flexio_dev_comp_cqe_is_comp_cqe_array(&ring[1]));
	EXPECT(flexio_dev_comp_cqe_get_num_comp_cqes(&ring[1]) == 7);
	EXPECT(!memcmp(&(uint64_t){flexio_dev_comp_cqe_get_comp_cqe(&ring[1], 6)}, first, 8));
	EXPECT(FLEXIO_DEV_COMP_CQE_GET_RX_HASH_RESULT(
		       flexio_dev_comp_cqe_get_comp_cqe(&ring[1], 6)) == 0x11223344);
	return 0;
}

static int later_segments(void)
{
	uint8_t mac[6] = {1, 2, 3, 4, 5, 6};
	uint8_t gid[16] = {0xfe, 0x80, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	uint16_t sixteen[3] = {0};
	uint32_t thirty_two[3] = {0};
	uint64_t sixty_four[3] = {0};
	uint64_t word = 5, expected = 4;

	spoil();
	flexio_dev_swqe_seg_av1_set(&seg, 0x11223344, 0xabcdef, 1, 0x35, 0x80, 0x1234);
	EXPECT(bytes_are("112233440000000080abcdef35801234"));
	spoil();
	flexio_dev_swqe_seg_av2_set(&seg, mac, 0x20, 0x40, 1u << 30 | 3u << 20 | 0x12345);
	EXPECT(bytes_are("00000000010203040506204040312345"));
	spoil();
	flexio_dev_swqe_seg_av3_set(&seg, gid);
	EXPECT(bytes_are("fe8002030405060708090a0b0c0d0e0f"));
	spoil();
	EXPECT(!flexio_dev_swqe_seg_wait_on_data_set(&seg, 2, 1, 0x11223344, 0x0102030405060708,
						     1));
	EXPECT(bytes_are("00000012112233440102030405060709"));
	EXPECT(!flexio_dev_swqe_seg_wait_on_data_data_set(&seg, cpu_to_be64(100), 0xffff));
	EXPECT(bytes_are("0000000000000064000000000000ffff"));
	flexio_dev_memcpy16(sixteen, (const uint16_t *)gid, 4);
	EXPECT(!memcmp(sixteen, gid, 4) && !sixteen[2]);
	flexio_dev_memcpy32(thirty_two, (const uint32_t *)gid, 8);
	EXPECT(!memcmp(thirty_two, gid, 8) && !thirty_two[2]);
	flexio_dev_memcpy64(sixty_four, (const uint64_t *)gid, 16);
	EXPECT(!memcmp(sixty_four, gid, 16) && !sixty_four[2]);
	EXPECT(!__dpa_remote_atomic_compare_exchange(&word, &expected, 9, __ATOMIC_SEQ_CST,
						     __ATOMIC_SEQ_CST) &&
	       word == 5 && expected == 5);
	EXPECT(__dpa_remote_atomic_compare_exchange(&word, &expected, 9, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST) &&
	       word == 9);
	return 0;
}

static int records(void)
{
	uint32_t dbr[2] = {cpu_to_be32(0xfffe), 0x77777777};

	EXPECT(!flexio_dev_dbr_rq_inc_pi(dbr) && dbr[0] == cpu_to_be32(0xffff));
	EXPECT(!flexio_dev_dbr_rq_inc_pi(dbr) && dbr[0] == 0);
	EXPECT(!flexio_dev_dbr_cq_set_ci(dbr, 0x12345678) && dbr[0] == cpu_to_be32(0x345678));
	EXPECT(dbr[1] == 0x77777777);
	return 0;
}

/* What the device library has. */
void __dpa_spin_wait(uint32_t round)
{
	(void)round;
}

#ifdef SPINLOCK_DEBUG
int flexio_dev_get_thread_ctx(struct flexio_dev_thread_ctx **dtctx)
{
	*dtctx = NULL;
	return 0;
}

uint32_t flexio_dev_get_thread_id(struct flexio_dev_thread_ctx *dtctx)
{
	(void)dtctx;
	return 7;
}
#endif

static int locks(void)
{
	struct spinlock_s lock;

	memset(&lock, 0xee, sizeof(lock));
	spin_init(&lock);
	EXPECT(lock.locked == 0);
	spin_lock(&lock);
	EXPECT(lock.locked == 1);
	EXPECT(spin_trylock(&lock) == 1 && lock.locked == 1);
#ifdef SPINLOCK_DEBUG
	EXPECT(sizeof(lock) == 8 && lock.locker_tid == 7);
#else
	EXPECT(sizeof(lock) == 4);
#endif
	spin_unlock(&lock);
	EXPECT(lock.locked == 0);
	EXPECT(spin_trylock(&lock) == 0 && lock.locked == 1);
	spin_unlock(&lock);
#ifdef SPINLOCK_DEBUG
	EXPECT(lock.locker_tid == 0xffffffff);
#endif
	return 0;
}

/* In the place of the library's: it hears of fences that have windows among what they order. */
static unsigned window_fences;

void __dpa_window_fence(uint32_t space, uint32_t pred, uint32_t succ)
{
	window_fences += space >= __DPA_MMIO && pred && succ;
}

/* Every space and every pair of operations. */
#define FENCES(space)                                 \
	__dpa_thread_fence(space, __DPA_R, __DPA_R);  \
	__dpa_thread_fence(space, __DPA_R, __DPA_W);  \
	__dpa_thread_fence(space, __DPA_R, __DPA_RW); \
	__dpa_thread_fence(space, __DPA_W, __DPA_R);  \
	__dpa_thread_fence(space, __DPA_W, __DPA_W);  \
	__dpa_thread_fence(space, __DPA_W, __DPA_RW); \
	__dpa_thread_fence(space, __DPA_RW, __DPA_R); \
	__dpa_thread_fence(space, __DPA_RW, __DPA_W); \
	__dpa_thread_fence(space, __DPA_RW, __DPA_RW)

static int fences(void)
{
	FENCES(__DPA_HEAP);
	FENCES(__DPA_MEMORY);
	FENCES(__DPA_MMIO);
	FENCES(__DPA_SYSTEM);
	__dpa_thread_memory_fence(__DPA_R, __DPA_W);
	__dpa_thread_outbox_fence(__DPA_W, __DPA_W);
	__dpa_thread_window_fence(__DPA_RW, __DPA_RW);
	__dpa_thread_system_fence();
	__dpa_thread_window_read_inv();
	__dpa_thread_window_writeback();
	__dpa_thread_memory_writeback();
	__dpa_compiler_barrier();
	__dpa_thread_l1_flush();
	__dpa_data_ignore(&seg);
	EXPECT(window_fences == 2 * 9 + 6);
	return 0;
}

int main(void)
{
	int (*const parts[])(void) = {byte_order,     completions, control_segments,
				      other_segments, compressed,  later_segments,
				      records,	      locks,	   fences};
	size_t i;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const int status = parts[i]();

		if (status)
			return status;
	}
	return 0;
}
