// SPDX-License-Identifier: BSD-2-Clause
#include "base/rcu.h"

#ifdef TSAN_WATCHES
char rcu_tsan_token;
#endif
