// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * test_lib_helper.c under the thread sanitizer, which does not go with the address sanitizer: the
 * Makefile has its own rule for it.
 */
#include "test_lib_helper.c"
