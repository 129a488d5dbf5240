/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TOP's settings, as the loader's other files see them: loader/admission/top_host.c. */
#ifndef BARLINE_LOADER_TOP_H
#define BARLINE_LOADER_TOP_H

#include <cyaml/cyaml.h>
#include "base/log.h"
#include "loader/node_cfg.h"
#include "maps/top_host_abi.h"

struct bl_node;
struct bl_node_ref;
struct bpf_object;

/** bl_top_option_key, bl_top_option_text - of enum bl_top_option. */
const char *bl_top_option_key(unsigned int option);
/** bl_top_option_value - the value as people write it, into @buf. Returns @buf. */
const char *bl_top_option_value(unsigned int option, uint32_t value, char *buf, size_t size);
/** bl_top_option_parse - 0, or -EINVAL with a sentence. */
int bl_top_option_parse(unsigned int option, const char *text, uint32_t *value, struct bl_err *err);

/**
 * bl_top_limits - frames from which classes begin by these settings (what is not given: the
 * default), as bl_top_cfg.limit has them. What is learnt is not in them.
 */
void bl_top_limits(const struct bl_top_opts *o, uint64_t limit[BL_TOP_CLASSES - 1]);

/** bl_top_defaults - what was not given. */
void bl_top_defaults(struct bl_top_opts *o);
int bl_top_check(const struct bl_top_opts *o, struct bl_err *err);
/**
 * bl_top_make - what the programs need, of settings that bl_top_check() took and a link of @ns_q20
 * (0: no rate yet); but keep_max, which is 0.
 */
void bl_top_make(const struct bl_top_opts *o, uint32_t ns_q20, struct bl_top_cfg *c);
/**
 * bl_top_limit - frames from which class @cls (1 to @levels - 1) begins: floor(K log_p(a x + b)) =
 * @cls.
 */
uint64_t bl_top_limit(unsigned int cls, unsigned int levels, double a, double b, double longest);
/** bl_top_fill - the maps, before the programs see a frame. @fresh: flows start empty. */
int bl_top_fill(struct bl_node *n, struct bpf_object *obj, bool fresh, struct bl_err *err);
/**
 * bl_top_change - other settings (value + 1 by option; 0: the same), or another rate, on a running
 * host. Appends to @said.
 */
int bl_top_change(const struct bl_node_ref *ref, const uint32_t *opt, uint32_t ns_q20, char *said,
		  size_t size, struct bl_err *err);

/**
 * struct bl_top_file_rule, struct bl_top_file - as libcyaml fills them; every option as it is
 * written.
 */
struct bl_top_file_rule {
	uint16_t port;
	char *protocol;
	uint64_t bytes;
	uint32_t deadline_us, coflow;
	bool resend;
};
struct bl_top_file {
#define BL_TOP_FILE_FIELD(sym, key, flag, least, most, dflt, text) char *sym;
	BL_TOP_OPTIONS(BL_TOP_FILE_FIELD)
#undef BL_TOP_FILE_FIELD
	struct bl_top_file_rule *rules;
	unsigned int rules_count;
};

/* config.c's part: key `top` of admission */
extern const cyaml_schema_field_t bl_top_fields[];
int bl_top_take(struct bl_top_opts *o, const struct bl_top_file *f, const char *path,
		struct bl_err *err);

#endif
