/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What `barline switch setup` and `barline host setup` know of a machine, and the steps that change
 * it, as data.
 *
 * A fact is a key (kind, interface, argument) and a text. A step sets the fact of one key from
 * @before to @after, so taking it back sets it from @after to @before. Example: `ip link set eth0
 * master br0` is
 *
 *	kind SETUP_MASTER, dev "eth0", arg "", before NULL, after "br0"
 *
 * facts.c reads facts from the machine, plan.c makes the list of steps, apply.c does a step, and
 * journal.c keeps the steps that were done. Nothing here touches the machine. If you add a kind,
 * also add it to setup_kind_name(), command.c, apply.c and facts.c.
 */
#ifndef BARLINE_CLI_SETUP_STATE_H
#define BARLINE_CLI_SETUP_STATE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#define SETUP_ARG 320 /* longest argument, with its zero: the path of a file */

/* The names are in the journal (journal.c): append only, and never change one. */
enum setup_kind {
	SETUP_LINK,      /* dev exists; value: its kind, "" for hardware. A fact, never a step */
	SETUP_MTU_MAX,   /* the greatest MTU of dev. A fact, never a step */
	SETUP_LOWER,     /* name of the device that dev is on top of. A fact, never a step */
	SETUP_UNFIT,     /* why no node can run on dev. A fact, never a step */
	SETUP_DOUBT,     /* why a node on dev needs `accept`. A fact, never a step */
	SETUP_OTHER,     /* a route by dev that nobody asks for. A fact, never a step */
	SETUP_UP,        /* "up" or "down" */
	SETUP_MTU,       /* bytes */
	SETUP_BRIDGE,    /* dev is a bridge: "bridge" */
	SETUP_MASTER,    /* name of the device whose port dev is */
	SETUP_ADDRESS,   /* arg: ADDRESS/LENGTH; "there" */
	SETUP_ROUTE,     /* arg: NETWORK/LENGTH; "via ROUTER dev NAME"; of the main table */
	SETUP_NEIGHBOUR, /* arg: IP address; Ethernet address; permanent ones only */
	SETUP_SYSCTL,    /* arg: path below /proc/sys */
	SETUP_DIR,       /* arg: path; "there" */
	SETUP_FILE,      /* arg: path; the text of the file */
	SETUP_KINDS
};

/** struct setup_fact - one fact. */
struct setup_fact {
	enum setup_kind kind;
	char dev[IFNAMSIZ]; /* "": the kind has none */
	char arg[SETUP_ARG];
	char *value; /* never NULL: a fact that is not so is not in the list */
};

/** struct setup_facts - facts, in no order. Free with setup_facts_free(). */
struct setup_facts {
	struct setup_fact *v;
	size_t n, room;
	bool failed; /* no memory: the list is not complete */
};

/** struct setup_step - one change. Equal @before and @after: nothing changes, but it was so. */
struct setup_step {
	enum setup_kind kind;
	char dev[IFNAMSIZ], arg[SETUP_ARG];
	char *before, *after; /* NULL: absent */
	unsigned int ifindex; /* of a bridge that was made; 0: not known */
};

/** struct setup_steps - steps in the order in which they are done. Free with setup_steps_free(). */
struct setup_steps {
	struct setup_step *v;
	size_t n, room;
	bool failed; /* no memory: the list is not complete */
};

/** setup_kind_name - the name of a kind in JSON. */
const char *setup_kind_name(enum setup_kind kind);
/** setup_kind_of - the kind with that name; SETUP_KINDS: there is none. */
enum setup_kind setup_kind_of(const char *name);

/** setup_get - the value of a fact; NULL: absent. */
const char *setup_get(const struct setup_facts *f, enum setup_kind kind, const char *dev,
		      const char *arg);
/**
 * setup_set - sets a fact; @value NULL: removes it. Facts that follow from it change, too: a new
 * bridge is down, a bridge that is removed has neither ports nor addresses, and forwarding of IPv6
 * on all interfaces sets that of each.
 */
void setup_set(struct setup_facts *f, enum setup_kind kind, const char *dev, const char *arg,
	       const char *value);
/**
 * setup_add - appends a fact that is not in the list yet, and nothing else: for reading a machine
 * with many interfaces.
 */
void setup_add(struct setup_facts *f, enum setup_kind kind, const char *dev, const char *arg,
	       const char *value);
void setup_facts_copy(struct setup_facts *to, const struct setup_facts *from);
void setup_facts_free(struct setup_facts *f);

/** setup_push - appends a step. */
void setup_push(struct setup_steps *s, enum setup_kind kind, const char *dev, const char *arg,
		const char *before, const char *after);
/** setup_find - whether there is a step of this key. */
bool setup_find(const struct setup_steps *s, enum setup_kind kind, const char *dev,
		const char *arg);
/** setup_is_kept - whether the step changes nothing. */
bool setup_is_kept(const struct setup_step *s);
void setup_steps_free(struct setup_steps *s);

/** setup_same - whether two texts are equal; NULL is equal to NULL only. */
bool setup_same(const char *a, const char *b);

/** enum setup_undo - what undoing a step comes to. */
enum setup_undo {
	SETUP_UNDO_DO,      /* set it back from after to before */
	SETUP_UNDO_NOTHING, /* it is as it was before already */
	SETUP_UNDO_LEFT     /* others have changed it, or use it: it stays as it is */
};

/**
 * setup_undo_judge - whether step @k of @s can be taken back where the machine is as @f says.
 * Steps after @k must have been taken back before.
 * @why: receives the reason of SETUP_UNDO_LEFT
 */
enum setup_undo setup_undo_judge(const struct setup_facts *f, const struct setup_steps *s, size_t k,
				 char *why, size_t size);

#endif
