// SPDX-License-Identifier: BSD-2-Clause
#include "base/rcu.h"

#ifdef RCU_TELL_TSAN
char rcu_tsan_token;
#endif
