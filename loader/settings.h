/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one table of a node's settings, except those of admission, which have a table of their own
 * (admission/options.h), and the lists ports, fdb, cpus and controllers, which have readers and
 * writers of their own and are in the table for their names, flags and how they change.
 *
 * Everything that reads, writes or describes a setting derives from it: the keys of the YAML file
 * (config.c), the flags of barlined and of `barline host|switch up` (settings_argp.c),
 * `barline config show` and `diff` (config_rows.c), what a reload applies (reload.c), the entries
 * of docs/barlined.8 and docs/barline.1, and the table of docs/configuration.md, which
 * tests/prog/loader/test_settings.c compares.
 *
 * To add a setting: a value of enum bl_setting_id and an entry in settings.c; a member of struct
 * bl_node_cfg that holds it, 0 standing for the default (defaults.c); the entries in the manual
 * pages; and the row that `build/tests/prog/test_settings --table` prints for
 * docs/configuration.md. A setting that changes live needs its step in reload.c, too.
 */
#ifndef BARLINE_LOADER_SETTINGS_H
#define BARLINE_LOADER_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/changes.h"
#include "base/log.h"

struct bl_node_cfg;

/** enum bl_setting_id - in the order in which files, flags and `config show` have them. */
enum bl_setting_id {
	BL_S_ROLE,
	BL_S_NAME,
	BL_S_INTERFACE,
	BL_S_NETNS,
	BL_S_NODE_ID,
	BL_S_MODE,
	BL_S_XDP,
	BL_S_CHAIN,
	BL_S_REPLACE,
	BL_S_ACCEPT,
	BL_S_ONE_QUEUE,
	BL_S_PORT_BASE,
	BL_S_PORT_COUNT,
	BL_S_BEACON,
	BL_S_DEAD_AFTER,
	BL_S_LAG_MAX,
	BL_S_COMMIT_LAG_MAX,
	BL_S_CONTROL_RATE,
	BL_S_NO_AHEAD,
	BL_S_REALTIME,
	BL_S_CPUS,
	BL_S_CLOCK_SOURCE,
	BL_S_CLOCK_BOUND,
	BL_S_CLOCK_MAX_BOUND,
	BL_S_CLOCK_SOCKET,
	BL_S_CLOCK_PHC,
	BL_S_CLOCK_DOMAIN,
	BL_S_CLOCK_TRANSPORT,
	BL_S_CLOCK_GRANDMASTER,
	BL_S_CLOCK_FILE,
	BL_S_CLOCK_VOID,
	BL_S_CARETAKER,
	BL_S_PROCESS_LIMIT,
	BL_S_SEND_LIMIT,
	BL_S_USER_ENDPOINTS,
	BL_S_USER_RING,
	BL_S_USER,
	BL_S_SANDBOX,
	BL_S_CONTROLLERS,
	BL_S_INSECURE,
	BL_S_TLS_CA,
	BL_S_TLS_CERT,
	BL_S_TLS_KEY,
	BL_S_TLS_UNNAMED,
	BL_S_AUTH_MODE,
	BL_S_AUTH_KEYS,
	BL_S_FORWARD,
	BL_S_THREAD_NAPI,
	BL_S_PORTS,
	BL_S_FDB,
	BL_S_ADMISSION,
	/* flags for tests */
	BL_S_SKEW,
	BL_S_CLOCK_BASE,
	BL_S_ONE_LANE,
	BL_S_NO_BEACONS,
	BL_S_COUNT
};

enum bl_setting_kind {
	BL_SETTING_NUMBER,
	BL_SETTING_TRUTH,
	BL_SETTING_NAME, /* one of @names */
	BL_SETTING_TEXT,
	BL_SETTING_BLOCK /* a list or mapping, which code of its own reads and writes */
};

#define BL_SETTING_HOSTS    1U
#define BL_SETTING_SWITCHES 2U

/** struct bl_setting - one setting. NULL of a text means that it has nothing of that kind. */
struct bl_setting {
	const char *section; /* key of the mapping that it is in; NULL: it is at the top */
	const char *key;     /* in files; NULL: it cannot be in a file */
	const char *flag;    /* of barlined and `barline host|switch up` */
	char letter;         /* its short form; 0: none */
	enum bl_setting_kind kind;
	uint8_t roles;
	const char *unit; /* what its argument is called */
	bool bare;        /* the flag takes no argument and gives @flag_value */
	uint64_t flag_value;
	int64_t least, greatest; /* bounds of a number */
	/* 0 can be written and means "no limit" or "not at all": the member is -1 then */
	const char *zero;
	int64_t dflt;          /* the default of a number or name; unused if @dflt_text is given */
	const char *dflt_text; /* the default in words */
	const char *const *names;
	const uint32_t *values; /* of the names; NULL: their place in @names */
	unsigned int count;     /* of names */
	bool inverse;           /* of TRUTH: the member is true if the setting is false */
	bool always;            /* it has no default that could be marked: needed, or a name */
	bool test;              /* only for tests */
	bool daemon;            /* barlined alone has the flag */
	size_t at, size;        /* its member of struct bl_node_cfg; size 0: none */
	enum bl_change change;
	const char *why;  /* why it cannot change live; or what a reader sees meanwhile */
	const char *text; /* for --help and docs/configuration.md: a phrase without full stop */
};

/** bl_setting - the table's entry, or NULL if @id is not below BL_S_COUNT. */
const struct bl_setting *bl_setting(unsigned int id);

/** bl_setting_path - "clock.source", or "beacon_us", into @buf. Returns @buf. */
const char *bl_setting_path(const struct bl_setting *s, char *buf, size_t size);

/**
 * bl_setting_parse - reads what people wrote as @text into the member of @c. @what: the setting's
 * name in the message, as "--beacon-us" or "beacon_us". Returns 0, or -EINVAL with @err.
 */
int bl_setting_parse(const struct bl_setting *s, const char *what, const char *text,
		     struct bl_node_cfg *c, struct bl_err *err);

/** bl_setting_flag - as bl_setting_parse() for a flag without argument. */
void bl_setting_flag(const struct bl_setting *s, struct bl_node_cfg *c);

/** bl_setting_truth - sets a TRUTH to what a file says. */
void bl_setting_truth(const struct bl_setting *s, struct bl_node_cfg *c, bool value);

/** bl_setting_given - whether the member of @c is not what it is by default. */
bool bl_setting_given(const struct bl_setting *s, const struct bl_node_cfg *c);

/**
 * bl_setting_value - the member of @c as people write it, into @buf; "": there is none. Returns
 * @buf.
 */
const char *bl_setting_value(const struct bl_setting *s, const struct bl_node_cfg *c, char *buf,
			     size_t size);

#endif
