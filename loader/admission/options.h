/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one table of admission's options.
 *
 * Everything that reads, writes or describes an option derives from it: the key in YAML files
 * (loader/config.c), the flags of barlined and `barline host|switch up` (admission_argp.c), the
 * flags of `barline admission set` and the rows of `barline admission show` (cli/admission.c),
 * `barline completion` (cli/completion/values.c), and the tables of docs/barline.1 and
 * docs/barlined.8, which tests/unit/loader/admission/test_options.c generates and compares.
 *
 * To add an option: add a value of enum bl_option_id and an entry in options.c; a member of struct
 * bl_admission_cfg (loader/node_cfg.h) that holds it; what the policy does with it at start, at a
 * change and when shown (policy.h); then run `build/tests/unit/test_options --man` and copy its
 * output into the manual pages. An option of TOP on hosts is a line of BL_TOP_OPTIONS instead
 * (maps/top_host_abi.h); it needs nothing else here.
 */
#ifndef BARLINE_ADMISSION_OPTIONS_H
#define BARLINE_ADMISSION_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "maps/hold_abi.h"
#include "maps/top_host_abi.h"

/* bounds and defaults that the code of a policy needs, too */
#define BL_T_SLOTS      15 /* PL2, appendix D.4 */
#define BL_PL2_K        4  /* frames in one burst */
#define BL_QUEUE_FRAMES 256
#define BL_OUTSIDE_MAX  90 /* percent */
#define BL_TIME_MAX_US  10000000

/** enum bl_option_id - in the order in which files, flags and manual pages have them. */
enum bl_option_id {
	BL_AO_POLICY,
	BL_AO_RATE,
	BL_AO_SLOTS,
	BL_AO_MARK_BYTES,
	BL_AO_PACER,
	BL_AO_CPU,
	/* hosts */
	BL_AO_PACER_BEACONS,
	BL_AO_HOLD_FRAMES,
	BL_AO_HOLD_BYTES,
	BL_AO_BL0,
	BL_AO_BL0D,
	BL_AO_K,
	BL_AO_T_SLOTS,
	BL_AO_T_US,
	BL_AO_RECENT_US,
	BL_AO_RETRY_US,
	BL_AO_COMING_US,
	BL_AO_LATE_US,
	BL_AO_FASTPASS,
	BL_AO_TOP_MAP,
	/* switches */
	BL_AO_QUEUE_FRAMES,
	BL_AO_QUEUE_BYTES,
	BL_AO_LIMITS,
	BL_AO_ALLOCATOR,
	BL_AO_REFUSE_US,
	BL_AO_FAR_US,
	BL_AO_LAPSE_US,
	BL_AO_OUTSIDE_PERCENT,
	BL_AO_TOKENS,
	BL_AO_DATA_FIRST,
	BL_AO_UNSCHEDULED,
	BL_AO_TOKEN_FRAMES,
	BL_AO_EXPIRY_TOKENS,
	BL_AO_SPRAY,
	BL_AO_HEADROOM_PERCENT,
	BL_AO_LINK_RATE,
	BL_AO_PATH_DIV,
	/* hosts: BL_AO_TOP + enum bl_top_option */
	BL_AO_TOP,
	BL_AO_COUNT = BL_AO_TOP + BL_TOP_O_COUNT
};

enum bl_option_kind {
	BL_OPTION_NUMBER,
	BL_OPTION_RATE,  /* bits per second, as 10gbit */
	BL_OPTION_TRUTH, /* a flag without argument; true or false in files; yes or no in `set` */
	BL_OPTION_NAME,  /* one of @names */
	BL_OPTION_TEXT,  /* a file or an interface */
	BL_OPTION_BLOCK  /* a list or mapping of files, read by code of its own */
};

/* bits of bl_option.roles */
#define BL_OPTION_HOSTS    1U
#define BL_OPTION_SWITCHES 2U

/** struct bl_option - one option. NULL of a text means that the option has nothing of that kind. */
struct bl_option {
	const char *key;    /* in files, under `admission:`, or under `top:` for BL_AO_TOP on */
	const char *start;  /* flag of barlined and `barline host|switch up` */
	const char *set;    /* flag of `barline admission set`; "": the policy, no flag */
	const char *show;   /* key in `barline admission show -j` */
	const char *column; /* heading of that key's column in the table of `admission show` */
	enum bl_option_kind kind;
	uint8_t roles;        /* BL_OPTION_HOSTS, BL_OPTION_SWITCHES */
	const char *policies; /* which use it, as "pl2"; NULL: all */
	const char *unit;     /* what its argument is called */
	/*
	 * Bounds of a number. At start, 0 stands for the default; @least 0 with another default
	 * can thus be given to a running node only.
	 */
	uint64_t least, greatest;
	uint64_t dflt;            /* the default of a number; 0 with @dflt_text: no fixed number */
	const char *dflt_text;    /* the default in words, where the number does not say it */
	bool needed;              /* there is no default: @dflt_text says when it is needed */
	const char *const *names; /* of NAME: texts of the values from 0 to @greatest */
	size_t at, size;          /* its member of struct bl_admission_cfg; size 0: none */
	uint8_t add;              /* the member has value + @add; 0 there is the default */
	const char *text;         /* for --help and the manual pages: a phrase without full stop */
	const char *more;         /* for the manual page of barlined: sentences */
};

/** bl_option - the table's entry, or NULL if @id is not below BL_AO_COUNT. */
const struct bl_option *bl_option(unsigned int id);

/** bl_option_start_least - the least number that can be given at start. */
uint64_t bl_option_start_least(const struct bl_option *o);

/**
 * bl_option_value - @value as people write it, into @buf: a name, a rate, yes or no, a number.
 * Returns @buf.
 */
const char *bl_option_value(const struct bl_option *o, uint64_t value, char *buf, size_t size);

/**
 * bl_option_parse - the value of a NUMBER (from @least to @greatest), RATE, TRUTH or NAME that
 * people wrote as @text. @what: the option's name in the message. Returns 0, or -EINVAL with @err.
 */
int bl_option_parse(const struct bl_option *o, const char *what, const char *text, uint64_t least,
		    uint64_t greatest, uint64_t *value, struct bl_err *err);

/** bl_option_check - refuses a value that is not from o->least to o->greatest. 0 or -EINVAL. */
int bl_option_check(const struct bl_option *o, const char *what, uint64_t value,
		    struct bl_err *err);

struct bl_admission_cfg;
/** bl_option_store - puts a value into its member of @a, with o->add. */
void bl_option_store(const struct bl_option *o, struct bl_admission_cfg *a, uint64_t value);
/** bl_option_load - the member as it is, with o->add; 0: not given. */
uint64_t bl_option_load(const struct bl_option *o, const struct bl_admission_cfg *a);

/**
 * struct bl_admission_set - values of options by enum bl_option_id: what `barline admission set`
 * changes on a running node, or what a running node has. All zero: nothing is given.
 */
struct bl_admission_set {
	bool given[BL_AO_COUNT];
	uint64_t value[BL_AO_COUNT]; /* times are in us when set, and in ns when shown */
	bool check;                  /* set: only say whether it can be done; change nothing */
};

static inline void bl_admission_put(struct bl_admission_set *s, unsigned int id, uint64_t value)
{
	s->given[id] = true;
	s->value[id] = value;
}

/** bl_admission_any - whether an option is given. */
bool bl_admission_any(const struct bl_admission_set *s);

/* options of TOP on hosts, by enum bl_top_option: the same table */
/** bl_top_option_key - the option's key in files. */
const char *bl_top_option_key(unsigned int option);
/** bl_top_option_value - the value as people write it, into @buf. Returns @buf. */
const char *bl_top_option_value(unsigned int option, uint32_t value, char *buf, size_t size);
/** bl_top_option_parse - the value that people wrote as @text. 0, or -EINVAL with @err. */
int bl_top_option_parse(unsigned int option, const char *text, uint32_t *value, struct bl_err *err);

#endif
