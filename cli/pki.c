// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barline pki init, issue, renew, show: certificates for the sessions between nodes, controllers
 * and etcd (proto/pki.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cmd.h"
#include "cli/util/args.h"
#include "cli/util/out.h"
#include "proto/pki.h"

#define PKI_DIR "/etc/barline/pki"
#define DAY_S   86400

enum { OPT_DIR = 256, OPT_RACK, OPT_DAYS, OPT_ID, OPT_ROLE, OPT_ADDRESS };

/** struct pki_args - What a `barline pki` command was given. */
struct pki_args {
	const char *dir;
	const char *rack;
	const char *days;
	const char *id;
	const char *role;
	const char *name;
	struct bl_pki_req req;
};

static error_t parse_pki(int key, char *arg, struct argp_state *state)
{
	struct pki_args *a = state->input;

	switch (key) {
	case OPT_DIR:
		a->dir = arg;
		return 0;
	case OPT_RACK:
		a->rack = arg;
		return 0;
	case OPT_DAYS:
		a->days = arg;
		return 0;
	case OPT_ID:
		a->id = arg;
		return 0;
	case OPT_ROLE:
		a->role = arg;
		return 0;
	case OPT_ADDRESS:
		if (a->req.naddrs == BL_PKI_ADDRS_MAX)
			argp_error(state, "--address %s: at most %d of them", arg,
				   BL_PKI_ADDRS_MAX);
		a->req.addr[a->req.naddrs++] = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (a->name)
			return ARGP_ERR_UNKNOWN;
		a->name = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

/* Returns the number that @text is, from 1 to @most; @none if it is NULL. Ends the process if not.
 */
static unsigned int read_number(const char *text, const char *option, unsigned int none,
				unsigned int most)
{
	unsigned long v;
	char *end;

	if (!text)
		return none;
	errno = 0;
	v = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || !v || v > most)
		exit(cli_usage("%s %s: a number from 1 to %u", option, text, most));
	return (unsigned int)v;
}

#define PKI_DIR_OPTION                                                               \
	{                                                                            \
		"dir", OPT_DIR, "DIR", 0, "folder of the authority (" PKI_DIR ")", 0 \
	}
#define PKI_DAYS_OPTION(n)                                                               \
	{                                                                                \
		"days", OPT_DAYS, "N", 0, "how long the certificate is valid (" n ")", 0 \
	}

int cmd_pki_init(int argc, char **argv)
{
	static const struct argp_option options[] = {
		PKI_DIR_OPTION,
		{ "rack", OPT_RACK, "NAME", 0, "name of the rack; part of each identity", 0 },
		PKI_DAYS_OPTION("3650"),
		{ 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_pki,
					  .children = cmd_globals,
					  .doc = "barline pki init - make the authority for the "
						 "certificates of one rack\v"
						 "The authority is a folder of mode 0700 with "
						 "ca.pem and ca.key. Keep it on one machine, and "
						 "a copy offline: whoever has ca.key can pass for "
						 "any node and any controller." };
	struct pki_args a = { .dir = PKI_DIR };
	struct bl_err err;

	cmd_parse(&argp, argc, argv, &a);
	if (a.name)
		return cli_usage("\"%s\": the name of the rack is given as --rack NAME", a.name);
	if (!a.rack)
		return cli_usage("which rack? --rack NAME");
	if (bl_pki_init(a.dir, a.rack,
			read_number(a.days, "--days", BL_PKI_CA_DAYS, BL_PKI_DAYS_MAX), &err))
		return cli_fail("%s", err.text);
	if (cli.json)
		cli_json(json_pack("{s:s, s:s}", "dir", a.dir, "rack", a.rack));
	else
		printf("authority of rack %s in %s; next: barline pki issue NODE --id N, and "
		       "barline pki issue NAME --role controller\n",
		       a.rack, a.dir);
	return 0;
}

static void print_use(const struct pki_args *a)
{
	const char *n = a->req.name;

	printf("%s/%s.pem and %s/%s.key; valid for %u days\n", a->dir, n, a->dir, n, a->req.days);
	if (a->req.role == BL_IDENT_ETCD)
		printf("copy them and ca.pem to %s and start etcd, whose user must own the key, "
		       "with URLs of https:// and --client-cert-auth --trusted-ca-file ca.pem "
		       "--cert-file %s.pem --key-file %s.key --peer-client-cert-auth "
		       "--peer-trusted-ca-file ca.pem --peer-cert-file %s.pem --peer-key-file "
		       "%s.key\n",
		       n, n, n, n, n);
	else if (a->req.role == BL_IDENT_NODE)
		printf("copy them and ca.pem to %s, and write into the file of its barlined: tls: "
		       "{ ca: ca.pem, cert: %s.pem, key: %s.key }\n",
		       n, n, n);
	else
		printf("copy them and ca.pem to %s, and write into the file of its controller { "
		       "ca: ca.pem, cert: %s.pem, key: %s.key }: under tls if this is the "
		       "authority of the nodes, and under etcd if it is that of etcd\n",
		       n, n, n);
}

int cmd_pki_issue(int argc, char **argv)
{
	static const struct argp_option options[] = {
		PKI_DIR_OPTION,
		{ "id", OPT_ID, "N", 0, "node id: node_id in the file of the node's barlined", 0 },
		{ "role", OPT_ROLE, "ROLE", 0, "node (the default), controller or etcd", 0 },
		{ "address", OPT_ADDRESS, "ADDR", 0,
		  "IP address or DNS name at which etcd is reached; may be repeated", 0 },
		PKI_DAYS_OPTION("365"),
		{ 0 }
	};
	static const struct argp argp = { .options = options,
					  .parser = parse_pki,
					  .args_doc = "NAME",
					  .children = cmd_globals,
					  .doc = "barline pki issue - make a key and a certificate "
						 "for a node, a controller or "
						 "a member of etcd\v"
						 "The certificate names what it is for: "
						 "barline://RACK/node/N is good for node "
						 "N and nothing else, "
						 "barline://RACK/controller/NAME for a controller. "
						 "Members of etcd need an authority without nodes, "
						 "in another folder (--dir), where each controller "
						 "gets a second certificate. Nothing "
						 "is overwritten." };
	struct pki_args a = { .dir = PKI_DIR };
	struct bl_pki_info info;
	char uri[BL_IDENT_TEXT_MAX];
	struct bl_err err;

	cmd_parse(&argp, argc, argv, &a);
	if (!a.name)
		return cli_usage("for whom? barline pki issue NODE --id N");
	a.req.name = a.name;
	a.req.role = !a.role || !strcmp(a.role, "node") ? BL_IDENT_NODE
		     : !strcmp(a.role, "controller")    ? BL_IDENT_CONTROLLER
		     : !strcmp(a.role, "etcd")          ? BL_IDENT_ETCD
							: BL_IDENT_NONE;
	if (a.req.role == BL_IDENT_NONE)
		return cli_usage("--role %s: node, controller or etcd", a.role);
	if (a.req.role == BL_IDENT_NODE && !a.id)
		return cli_usage("which node id? --id N, as node_id in the file of the node's "
				 "barlined");
	a.req.node = read_number(a.id, "--id", 0, UINT32_MAX);
	a.req.days = read_number(a.days, "--days", BL_PKI_DAYS, BL_PKI_DAYS_MAX);
	if (bl_pki_issue(a.dir, &a.req, &err) || bl_pki_read(a.dir, a.name, &info, &err))
		return cli_fail("%s", err.text);
	bl_ident_format(&info.who, uri);
	if (cli.json)
		cli_json(json_pack("{s:s, s:s, s:i}", "name", a.name, "identity", uri, "days",
				   (int)a.req.days));
	else
		print_use(&a);
	return 0;
}

int cmd_pki_renew(int argc, char **argv)
{
	static const struct argp_option options[] = { PKI_DIR_OPTION,
						      PKI_DAYS_OPTION("365"),
						      { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_pki,
					  .args_doc = "NAME",
					  .children = cmd_globals,
					  .doc = "barline pki renew - give a certificate new "
						 "dates\v"
						 "Identity and key do not change. Copy NAME.pem to "
						 "its machine. barlined and controllers read it "
						 "when their next session begins, without a "
						 "restart." };
	struct pki_args a = { .dir = PKI_DIR };
	struct bl_err err;
	unsigned int days;

	cmd_parse(&argp, argc, argv, &a);
	if (!a.name)
		return cli_usage("which certificate? `barline pki show` lists them");
	days = read_number(a.days, "--days", BL_PKI_DAYS, BL_PKI_DAYS_MAX);
	if (bl_pki_renew(a.dir, a.name, days, &err))
		return cli_fail("%s", err.text);
	if (cli.json)
		cli_json(json_pack("{s:s, s:i}", "name", a.name, "days", (int)days));
	else
		printf("%s/%s.pem: valid for %u days; copy it to %s\n", a.dir, a.name, days,
		       a.name);
	return 0;
}

static int add_row(void *ctx, const char *name, const struct bl_pki_info *i)
{
	char uri[BL_IDENT_TEXT_MAX], until[32] = "";
	long left = ((long)i->until - (long)time(NULL)) / DAY_S;
	struct tm tm;

	bl_ident_format(&i->who, uri);
	if (gmtime_r(&i->until, &tm))
		strftime(until, sizeof(until), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_array_append_new(ctx,
			      json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "name", name, "identity",
					uri, "until", until, "days", (json_int_t)left, "state",
					!i->ours                ? "of another authority"
					: i->until < time(NULL) ? "expired"
					: i->from > time(NULL)  ? "not valid yet"
					: left < 30             ? "renew it"
								: "ok",
					"serial", i->serial));
	return 0;
}

int cmd_pki_show(int argc, char **argv)
{
	static const struct argp_option options[] = { PKI_DIR_OPTION, { 0 } };
	static const struct argp argp = { .options = options,
					  .parser = parse_pki,
					  .children = cmd_globals,
					  .doc = "barline pki show - what was issued, and how long "
						 "it is valid\v"
						 "STATE: ok; renew it: fewer than 30 days are "
						 "left; "
						 "expired; not valid yet; of another authority." };
	static const struct col cols[] = {
		{ "name", "NAME", 's' }, { "identity", "IDENTITY", 's' }, { "until", "UNTIL", 's' },
		{ "days", "DAYS", 'd' }, { "state", "STATE", 's' },
	};
	struct pki_args a = { .dir = PKI_DIR };
	json_t *rows = json_array();
	struct bl_err err;

	cmd_parse(&argp, argc, argv, &a);
	if (a.name) {
		json_decref(rows);
		return cli_usage("\"%s\": show lists all certificates", a.name);
	}
	if (bl_pki_each(a.dir, add_row, rows, &err)) {
		json_decref(rows);
		return cli_fail("%s", err.text);
	}
	return out_rows("certificates", rows, cols, sizeof(cols) / sizeof(cols[0]),
			"no certificates");
}
