// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See barlined_argp.h. */
#include "loader/barlined_argp.h"

#include "loader/settings.h"

enum { OPT_PREPARE = 256 };

static const struct argp_option options[] = {
	{ "prepare", OPT_PREPARE, NULL, 0,
	  "do only what root has to do for --user before the daemon starts, and exit", 0 },
	{ "json", 'j', NULL, 0, "print one JSON object when ready, and errors as JSON", 0 },
	{ 0 },
};

static error_t parse_opt(int key, char *arg, struct argp_state *st)
{
	struct bl_barlined_args *a = st->input;
	struct bl_node_cfg *c = &a->in.cfg;
	struct bl_err err;

	switch (key) {
	case ARGP_KEY_INIT:
		st->child_inputs[0] = &a->in;
		break;
	case 'j':
		a->json = true;
		break;
	case OPT_PREPARE:
		a->prepare = true;
		break;
	case ARGP_KEY_ARG:
		/* before the file is read, which has to be for the same role */
		if (a->in.file_pass && c->role != BL_ROLE_NONE)
			argp_error(st, "only one role can be given; \"%s\" is a second one", arg);
		if (a->in.file_pass &&
		    bl_setting_parse(bl_setting(BL_S_ROLE), "role", arg, c, &err))
			argp_error(st, "%s", err.text);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_child children[] = { { &bl_settings_argp, 0, NULL, 0 }, { 0 } };
const struct argp bl_barlined_argp = { options,
				       parse_opt,
				       "[switch|host]",
				       "barlined runs one switch or one host of a barline rack.",
				       children,
				       NULL,
				       NULL };
