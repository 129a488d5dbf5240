/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run fairness, failover: experiments with Fastpass in a lab.
 *
 *   fairness  Five senders to one receiver start one after the other and stop again (Fastpass 7.1,
 *             experiment C), while another host measures echoes (experiment B) and the queue in
 *             front of the receiver is sampled (experiment A); one policy after the other. The
 *             programs are our own, because the result depends on when bytes arrive, second by
 *             second.
 *   failover  The primary arbiter is killed again and again under traffic: how long until the first
 *             slot from the other one, and which datagrams are lost or overtaken.
 */
#ifndef BARLINE_BENCH_FASTPASS_H
#define BARLINE_BENCH_FASTPASS_H

int fair_main(int argc, char **argv);
int failover_main(int argc, char **argv);

#endif
