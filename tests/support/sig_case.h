/* SPDX-License-Identifier: BSD-2-Clause */
/* Random transfers through signatures, with what the model says of them. */
#pragma once

#include "check.h"
#include "sig_model.h"

enum { SIG_CASE_BYTES = 48 * 1024 };

struct sig_case {
	struct rng rng;
	struct sig_config config;
	enum sig_direction dir;
	struct sig_plan plan;
	uint64_t wire; /* length */
	uint64_t in_bytes;
	uint64_t out_bytes;
	uint8_t in[SIG_CASE_BYTES];
	uint8_t want[SIG_CASE_BYTES];
	uint8_t got[SIG_CASE_BYTES];
	struct model_result model;
	uint64_t seed; /* of this case */
};

/* So many cases of a hundred. */
bool maybe(struct sig_case *s, unsigned percent);
/* Fills in all but got and seed, from rng. */
void random_scene(struct sig_case *s);
uint64_t signature_word(const uint8_t bytes[8]);

#define HOLDS(s, cond)                                                                            \
	do {                                                                                      \
		if (!(cond)) {                                                                    \
			fprintf(stderr, "case with seed %#llx: %s, %s/%u to %s/%u, wire %llu\n",  \
				(unsigned long long)(s)->seed,                                    \
				(s)->dir == SIG_GATHER ? "gather" : "scatter",                    \
				sig_type_name((s)->plan.in.type), (unsigned)(s)->plan.in.block,   \
				sig_type_name((s)->plan.out.type), (unsigned)(s)->plan.out.block, \
				(unsigned long long)(s)->wire);                                   \
			CHECK(cond);                                                              \
		}                                                                                 \
	} while (0)
