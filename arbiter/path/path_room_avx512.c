/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bl_room_take() for CPUs with AVX-512 (F, VL): four paths are one register, and a step of the
 * borrow is one instruction.
 */
#ifdef __x86_64__
#pragma GCC target("bmi,popcnt,avx2,avx512f,avx512vl")
#define ROOM_TAKE bl_room_take_avx512
#include "arbiter/path/path_room_priv.h"
#endif
