// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: a handler that completions start. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <stddef.h>

#include "events.h"

#define OPCODE_RESPONDER_SEND 2u

/* The next completion, or NULL.  The device turns an entry's owner bit over each time it comes round. */
static struct flexio_dev_cqe64 *next_completion(const struct inbox *in)
{
	struct flexio_dev_cqe64 *cqe =
		(struct flexio_dev_cqe64 *)(uintptr_t)in->ring + in->ci % ENTRIES;

	if (flexio_dev_cqe_get_owner(cqe) != (in->ci / ENTRIES & 1))
		return NULL;
	/* What is in the entry is read after its owner. */
	__dpa_thread_memory_fence(__DPA_R, __DPA_R);
	return cqe;
}

static void take_message(struct inbox *in, struct flexio_dev_cqe64 *cqe)
{
	/* The place of the receive in its queue is the place of its data, too. */
	uint32_t slot = flexio_dev_cqe_get_wqe_counter(cqe) % ENTRIES;
	uint32_t bytes = flexio_dev_cqe_get_byte_cnt(cqe);
	const uint8_t *data = (const uint8_t *)(uintptr_t)in->data + slot * MESSAGE_BYTES;

	if (flexio_dev_cqe_get_opcode(cqe) != OPCODE_RESPONDER_SEND || bytes > MESSAGE_BYTES) {
		in->errors++;
		return;
	}
	for (uint32_t i = 0; i < bytes; i++)
		in->sum += data[i];
	in->bytes += bytes;
	/* Who sees this number sees the sums that go with it. */
	__atomic_store_n(&in->messages, in->messages + 1, __ATOMIC_RELEASE);
}

/* Each activation begins here.  It takes all that has come, asks for the next event, and ends. */
__dpa_global__ void on_message(uint64_t arg)
{
	struct inbox *in = (struct inbox *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;
	struct flexio_dev_cqe64 *cqe;

	flexio_dev_get_thread_ctx(&ctx);
	in->activations++;
	while ((cqe = next_completion(in))) {
		take_message(in, cqe);
		in->ci++;
		flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)in->record, (uint32_t)in->ci);
		/* The receive lies in its queue as before: the counter alone posts it again, after
		 * its data was read. */
		__dpa_thread_memory_fence(__DPA_RW, __DPA_W);
		flexio_dev_dbr_rq_inc_pi((uint32_t *)(uintptr_t)in->receive_record);
	}
	/* A completion that comes between the last look and this call is not lost: it is an event. */
	flexio_dev_cq_arm(ctx, (uint32_t)in->ci, (uint32_t)in->cqn);
	flexio_dev_thread_reschedule();
}

/* A word of DPA memory, for the host. */
__dpa_rpc__ uint64_t read_word(uint64_t address)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
}
