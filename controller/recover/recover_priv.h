/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the failure procedure share. Each of them uses only files above it in this
 * list:
 *
 *	recover_node.c		the nodes, their commands and the queue of outputs
 *	recover_failure.c	the failures, from their announcement to their end
 *	recover_judge.c		from the graph to questions and announcements
 *	recover_stuck.c		complaints of correct processes about each other
 *	recover_hello.c		a node reports everything about itself
 *	recover_forget.c	a node is no member any more
 *	recover_state.c		the whole state: made, loaded by a new leader, forgotten
 *	recover_event.c		the other events, and time
 */
#ifndef BARLINE_CONTROLLER_RECOVER_PRIV_H
#define BARLINE_CONTROLLER_RECOVER_PRIV_H

#include "controller/recover/recover_core.h"

#define RECOVER_NONE  UINT32_MAX         /* as an index of a node: there is none */
#define RECOVER_C_MAX ((1ULL << 48) - 1) /* highest commit barrier or failure timestamp */

/** struct dead_proc - A process that died and is not announced yet. */
struct dead_proc {
	uint32_t node; /* its host */
	struct bl_recover_proc p;
};

/** struct stuck_end - One end of a complaint: an endpoint of a host. */
struct stuck_end {
	uint32_t node;
	uint16_t port; /* UDP port */
	uint16_t life; /* incarnation; 0: not reported */
};

/** struct complaint - Frames from @from do not reach @to. */
struct complaint {
	struct stuck_end from;
	struct stuck_end to;
};

/** struct expelled - An endpoint that PUT_OUT was sent for and that is not reported gone yet. */
struct expelled {
	struct stuck_end who;
	uint64_t due; /* time by which its host has to report that, ns */
};

/** struct bl_recover - The state. Of each list, x_room is the number of entries allocated. */
struct bl_recover {
	struct bl_recover_cfg cfg;
	uint64_t epoch;       /* that this leader leads with; 0: it does not lead */
	uint64_t number;      /* of the newest failure */
	uint64_t grace_until; /* no judgement and no late answer before this time, ns; 0: over */

	struct bl_recover_node **node; /* by id */
	uint32_t nnodes;
	uint32_t node_room;

	struct bl_recover_failure **failure; /* by number */
	uint32_t nfailures;
	uint32_t failure_room;

	struct dead_proc *proc;
	uint32_t nprocs;
	uint32_t proc_room;

	struct bl_recover_out *out; /* outputs from @next_out to @nout are not fetched yet */
	uint32_t nout;
	uint32_t next_out;
	uint32_t out_room;

	struct complaint *stuck;
	uint32_t nstuck;
	uint32_t stuck_room;
	uint64_t stuck_ns; /* time of the decision about @stuck, if there are complaints */

	struct expelled *expelled;
	uint32_t nexpelled;
	uint32_t expelled_room;

	bool dirty;        /* something is to be judged at @judge_ns */
	bool pending;      /* nodes were judged as failed; answers are missing to announce them */
	bool doubts;       /* see bl_recover_doubts() */
	uint64_t judge_ns; /* time of the next judgement, if @dirty */
	uint64_t first_ns; /* time of the first report that is to be judged */
};

/* recover_node.c */

/**
 * recover_grow - Makes room for entry @n of the array that @list points to.
 * @have: entries that are allocated; updated.
 * @size: bytes of an entry.
 *
 * Returns false if there is no memory.
 */
bool recover_grow(void *list, uint32_t n, uint32_t *have, size_t size);

/** recover_copy - Returns a copy of @bytes bytes, from malloc() also if @bytes is 0; NULL. */
void *recover_copy(const void *from, size_t bytes);

/** recover_add_output - Appends an output to the queue that bl_recover_next() reads. */
void recover_add_output(struct bl_recover *r, enum bl_recover_do what, uint32_t node,
			uint64_t number);

/** recover_index_of - Returns the index of node @id, or RECOVER_NONE. */
uint32_t recover_index_of(const struct bl_recover *r, uint32_t id);

/** recover_node_of - Returns node @id, or NULL. */
struct bl_recover_node *recover_node_of(const struct bl_recover *r, uint32_t id);

/** recover_node_make - Returns node @id, added if it is new; NULL: out of memory, or too many. */
struct bl_recover_node *recover_node_make(struct bl_recover *r, uint32_t id);

void recover_node_free(struct bl_recover_node *n);

/**
 * recover_drop_unnamed - Forgets the nodes that were known from their neighbours only, and that no
 * port names any more. Pointers to nodes are not valid after that.
 */
void recover_drop_unnamed(struct bl_recover *r);

/** recover_port_of - Returns port @port of node @n, or NULL. */
struct bl_recover_port *recover_port_of(const struct bl_recover_node *n, uint32_t port);

/**
 * recover_port_died_again - Whether silence @death of input @p, which is being resumed, is a later
 * one than the failure that resumes it is about. It then concerns whoever is behind the input now,
 * and the next failure handles it.
 */
bool recover_port_died_again(const struct bl_recover_port *p, uint32_t death);

/** recover_can_answer - Whether node @n has an agent and has not failed. NULL: false. */
bool recover_can_answer(const struct bl_recover_node *n);

/** recover_count_agents - Counts nodes that can answer, and nodes that have a session. */
void recover_count_agents(const struct bl_recover *r, uint32_t *agents, uint32_t *connected);

/**
 * recover_find_member - Sets *@n to node @node. Returns BL_RECOVER_OK if it is a member of the rack
 * that has not failed.
 */
enum bl_recover_reason recover_find_member(const struct bl_recover *r, uint32_t node,
					   struct bl_recover_node **n);

/** recover_find_speaker - As recover_find_member(), and the node's reports must count (@sworn). */
enum bl_recover_reason recover_find_speaker(const struct bl_recover *r, uint32_t node,
					    struct bl_recover_node **n);

/** recover_answer_by - Returns the time by which a question asked now has to be answered. */
uint64_t recover_answer_by(const struct bl_recover *r, uint64_t now);

/** recover_send_command - Queues a command to @n if it has a session and its record is saved. */
void recover_send_command(struct bl_recover *r, enum bl_recover_do what,
			  const struct bl_recover_node *n, uint64_t number);

/** recover_update_due - Sets @n->due by what @n has to answer at the moment. */
void recover_update_due(struct bl_recover *r, struct bl_recover_node *n, uint64_t now);

/** recover_update_bars - Sets which ports are to be barred, and sends BAR where that changed. */
void recover_update_bars(struct bl_recover *r, uint64_t now);

/** recover_schedule_judgement - Something is to be judged, at the latest @wait ns from now. */
void recover_schedule_judgement(struct bl_recover *r, uint64_t now, uint64_t wait);

/* recover_failure.c */

/** recover_failure_make - Returns an empty failure with room for so many entries; NULL. */
struct bl_recover_failure *recover_failure_make(struct bl_recover *r, uint32_t failed,
						uint32_t inputs);

void recover_failure_free(struct bl_recover_failure *f);

/** recover_failure_of - Returns failure @number, or NULL. */
struct bl_recover_failure *recover_failure_of(const struct bl_recover *r, uint64_t number);

/** recover_open_failures - Counts the failures that are not finished, without leaves. */
uint32_t recover_open_failures(const struct bl_recover *r);

/** recover_wait_of - Returns the entry of node @node in the list of those that have to answer. */
struct bl_recover_wait *recover_wait_of(const struct bl_recover_failure *f, uint32_t node);

/** recover_names_node - Whether @f announces that node @id as a whole has failed. */
bool recover_names_node(const struct bl_recover_failure *f, uint32_t id);

/**
 * recover_add_failed - Adds node @n (@p->port 0) or process @p on it to the announcement @f, with
 * the addresses of the node. Returns false if there is no memory.
 */
bool recover_add_failed(struct bl_recover_failure *f, const struct bl_recover_node *n,
			enum bl_det_why why, const struct bl_recover_proc *p);

/** recover_is_leave - Whether @f announces processes that left in order, and nothing else. */
bool recover_is_leave(const struct bl_recover_failure *f);

/**
 * recover_announce_leave - Announces that process @p of @n left in order. That needs no judgement:
 * it says nothing about the network, and no input is frozen that could be resumed.
 *
 * Returns false if there is no memory.
 */
bool recover_announce_leave(struct bl_recover *r, const struct bl_recover_node *n,
			    const struct bl_recover_proc *p, uint64_t now);

/** recover_save - Sets the step of @f and has it saved. */
void recover_save(struct bl_recover *r, struct bl_recover_failure *f, enum bl_recover_step step);

/** recover_await_hosts - Notes who must complete @f before an input is resumed: correct hosts. */
void recover_await_hosts(struct bl_recover *r, struct bl_recover_failure *f, uint64_t now);

/**
 * recover_await_inputs - Notes who must send RESUMED for @f: nodes with frozen inputs, and hosts of
 * processes that died.
 */
void recover_await_inputs(struct bl_recover *r, struct bl_recover_failure *f, uint64_t now);

/** recover_progress_all - Moves all failures to their next step that have all answers. */
void recover_progress_all(struct bl_recover *r, uint64_t now);

/** recover_member_left - A node is no member any more: nothing waits for it. */
void recover_member_left(struct bl_recover *r, uint64_t now);

/* recover_judge.c */

/** recover_judge - Judges what is known, asks and bars, and announces a failure if it is ready. */
void recover_judge(struct bl_recover *r, uint64_t now);

/**
 * recover_late_may_fail - Whether at least half of the hosts that would go on otherwise do so if
 * all nodes that are @late have failed. A host that is the last one cuts no other host off.
 */
bool recover_late_may_fail(struct bl_recover *r);

/* recover_stuck.c */

/** recover_stuck_tick - Decides about complaints. To be called after recover_judge(). */
void recover_stuck_tick(struct bl_recover *r, uint64_t now);

/**
 * recover_stuck_late - Marks hosts as late that have not reported in time that an endpoint is
 * expelled. Returns whether there are any.
 */
bool recover_stuck_late(struct bl_recover *r, uint64_t now);

/** recover_stuck_due - Returns when one of the two above is due, ns; UINT64_MAX: never. */
uint64_t recover_stuck_due(const struct bl_recover *r);

/** recover_stuck_gone - Process @p of node @node is gone: complaints about it are settled. */
void recover_stuck_gone(struct bl_recover *r, uint32_t node, const struct bl_recover_proc *p);

/** recover_stuck_welcome - Sends PUT_OUT again: node @n has a new session. */
void recover_stuck_welcome(struct bl_recover *r, const struct bl_recover_node *n);

/* recover_hello.c */

/** recover_hello_valid - Whether the numbers in @h are in range and do not contradict another. */
bool recover_hello_valid(const struct bl_recover_hello *h);

/**
 * recover_apply_hello - Takes over what node @n reports in @h.
 * @anew: the node has joined anew; what was known of its ports is forgotten.
 * @sworn: what it reports of its inputs counts.
 * @changed: set to whether its record differs from the saved one.
 * @silent: set to true if an input is silent that was not known to be.
 *
 * Returns false if there is no memory; then nothing has changed.
 */
bool recover_apply_hello(struct bl_recover *r, struct bl_recover_node *n,
			 const struct bl_recover_hello *h, bool anew, bool sworn, bool *changed,
			 bool *silent);

/** recover_make_neighbours - Adds the neighbours of @n that never sent HELLO to the nodes. */
void recover_make_neighbours(struct bl_recover *r, const struct bl_recover_node *n);

/** recover_save_node - Has the record of @n saved, after the write that is under way if any. */
void recover_save_node(struct bl_recover *r, struct bl_recover_node *n);

/** recover_grant_absence - Node @n is away for @ns, at most BL_RECOVER_AWAY_MAX_NS. */
void recover_grant_absence(struct bl_recover_node *n, uint64_t now, uint64_t ns);

#endif
