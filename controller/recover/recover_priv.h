/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the failure procedure's files share: recover_core.c keeps nodes, failures and orders,
 * recover_judge.c decides, recover_event.c hears.
 */
#ifndef BARLINE_CONTROLLER_RECOVER_PRIV_H
#define BARLINE_CONTROLLER_RECOVER_PRIV_H

#include "recover_core.h"

#define RECOVER_NONE  UINT32_MAX
#define RECOVER_C_MAX ((1ULL << 48) - 1)

struct dead_proc {
	uint32_t node;
	struct bl_recover_proc p;
};

/** struct stuck_end - one end of a complaint: an endpoint of a node. */
struct stuck_end {
	uint32_t node;
	uint16_t port, life;
};

struct complaint {
	struct stuck_end from, to;
};

/**
 * struct expelled - it was ordered to be put out. @due: until when its host has to say that it is.
 */
struct expelled {
	struct stuck_end who;
	uint64_t due;
};

/**
 * struct bl_recover - @node: by id. @failure: by number. @dirty: something is to be judged, at
 * @judge_ns; @first_ns: its first report. @pending: somebody was judged to have failed, and answers
 * are awaited before that is announced.
 */
struct bl_recover {
	struct bl_recover_cfg cfg;
	uint64_t epoch, number, grace_until;
	struct bl_recover_node **node;
	struct bl_recover_failure **failure;
	struct dead_proc *proc;
	struct bl_recover_out *out;
	uint32_t nnodes, nfailures, nprocs, nout, next_out, node_room, failure_room, proc_room,
		out_room;
	struct complaint *stuck;
	struct expelled *expelled;
	uint32_t nstuck, nexpelled, stuck_room, expelled_room;
	uint64_t stuck_ns; /* of the decision, if there are complaints */
	bool dirty, pending, doubts;
	uint64_t judge_ns, first_ns;
};

/* recover_core.c */
bool recover_room(void *list, uint32_t n, uint32_t *have, size_t size);
void *recover_copy(const void *from, size_t bytes);
void recover_put_out(struct bl_recover *r, enum bl_recover_do what, uint32_t node, uint64_t number);
uint32_t recover_index_of(const struct bl_recover *r, uint32_t id);
struct bl_recover_node *recover_node_of(const struct bl_recover *r, uint32_t id);
struct bl_recover_node *recover_node_make(struct bl_recover *r, uint32_t id);
struct bl_recover_port *recover_port_of(const struct bl_recover_node *n, uint32_t port);
bool recover_waits_possible(const struct bl_recover_node *n);
void recover_failure_free(struct bl_recover_failure *f);
struct bl_recover_failure *recover_failure_of(const struct bl_recover *r, uint64_t number);
uint32_t recover_open_failures(const struct bl_recover *r);
struct bl_recover_wait *recover_wait_of(const struct bl_recover_failure *f, uint32_t node);
bool recover_names_node(const struct bl_recover_failure *f, uint32_t id);
void recover_count_agents(const struct bl_recover *r, uint32_t *agents, uint32_t *connected);
enum bl_recover_reason recover_speaker(const struct bl_recover *r, uint32_t node,
				       struct bl_recover_node **n);
uint64_t recover_answer_by(const struct bl_recover *r, uint64_t now);
void recover_to_node(struct bl_recover *r, enum bl_recover_do what, const struct bl_recover_node *n,
		     uint64_t number);
void recover_update_due(struct bl_recover *r, struct bl_recover_node *n, uint64_t now);
void recover_update_bars(struct bl_recover *r, uint64_t now);
void recover_be_dirty(struct bl_recover *r, uint64_t now, uint64_t wait);
void recover_save(struct bl_recover *r, struct bl_recover_failure *f, enum bl_recover_step step);
void recover_progress_all(struct bl_recover *r, uint64_t now);
void recover_await_hosts(struct bl_recover *r, struct bl_recover_failure *f, uint64_t now);
void recover_await_inputs(struct bl_recover *r, struct bl_recover_failure *f, uint64_t now);

/* recover_stuck.c */
void recover_stuck_tick(struct bl_recover *r, uint64_t now);
bool recover_stuck_late(struct bl_recover *r, uint64_t now);
uint64_t recover_stuck_due(const struct bl_recover *r);
void recover_stuck_gone(struct bl_recover *r, uint32_t node, const struct bl_recover_proc *p);
void recover_stuck_welcome(struct bl_recover *r, const struct bl_recover_node *n);

/* recover_judge.c */
bool recover_add_failed(struct bl_recover_failure *f, const struct bl_recover_node *n,
			enum bl_det_why why, const struct bl_recover_proc *p);
struct bl_recover_failure *recover_failure_make(struct bl_recover *r, uint32_t failed,
						uint32_t inputs);
void recover_judge(struct bl_recover *r, uint64_t now);
bool recover_is_leave(const struct bl_recover_failure *f);
bool recover_announce_leave(struct bl_recover *r, const struct bl_recover_node *n,
			    const struct bl_recover_proc *p, uint64_t now);
bool recover_late_may_fail(struct bl_recover *r);

#endif
