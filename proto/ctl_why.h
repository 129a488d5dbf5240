/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a node failed, as the controller announces it: the field `why` of the message Failed in
 * proto/ctl.proto. The controller determines the reason (controller/recover/determine.h); an agent
 * translates it into enum bl_why for its endpoints (maps/failure_abi.h).
 */
#ifndef BARLINE_CTL_WHY_H
#define BARLINE_CTL_WHY_H

/* X(SYMBOL, "name"). Append only: the number is on the wire and in the controller's store. */
/* clang-format off */
#define BL_DET_WHYS(X) \
	X(CORRECT, "correct") /* it has not failed */ \
	X(TOLD,    "down")    /* its lease ran out, it did not answer */ \
	X(CUT,     "cut-off") /* no unbroken link leads from it to the live network */ \
	X(TORN,    "torn")    /* no flow is left between it and a correct host */ \
	X(BEFORE,  "before")  /* it was announced before */ \
	X(LEFT,    "left")    /* it left in order: it was drained */
/* clang-format on */
#define BL_DET_ENUM(sym, name) BL_DET_##sym,
enum bl_det_why { BL_DET_WHYS(BL_DET_ENUM) BL_DET_WHY_COUNT };
#undef BL_DET_ENUM

#endif
