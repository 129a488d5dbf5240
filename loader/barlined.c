// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * barlined: the daemon of one switch or one host.
 *
 * 	barlined switch -c tor1.yaml
 * 	barlined host -i eth1
 * 	barlined -c h1.yaml		the file says which
 *
 * It loads or takes over the datapath, then keeps the clock, sends beacons and serves endpoints.
 * When it stops, the datapath stays.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/library/systemd.h"
#include "base/log.h"
#include "base/netns_keep.h"
#include "base/privileges.h"
#include "base/sandbox.h"
#include "loader/admission/admission.h"
#include "loader/barlined_argp.h"
#include "loader/busy.h"
#include "loader/caretaker.h"
#include "loader/config.h"
#include "loader/config_check.h"
#include "loader/config_clock.h"
#include "loader/config_rows.h"
#include "loader/control.h"
#include "loader/load/attach.h"
#include "loader/load/pin.h"
#include "loader/load/sysfs.h"
#include "loader/loop.h"
#include "loader/node.h"
#include "loader/node_cfg.h"
#include "loader/node_events.h"
#include "loader/node_priv.h"
#include "loader/order/beacon.h"
#include "loader/prepare.h"
#include "loader/settings_argp.h"
#include "loader/spare.h"

const char *argp_program_version = "barlined " BL_BUILD;

/*
 * The configuration by file and flags, into a->in. Returns 0, or -errno: it cannot be right. What
 * is wrong with the command line itself ends the process, unless @flags has ARGP_SILENT.
 */
static int read_config(struct bl_barlined_args *a, unsigned int flags, struct bl_err *err)
{
	int rc;

	a->in = (struct bl_settings_input){ .file_pass = true };
	if (argp_parse(&bl_barlined_argp, a->argc, a->argv, flags, NULL, a))
		return bl_fail(err, EINVAL, "the command line cannot be read");
	rc = bl_settings_file(&a->in, err);
	if (!rc && argp_parse(&bl_barlined_argp, a->argc, a->argv, flags, NULL, a))
		rc = bl_fail(err, EINVAL, "the flags of the command line do not fit the file %s",
			     a->in.file ? a->in.file : "");
	if (!rc)
		rc = bl_settings_done(&a->in, err);
	return rc;
}

static void json_text(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			printf("\\u%04x", (unsigned char)*s);
		else
			putchar(*s);
	}
	putchar('"');
}

static int json_pin(const char *path, const char *name, int link_fd, uint32_t ifindex, void *ctx)
{
	bool *more = ctx;

	(void)name, (void)link_fd, (void)ifindex;
	printf(*more ? "," : "");
	json_text(path);
	*more = true;
	return 0;
}

static void print_ready(const struct bl_node *n)
{
	static const char *const roles[] = { "unused", "host", "up", "down" };
	bool more = false;
	unsigned int k;

	printf("{\"schema\":1,\"node\":{\"name\":");
	json_text(n->meta.name);
	printf(",\"id\":%u,\"role\":\"%s\",\"netns\":%" PRIu64 ",\"taken_over\":%s},\"interfaces\":"
	       "[",
	       n->meta.node_id, bl_role_name(n->cfg.role), n->netns_ino,
	       n->fresh ? "false" : "true");
	for (k = 0; k < n->natt; k++) {
		const struct bl_attached *a = &n->att[k];

		printf("%s{\"name\":", k ? "," : "");
		json_text(a->iface.name);
		printf(",\"ifindex\":%d", a->iface.ifindex);
		if (a->port >= 0)
			printf(",\"port\":%d,\"role\":\"%s\"", a->port, roles[a->role & 3]);
		if (a->port >= 0 || k == 0)
			printf(",\"xdp\":\"%s\"", a->mode == BL_XDP_GENERIC ? "generic" : "native");
		if (a->egress)
			printf(",\"egress\":\"%s\"", a->egress);
		if (a->home_cpu >= 0)
			printf(",\"napi_cpu\":%d", a->home_cpu);
		printf("}");
	}
	printf("],\"dir\":");
	json_text(n->dir);
	printf(",\"pins\":[");
	bl_links_each(n->dir, json_pin, &more);
	printf("]");
	if (*n->sock_path) {
		printf(",\"socket\":");
		json_text(n->sock_path);
	}
	printf("}\n");
	fflush(stdout);
}

/** struct become - argument of become_user(). */
struct become {
	const struct bl_user *user; /* NULL: the user stays */
	struct bl_err *err;
};

/* Returns @status, the exit status. */
static int report_error(const struct bl_barlined_args *a, int status, const struct bl_err *err)
{
	if (a->json) {
		printf("{\"schema\":1,\"error\":");
		json_text(err->text);
		printf("}\n");
		fflush(stdout);
	} else {
		bl_log(BL_LOG_ERR, "%s", err->text);
	}
	sd_notifyf(0, "STATUS=%s", err->text);
	return status;
}

/* Says what the node would be. */
static int report_check(const struct bl_barlined_args *a)
{
	const struct bl_node_cfg *c = &a->in.cfg;
	struct bl_config_rows rows;
	struct bl_err err;
	unsigned int k;

	if (bl_config_check_files(c, &err))
		return report_error(a, 2, &err);
	if (bl_config_rows(c, true, &rows, &err))
		return report_error(a, 1, &err);
	if (a->json) {
		char path[96];

		printf("{\"schema\":1,\"check\":{\"role\":\"%s\",\"settings\":{",
		       bl_role_name(c->role));
		for (k = 0; k < rows.n; k++) {
			printf("%s", k ? "," : "");
			json_text(bl_config_row_path(&rows.v[k], path, sizeof(path)));
			printf(":");
			if (rows.v[k].kind == BL_ROW_TEXT)
				json_text(rows.v[k].value);
			else
				printf("%s", rows.v[k].value);
		}
		printf("}}}\n");
	} else {
		printf("# right: barlined would run this %s\n", bl_role_name(c->role));
		bl_config_print(stdout, &rows);
	}
	bl_config_rows_free(&rows);
	return 0;
}

/*
 * How long --prepare waits for NICs. A start that fails after this is counted less than once in the
 * StartLimitIntervalSec= of the unit, which hence goes on to try.
 */
#define PREPARE_WAIT_MS 30000

static int become_user(void *ctx)
{
	struct become *b = ctx;

	return bl_privileges_drop(b->user, BL_CAPS_DAEMON, b->err);
}

/*
 * Everything that takes more than the daemon's capabilities. A daemon that was started as another
 * user than root has these capabilities from its service manager, and everything is prepared.
 */
static int give_up_privileges(struct bl_barlined_args *a, struct bl_err *err)
{
	struct bl_node_cfg *c = &a->in.cfg;
	struct bl_user user = {};
	struct become b = { .user = &user, .err = err };
	bool root = !geteuid(), becomes = root && *c->user;
	int rc = *c->user ? bl_user_find(c->user, &user, err) : 0;

	if (!rc && *c->user && !root && user.uid != geteuid())
		rc = bl_fail(err, EPERM, "only root can become user %s", c->user);
	if (!rc && a->prepare && !becomes)
		rc = bl_fail(err, EINVAL, "--prepare: run it as root, with --user");
	if (!rc)
		rc = bl_netns_settle(c->netns, becomes && !a->prepare && bl_admission_paced(c),
				     err);
	/* The node's own namespace from here on. */
	*c->netns = 0;
	if (!rc && a->prepare)
		rc = bl_prepare_wait(c, PREPARE_WAIT_MS, err);
	if (!rc && root)
		rc = bl_prepare(c, becomes ? &user : NULL, err);
	if (rc || a->prepare)
		return rc;
	if (root)
		bl_sysfs_keep();
	if (becomes)
		rc = bl_netns_helpers_drop(BL_CAPS_DAEMON, become_user, &b, err);
	else if (!root)
		rc = become_user(&(struct become){ .err = err });
	if (!rc && geteuid())
		rc = bl_prepared_check(err);
	if (!rc)
		rc = bl_caps_need("barlined",
				  BL_CAPS_LOAD | (bl_beacons_here(c) ? BL_CAP(CAP_NET_RAW) : 0),
				  err);
	if (!rc && !(bl_caps_effective() & BL_CAP(CAP_SYS_NICE)))
		bl_log(BL_LOG_WARN, "without CAP_SYS_NICE beacons are late on a busy machine");
	return rc;
}

/*
 * Another user's daemon may have to take the node over from this one: what root has made belongs to
 * the owner of the run directory.
 */
static void give_back(void)
{
	struct bl_err why;
	struct stat st;

	if (!geteuid() && !stat(BL_RUN_DIR, &st) && st.st_uid &&
	    bl_give_run_dir(st.st_uid, st.st_gid, &why))
		bl_log(BL_LOG_WARN, "%s", why.text);
}

/* Makes the configuration anew for a reload. */
static int read_again(void *ctx, struct bl_node_cfg *out, struct bl_err *err)
{
	const struct bl_barlined_args *was = ctx;
	struct bl_barlined_args a = { .argc = was->argc, .argv = was->argv };
	int rc = read_config(&a, ARGP_SILENT, err);

	*out = a.in.cfg;
	return rc;
}

int main(int argc, char **argv)
{
	struct bl_barlined_args a = { .argc = argc, .argv = argv };
	struct bl_err err = {}, why;
	enum bl_role role;
	struct bl_server *s;
	struct bl_node *n;
	char dir[256];
	int rc;

	bl_server_block_signals();
	if (argc == 3 && !strcmp(argv[1], "--caretaker"))
		return bl_caretaker_main(argv[2]);
	argp_err_exit_status = 2;
	if (read_config(&a, 0, &err)) {
		bl_config_free(&a.in.cfg);
		return report_error(&a, 2, &err);
	}
	if (a.in.check) {
		rc = report_check(&a);
		bl_config_free(&a.in.cfg);
		return rc;
	}
	role = a.in.cfg.role;
	bl_clock_default_source(&a.in.cfg);
	if (give_up_privileges(&a, &err) || (!a.prepare && bl_server_new(&s, &err))) {
		bl_config_free(&a.in.cfg);
		return report_error(&a, 1, &err);
	}
	if (a.prepare) {
		bl_config_free(&a.in.cfg);
		return 0;
	}
	if (bl_node_open(&n, s, &a.in.cfg, &err)) {
		bl_server_free(s);
		bl_config_free(&a.in.cfg);
		return report_error(&a, 1, &err);
	}
	give_back();
	if (!a.in.cfg.no_sandbox && bl_sandbox(BL_SERVICE_DAEMON, &err)) {
		bl_server_free(s);
		bl_config_free(&a.in.cfg);
		return report_error(&a, 1, &err);
	}
	bl_config_free(&a.in.cfg);
	if (a.json)
		print_ready(n);
	sd_notifyf(0, "READY=1\nSTATUS=%s %s: %u interfaces, %s XDP, pins in %s",
		   bl_role_name(role), n->meta.name, n->natt,
		   bl_node_mode(n) == BL_XDP_GENERIC ? "generic" : "native", n->dir);
	bl_node_events_started(n, bl_node_mode(n) == BL_XDP_GENERIC);
	bl_server_on_reload(s, read_again, &a);
	if (!a.in.detach && bl_spare_open(n, &err))
		bl_log(BL_LOG_WARN, "no caretaker stands in if the daemon dies: %s", err.text);
	rc = bl_server_run(s, &err);
	sd_notify(0, "STOPPING=1");
	bl_node_events_stopped(n, rc ? err.text : "signal");
	snprintf(dir, sizeof(dir), "%s", n->dir);
	/* also for one that cannot go on */
	if (!a.in.detach && bl_node_hand_over(n, &why))
		bl_log(BL_LOG_WARN, "no caretaker stands in for the daemon: %s", why.text);
	/* After a caretaker was started, which may run everywhere. */
	bl_node_withdraw(n);
	bl_server_free(s);
	if (rc)
		return report_error(&a, 1, &err);
	if (!a.in.detach) {
		bl_log(BL_LOG_INFO,
		       "stopped; the datapath of the %s stays in the kernel (pins in %s); start "
		       "again to go on, or remove it with `barline %s detach`",
		       bl_role_name(role), dir, bl_role_name(role));
		return 0;
	}
	if (bl_node_busy(role, NULL, &err) || bl_node_detach(role, NULL, &err))
		return report_error(&a, 1, &err);
	bl_log(BL_LOG_INFO, "stopped and detached");
	return 0;
}
