// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline auth init, rotate, issue: the secrets of a rack's links and the key files of its nodes
 * (proto/link_keys.h). They need no node, and run on the machine that keeps the rack's file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "proto/link_keys.h"

#define IN_S     3600 /* from `auth rotate` until the new epoch begins */
#define IN_MAX_S (365 * 86400)

enum { KEY_IN = 256, KEY_OVERLAP };

/** struct auth_args - The command line of an `auth` command. */
struct auth_args {
	const char *file, *out;
	uint32_t in_s, overlap_s;
	struct bl_link_file links; /* `auth issue` */
	char (*spec)[64];          /* links as they are written */
	unsigned int nspec;
	bool has_node;
};

static uint32_t read_number(struct argp_state *state, const char *what, const char *arg,
			    long long most)
{
	long long v = 0;

	if (!bl_read_integer(arg, 1, most, &v))
		argp_error(state, "%s: \"%s\" is not a number from 1 to %lld", what, arg, most);
	return (uint32_t)v;
}

static error_t parse_auth(int key, char *arg, struct argp_state *state)
{
	struct auth_args *a = state->input;

	switch (key) {
	case KEY_IN:
		a->in_s = read_number(state, "--in", arg, IN_MAX_S);
		return 0;
	case KEY_OVERLAP:
		a->overlap_s = read_number(state, "--overlap", arg, 86400);
		return 0;
	case 'o':
		a->out = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (!a->file) {
			a->file = arg;
			return 0;
		}
		if (!a->spec)
			return ARGP_ERR_UNKNOWN;
		if (!a->has_node) {
			a->links.node = read_number(state, "NODE", arg, UINT32_MAX);
			a->has_node = true;
			return 0;
		}
		if (a->nspec == BL_LINKS_MAX || strlen(arg) >= sizeof(a->spec[0]))
			argp_error(state,
				   "\"%s\": a link is PEER[@INTERFACE][,NUMBER], and a node "
				   "has at most %d",
				   arg, BL_LINKS_MAX);
		strcpy(a->spec[a->nspec++], arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->file)
			argp_error(state, "which file? It keeps the secrets of the rack's links");
		if (a->spec && !a->nspec)
			argp_error(state, "which node, and which links? For example: 1 1001@eth1");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* Unix time, seconds. */
static uint64_t now_s(void)
{
	return (uint64_t)time(NULL);
}

/* Says what the file has now. */
static int print_epochs(const struct auth_args *a, const struct bl_rack_file *r)
{
	json_t *rows = json_array();
	unsigned int k;

	for (k = 0; k < r->n; k++)
		json_array_append_new(rows, json_pack("{s:i, s:I}", "epoch", (int)r->at[k].epoch,
						      "from_s", (json_int_t)r->at[k].from_s));
	if (cli.json) {
		cli_json(json_pack("{s:s, s:i, s:o}", "file", a->file, "overlap_s",
				   (int)r->overlap_s, "epochs", rows));
		return 0;
	}
	json_decref(rows);
	for (k = 0; k < r->n; k++) {
		int64_t in = (int64_t)(r->at[k].from_s - now_s());

		if (in > 0)
			printf("epoch %u begins in %" PRId64 " s\n", r->at[k].epoch, in);
		else
			printf("epoch %u is in use%s\n", r->at[k].epoch,
			       k + 1 < r->n ? " until the next one begins" : "");
	}
	return 0;
}

int cmd_auth_init(int argc, char **argv)
{
	static const struct argp_option options[] = { { "overlap", KEY_OVERLAP, "SECONDS", 0,
							"how long an epoch (generation of keys) "
							"is accepted after the next one has begun "
							"(60)",
							0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_auth,
					  .args_doc = "FILE",
					  .children = cmd_globals,
					  .doc = "barline auth init - make the secret of a rack's "
						 "links\v"
						 "FILE must not exist, and is readable by its "
						 "owner only. Keep it on one trusted machine: "
						 "whoever "
						 "has it can forge every link." };
	struct auth_args a = { .overlap_s = BL_LINK_OVERLAP_S };
	struct bl_rack_file r = {};
	struct bl_err err;

	cmd_parse(&argp, argc, argv, &a);
	if (!access(a.file, F_OK))
		return cli_fail("%s exists already; `barline auth rotate` adds an epoch to it",
				a.file);
	r.overlap_s = a.overlap_s;
	if (bl_rack_rotate(&r, 0, &err) || bl_rack_file_write(&r, a.file, &err))
		return cli_fail("%s", err.text);
	return print_epochs(&a, &r);
}

int cmd_auth_rotate(int argc, char **argv)
{
	static const struct argp_option options[] = { { "in", KEY_IN, "SECONDS", 0,
							"when nodes begin to send under the new "
							"epoch (3600); until then every node must "
							"have its new file",
							0 },
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_auth,
					  .args_doc = "FILE",
					  .children = cmd_globals,
					  .doc = "barline auth rotate - add an epoch to the secret "
						 "of a rack's links\v"
						 "Then `barline auth issue` a new file for each "
						 "node, copy it there, and send the daemon SIGHUP. "
						 "Nodes change over by their clocks." };
	struct auth_args a = { .in_s = IN_S };
	struct bl_rack_file r;
	struct bl_err err;

	cmd_parse(&argp, argc, argv, &a);
	if (bl_rack_file_load(&r, a.file, &err))
		return cli_fail("%s", err.text);
	if (r.n == BL_LINK_EPOCHS && r.at[1].from_s > now_s())
		return cli_fail("epoch %u begins in %" PRIu64 " s only; rotate again after that",
				r.at[1].epoch, r.at[1].from_s - now_s());
	if (bl_rack_rotate(&r, now_s() + a.in_s, &err) || bl_rack_file_write(&r, a.file, &err))
		return cli_fail("%s", err.text);
	return print_epochs(&a, &r);
}

/* Reads "1001@eth1,2": node 1001 at interface eth1, link number 2. */
static int add_link(const struct bl_rack_file *r, struct bl_link_file *f, char *spec)
{
	char *number = strchr(spec, ','), *port = strchr(spec, '@');
	long long peer = 0, n = 0;
	struct bl_err err;

	if (number)
		*number++ = 0;
	if (port)
		*port++ = 0;
	if (!bl_read_integer(spec, 1, UINT32_MAX, &peer) ||
	    (number && !bl_read_integer(number, 0, UINT32_MAX, &n)) ||
	    (port && (!*port || strlen(port) >= sizeof(f->link[0].port))))
		return cli_usage("\"%s%s%s\": a link is PEER[@INTERFACE][,NUMBER], as 1001@eth1",
				 spec, port ? "@" : "", port ? port : "");
	if (bl_rack_issue(r, f, (uint32_t)peer, port ? port : "", (uint32_t)n, &err))
		return cli_fail("%s", err.text);
	return 0;
}

int cmd_auth_issue(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "output", 'o', "FILE", 0, "the node's file (NODE.keys)", 0 }, { 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_auth,
					  .args_doc = "FILE NODE PEER[@INTERFACE][,NUMBER]...",
					  .children = cmd_globals,
					  .doc = "barline auth issue - make the key file of a "
						 "node\v"
						 "NODE and PEER are node ids. A switch names the "
						 "interface of each link; a "
						 "host may leave it out. Parallel links between "
						 "two nodes have different "
						 "NUMBERs (0), the same at both ends. The file has "
						 "the keys of these links "
						 "only; the daemon reads it as auth: { mode: "
						 "links, keys: FILE }." };
	static struct auth_args a;
	char name[32];
	struct bl_rack_file r;
	struct bl_err err;
	unsigned int k;
	int rc = 0;

	a.spec = calloc(BL_LINKS_MAX, sizeof(*a.spec));
	if (!a.spec)
		return cli_fail("out of memory");
	cmd_parse(&argp, argc, argv, &a);
	if (bl_rack_file_load(&r, a.file, &err))
		return cli_fail("%s", err.text);
	for (k = 0; k < a.nspec && !rc; k++)
		rc = add_link(&r, &a.links, a.spec[k]);
	free(a.spec);
	snprintf(name, sizeof(name), "%u.keys", a.links.node);
	a.out = a.out ? a.out : name;
	if (!rc && bl_link_file_write(&a.links, a.out, &err))
		rc = cli_fail("%s", err.text);
	explicit_bzero(&r, sizeof(r));
	if (rc)
		return rc;
	if (cli.json)
		cli_json(json_pack("{s:s, s:I, s:i}", "file", a.out, "node",
				   (json_int_t)a.links.node, "links", (int)a.links.n));
	else
		printf("%s: %u link%s of node %u\n", a.out, a.links.n, a.links.n == 1 ? "" : "s",
		       a.links.node);
	return 0;
}
