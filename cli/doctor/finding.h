/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the doctor finds: one finding per requirement. `barline status` keeps the worst finding of
 * each check of a node (cli/health/health.h).
 */
#ifndef BARLINE_CLI_DOCTOR_FINDING_H
#define BARLINE_CLI_DOCTOR_FINDING_H

enum finding_level { FOUND_OK, FOUND_WARN, FOUND_FAIL };

/*
 * The checks of a node: X(SYMBOL, "name for JSON", "what it is about"). Of two checks that fail,
 * the first one here is named first, since it may explain the other.
 */
#define NODE_CHECKS(X)                                                                     \
	X(DAEMON, "daemon", "whether a daemon serves the node and its event loop turns")   \
	X(CLOCK, "clock", "whether bus time may be used, and its source is synchronised")  \
	X(LINK, "link", "whether the interfaces exist, are up and have carrier")           \
	X(QUEUES, "queues", "whether the interfaces are one FIFO for ordered frames")      \
	X(PROGRAMS, "programs", "whether barline's programs are attached")                 \
	X(NODE_ID, "node_id", "whether another node has the same number")                  \
	X(NEIGHBOUR, "neighbour", "whether neighbours are heard, and do not lag")          \
	X(ADDRESS, "address", "addresses, routes, bridge or forwarding, and the firewall") \
	X(CONTROLLER, "controller", "whether there is a session with the one that leads")
enum node_check {
#define NODE_CHECK_(name, word, text) CHECK_##name,
	NODE_CHECKS(NODE_CHECK_)
#undef NODE_CHECK_
		NODE_CHECKS_NUMBER
};
#define CHECK_OTHER NODE_CHECKS_NUMBER /* findings that `barline status` does not show */

/** finding_level_name - "ok", "warn" or "FAIL". */
const char *finding_level_name(enum finding_level level);

/** node_check_name - name of a check, as in JSON. */
const char *node_check_name(enum node_check check);

/** struct finding - One requirement and whether it is met. Sent through a pipe as it is. */
struct finding {
	enum finding_level level;
	unsigned int check; /* enum node_check, or CHECK_OTHER */
	char word[24];      /* what was found, for programs, as "no_carrier"; "": CHECK_OTHER */
	char what[40];      /* the requirement */
	char cause[300];    /* what was observed */
	char cure[240];     /* what to do; "": nothing */
};

/**
 * struct finder - Where findings go: in the parent process to the report, in the child into a pipe
 * to the parent.
 */
struct finder {
	void (*fn)(void *ctx, const struct finding *f);
	void *ctx;
};

/** found - Passes a finding to @to. @fmt makes its cause. @cure is ignored for FOUND_OK. */
void found(const struct finder *to, enum finding_level level, const char *what, const char *cure,
	   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/** found_as - found(), of a check of a node. @word: what was found, for programs */
void found_as(const struct finder *to, enum node_check check, const char *word,
	      enum finding_level level, const char *what, const char *cure, const char *fmt, ...)
	__attribute__((format(printf, 7, 8)));

#endif
