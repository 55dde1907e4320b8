// SPDX-License-Identifier: BSD-2-Clause
#include "prm/vendor_err.h"

#include "base/compiler.h"
#include "prm/cqe.h"

#define MEASURED "a published fault study of ConnectX-6 (docs/fidelity.md, A)"

const struct vendor_err vendor_errs[] = {
	{VENDOR_ERR_NO_ANSWER_PLACE, CQE_SYN_LOCAL_PROT, 0,
	 "the answer to a READ or atomic may not be written to the memory that the request names",
	 MEASURED},
	{0x51, CQE_SYN_LOCAL_PROT, CQE_OP_REQ_ERR,
	 "the memory that a send request names could not be accessed",
	 "perftest 173, nccl 214, ucx 7774 and 9515 (memory of a GPU that could not be read)"},
	{VENDOR_ERR_NO_KEY, CQE_SYN_LOCAL_PROT, 0, "the lkey of a send request does not exist",
	 MEASURED ", spdk 961 (registration), FDio/csit 3988"},
	{VENDOR_ERR_RANGE, CQE_SYN_LOCAL_PROT, 0,
	 "the memory that a send request names ends behind its region",
	 MEASURED ", Juniper/warp17 81"},
	{0x81, CQE_SYN_RETRY_EXC, CQE_OP_REQ_ERR,
	 "the peer did not answer until all retries were used up",
	 "ucx 1880, 2973, 5199, 5732, 6000; nccl 1405, 1664, 1814; nccl 214 cites the vendor"},
	{0x87, CQE_SYN_RNR_RETRY_EXC, CQE_OP_REQ_ERR,
	 "the peer had no receive until all retries for that were used up", MEASURED},
	{0x88, CQE_SYN_REM_ACCESS, CQE_OP_REQ_ERR,
	 "the peer refused access to its memory (NAK remote access error)",
	 "ucx 1569, 5410; libfabric 4283; forums.developer.nvidia.com 207715"},
	{0x89, CQE_SYN_REM_OP, CQE_OP_REQ_ERR,
	 "the peer could not execute the request (NAK remote operational error)",
	 "ucx 5472, twice: on two hosts and for two operations"},
	{0x8a, CQE_SYN_REM_INVAL_REQ, CQE_OP_REQ_ERR,
	 "the peer found the request invalid (NAK invalid request)",
	 "charm 2532; next in line after 0x88 and 0x89, as the NAK codes are"},
	{0x93, CQE_SYN_REM_ABORTED, 0,
	 "a receive ended with its message unfinished, for a page fault on demand paging",
	 "UCX source code, UCT_IB_MLX5_CQE_VENDOR_SYND_ODP"},
	{0x99, CQE_SYN_REM_ABORTED, 0,
	 "a receive ended with its message unfinished, for a sequence number",
	 "UCX source code, UCT_IB_MLX5_CQE_VENDOR_SYND_PSN"},
	{0xd6, CQE_SYN_LOCAL_QP_OP, 0, "a posted receive is malformed",
	 "ucx 11444, where an engineer of NVIDIA names it"},
	{0xf4, CQE_SYN_WR_FLUSH, 0, "a SEND was flushed; softhca writes 0xf9", "a public thread"},
	{VENDOR_ERR_FIRST_FLUSH, CQE_SYN_WR_FLUSH, 0,
	 "the first request that was flushed, since the program moved the queue pair to the error "
	 "state",
	 MEASURED},
	{0xf9, CQE_SYN_WR_FLUSH, CQE_OP_REQ_ERR,
	 "the request was flushed, since the queue pair went to the error state", MEASURED},
	{0xf9, CQE_SYN_WR_FLUSH, CQE_OP_RESP_ERR,
	 "the receive was flushed, since the queue pair went to the error state",
	 "nvme-cli 3268, nccl 1405 and 1814, accelio 181, ompi 95"},
};

const size_t vendor_errs_count = array_size(vendor_errs);

uint8_t vendor_err_of(uint8_t opcode, uint8_t syndrome)
{
	for (size_t i = 0; i < vendor_errs_count; i++)
		if (vendor_errs[i].opcode == opcode && vendor_errs[i].syndrome == syndrome)
			return vendor_errs[i].value;
	return 0;
}
