/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links that lose frames, in a lab: each frame that comes to a host is dropped with one
 * probability, before barline's program there sees it (bpf/loss.bpf.c).
 *
 * Example: --loss 1e-3 on a rack: of a message and its ACK, which cross such a link each, one of
 * the two is lost in one case of 500.
 */
#ifndef BARLINE_CLI_LINK_LOSS_H
#define BARLINE_CLI_LINK_LOSS_H

#include <stdint.h>

struct link_loss;
/**
 * link_loss_begin - all hosts in sight lose frames with probability @p from now on, and until their
 * lab ends: what carries frames on to the hosts' programs ends with this process. NULL after a
 * message.
 */
struct link_loss *link_loss_begin(double p);
/** link_loss_end - frames that were lost; frees. NULL is allowed. */
uint64_t link_loss_end(struct link_loss *l);

#endif
