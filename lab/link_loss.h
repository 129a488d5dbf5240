/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Links of a lab that lose frames: each frame that arrives at a host is dropped with the same
 * probability, before barline's program sees it (bpf/loss.bpf.c).
 *
 * Example: with --loss 1e-3 on a rack, a message and its ACK cross one such link each, so one of
 * the two is lost in one case of 500.
 */
#ifndef BARLINE_LAB_LINK_LOSS_H
#define BARLINE_LAB_LINK_LOSS_H

#include <stdint.h>

struct link_loss;
/**
 * link_loss_begin - Makes all hosts in sight lose frames with probability @p from now on. Cannot be
 * undone while the lab is up, because the map that leads to the hosts' programs belongs to this
 * process. Returns NULL after a message.
 */
struct link_loss *link_loss_begin(double p);
/** link_loss_end - Frees @l and returns how many frames were lost. NULL is allowed. */
uint64_t link_loss_end(struct link_loss *l);

#endif
