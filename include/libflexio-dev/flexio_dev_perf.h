/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cycles and instructions of a piece of code, from generation 25.1 on.  flexio_dev_debug.h includes
 * this header.  What the counters count: dpaintrin.h.
 */
#ifndef _FLEXIO_DEV_PERF_H_
#define _FLEXIO_DEV_PERF_H_

#include <stdint.h>

#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What was measured, or the counters at the start. */
struct flexio_dev_perf_data {
	uint64_t cycles;
	uint64_t insts;
	/** Not 0: the measurement is over. */
	int flag;
};

/** flexio_dev_perf_start() - the counters now. */
static inline struct flexio_dev_perf_data flexio_dev_perf_start(void)
{
	struct flexio_dev_perf_data now = {0, 0, 0};

	now.insts = __dpa_thread_inst_ret();
	now.cycles = __dpa_thread_cycles();
	return now;
}

/** flexio_dev_perf_end() - make of the counters in @pdata what was counted since. */
static inline void flexio_dev_perf_end(struct flexio_dev_perf_data *pdata)
{
	pdata->cycles = __dpa_thread_cycles() - pdata->cycles;
	pdata->insts = __dpa_thread_inst_ret() - pdata->insts;
}

/** flexio_dev_perf_aggregate() - add what @pdata has to @collect. */
static inline void flexio_dev_perf_aggregate(struct flexio_dev_perf_data *collect,
					     struct flexio_dev_perf_data *pdata)
{
	collect->cycles += pdata->cycles;
	collect->insts += pdata->insts;
}

/**
 * flexio_dev_perf_print() - send "KEYWORD: instructions/cycles: N/N" to the default stream.
 * @pdata: what was measured
 * @keyword: the word in front
 */
void flexio_dev_perf_print(struct flexio_dev_perf_data *pdata, const char *keyword);

/** flexio_dev_perf_measure_calibrate() - print what an empty measurement takes, as "overhead". */
void flexio_dev_perf_measure_calibrate(void);

/** Measures the statement or block that follows, and prints it. */
#define FLEXIO_DEV_PERF_MEASURE(keyword)                                               \
	for (struct flexio_dev_perf_data pdata = flexio_dev_perf_start(); !pdata.flag; \
	     flexio_dev_perf_end(&pdata), flexio_dev_perf_print(&pdata, #keyword), pdata.flag = 1)

/** Measures the statement or block that follows, and adds it to @collector, a pointer. */
#define FLEXIO_DEV_PERF_COLLECT(collector)                                                \
	for (struct flexio_dev_perf_data pdata = flexio_dev_perf_start(); !pdata.flag;    \
	     flexio_dev_perf_end(&pdata), flexio_dev_perf_aggregate((collector), &pdata), \
					 pdata.flag = 1)

#ifdef __cplusplus
}
#endif

#endif
