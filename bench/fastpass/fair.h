/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barline lab run fairness, failover: Fastpass's experiments in a lab.
 *
 *   fairness	five senders to one receiver come one after the other and go again (Fastpass 7.1,
 *experiment C), while one more host asks for echoes (experiment B) and the queue before the
 *receiver is watched (experiment A); one policy after the other. The programs are our own: what
 *counts is when bytes arrive, by the second. failover	the arbiter that rules is killed again and
 *again under traffic: how long until the first slot from another one, and what datagrams are lost
 *or overtaken.
 */
#ifndef BARLINE_CLI_FAIR_H
#define BARLINE_CLI_FAIR_H

#include "lab/lab.h"

/**
 * fair_asked - which of them, or of fct.h, these arguments of `lab run` name: its main function;
 * NULL: none.
 */
int (*fair_asked(int argc, char **argv))(int argc, char **argv);
int fair_main(int argc, char **argv);
int failover_main(int argc, char **argv);
/** kill_main - failover with --kill: kill.c */
int kill_main(int argc, char **argv);

/* fair_util.c: what their processes need inside the lab */
/** fair_enter - move into host @i's namespace, from 0. 0 or -1. */
int fair_enter(unsigned int i);
/** fair_addr - of host @i's bl0, or its NIC without admission. */
void fair_addr(const struct lab *lab, unsigned int i, uint8_t addr[4]);
/**
 * fair_fork - a child in host @i's namespace that ends with this process; runs @fn(@arg) and
 * exits. Its pid, or -1 after a message.
 */
pid_t fair_fork(unsigned int i, void (*fn)(void *arg), void *arg);
void fair_end(pid_t *pid);
void fair_nap(uint64_t ns);
/** fair_quantile - of @n values, sorted here; @q of 1. */
double fair_quantile(double *v, unsigned int n, double q);
/** fair_shared - memory that children share. NULL after a message. */
void *fair_shared(size_t size);

#endif
