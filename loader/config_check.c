// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See config_check.h. */
#include "loader/config_check.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/ip.h"
#include "loader/admission/admission.h"
#include "loader/config_clock.h"
#include "loader/defaults.h"
#include "loader/load/chain.h"
#include "loader/load/pin.h"
#include "loader/settings.h"
#include "proto/fastpass_file.h"
#include "proto/session.h"

int bl_ctl_peers_check(const struct bl_ctl_peers *c, struct bl_err *err)
{
	unsigned int i;

	for (i = 0; i < c->n && !c->insecure && !*c->ca; i++)
		if (!bl_session_is_local(c->addr[i]))
			return bl_fail(err, EPERM,
				       "the controller %s is on another machine, and anybody on "
				       "the way could pass for it: give tls: { ca, cert, key } "
				       "(`barline "
				       "pki` makes the files), or say insecure: true or --insecure",
				       c->addr[i]);
	return 0;
}

/* Refuses settings of the other role, which only flags can give. */
static int check_roles(const struct bl_node_cfg *c, struct bl_err *err)
{
	const bool host = c->role == BL_ROLE_HOST;
	unsigned int k;

	for (k = 0; k < BL_S_COUNT; k++) {
		const struct bl_setting *s = bl_setting(k);

		if (!(s->roles & (host ? BL_SETTING_HOSTS : BL_SETTING_SWITCHES)) &&
		    bl_setting_given(s, c) && k != BL_S_PORTS && k != BL_S_INTERFACE)
			return bl_fail(err, EINVAL, "--%s is for %s, and this is a %s",
				       s->flag ? s->flag : s->key, host ? "switches" : "hosts",
				       bl_role_name(c->role));
	}
	return 0;
}

static int check_complete(const struct bl_node_cfg *c, struct bl_err *err)
{
	if (c->role == BL_ROLE_NONE)
		return bl_fail(err, EINVAL, "say what to be: switch or host, here or in the file");
	if (c->role == BL_ROLE_HOST && !*c->ifname)
		return bl_fail(err, EINVAL,
			       "a host needs its NIC: -i IFNAME, or interface in the file");
	if (c->role == BL_ROLE_HOST && c->ports_count)
		return bl_fail(err, EINVAL, "a host has no ports; -i IFNAME names its NIC");
	if (c->role == BL_ROLE_SWITCH && *c->ifname)
		return bl_fail(err, EINVAL,
			       "a switch has ports and no NIC: --host-port, --up-port, "
			       "--down-port");
	if (c->role == BL_ROLE_SWITCH && !c->ports_count)
		return bl_fail(err, EINVAL,
			       "a switch needs ports: --host-port, --up-port, --down-port, or "
			       "ports in the file");
	if (*c->ctl.ca && !c->ctl.n)
		return bl_fail(err, EINVAL,
			       "tls in the file is for sessions with controllers, and there are "
			       "none: neither controllers in the file nor --controller");
	return 0;
}

static bool is_datapath_cpu(const struct bl_node_cfg *c, int cpu)
{
	unsigned int k;

	for (k = 0; k < c->ncpus && c->cpus[k] != cpu; k++)
		;
	return c->ncpus ? k < c->ncpus : !cpu;
}

/* Whether both ports list the same IP address, and which one into @text. */
static bool shared_address(const struct bl_port_cfg *a, const struct bl_port_cfg *b,
			   char text[INET6_ADDRSTRLEN])
{
	unsigned int i, j;

	for (i = 0; i < a->nip; i++)
		for (j = 0; j < b->nip; j++)
			if (!memcmp(a->ip[i], b->ip[j], sizeof(a->ip[i]))) {
				bl_ip_text(a->ip[i], text);
				return true;
			}
	return false;
}

static int check_ports(const struct bl_node_cfg *c, struct bl_err *err)
{
	char text[INET6_ADDRSTRLEN];
	unsigned int k, j;

	if (c->ports_count > BL_SW_PORTS_MAX)
		return bl_fail(err, EINVAL, "%u ports; a switch has at most %u", c->ports_count,
			       BL_SW_PORTS_MAX);
	for (k = 0; k < c->ports_count; k++) {
		const struct bl_port_cfg *p = &c->ports[k];

		for (j = 0; j < k; j++)
			if (!strcmp(c->ports[j].ifname, p->ifname))
				return bl_fail(err, EINVAL, "port %s is listed twice", p->ifname);
		if (p->home_cpu >= 0 && !is_datapath_cpu(c, p->home_cpu))
			return bl_fail(err, EINVAL,
				       "port %s: home_cpu %d is no datapath CPU; add it to cpus or "
				       "choose one of them",
				       p->ifname, p->home_cpu);
	}
	for (k = 0; k < c->ports_count; k++)
		for (j = 0; j < k; j++)
			if (shared_address(&c->ports[j], &c->ports[k], text))
				return bl_fail(err, EINVAL,
					       "%s is an address of %s and of %s; an address has "
					       "one port",
					       text, c->ports[j].ifname, c->ports[k].ifname);
	if (c->fdb_count && c->forward != BL_FWD_L2)
		return bl_fail(err, EINVAL, "fdb is used with \"forward: l2\" (--l2) only");
	for (k = 0; k < c->fdb_count; k++) {
		if (!bl_cfg_port(c, c->fdb[k].ifname))
			return bl_fail(err, EINVAL,
				       "fdb entry %u names %s, which is no port of "
				       "this switch",
				       k + 1, c->fdb[k].ifname);
	}
	return 0;
}

static int check_cpus(const struct bl_node_cfg *c, struct bl_err *err)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	unsigned int k, j;

	for (k = 0; k < c->ncpus; k++) {
		if (c->cpus[k] >= n)
			return bl_fail(err, EINVAL,
				       "CPU %d does not exist; this machine has CPUs 0 to %ld",
				       c->cpus[k], n - 1);
		for (j = 0; j < k; j++)
			if (c->cpus[j] == c->cpus[k])
				return bl_fail(err, EINVAL, "CPU %d is listed twice under cpus",
					       c->cpus[k]);
	}
	return 0;
}

/* With the file of Fastpass, if there is one. */
static int check_admission(struct bl_node_cfg *c, struct bl_err *err)
{
	struct bl_admission_cfg *a = &c->admission;
	struct bl_fp_file file = {};
	int rc = 0;

	if (a->on && c->role == BL_ROLE_HOST && *a->fp_path && !a->fp) {
		rc = bl_fp_load(&file, a->fp_path, err);
		if (rc)
			return rc;
		a->fp = &file;
	}
	rc = bl_admission_check(c, err);
	if (a->fp == &file)
		bl_fp_free(&file);
	return rc;
}

int bl_config_check(const struct bl_node_cfg *c, struct bl_err *err)
{
	struct bl_node_cfg whole = *c;
	int rc = check_complete(c, err);

	if (!rc)
		rc = check_roles(c, err);
	if (!rc)
		rc = check_cpus(c, err);
	if (!rc)
		rc = check_ports(c, err);
	if (!rc)
		rc = bl_ctl_peers_check(&c->ctl, err);
	if (!rc && *c->chain)
		rc = bl_chain_check(c->chain, err);
	bl_clock_default_source(&whole);
	bl_node_defaults(&whole);
	if (!rc)
		rc = bl_node_cfg_check(&whole, err);
	if (!rc)
		rc = bl_node_xdp_check(c, err);
	return rc ? rc : check_admission(&whole, err);
}

static int check_file(const char *what, const char *path, struct bl_err *err)
{
	return !*path || !access(path, F_OK) || errno == EACCES
		       ? 0
		       : bl_fail(err, errno, "%s: %s: %s", what, path, strerror(errno));
}

int bl_config_check_files(const struct bl_node_cfg *c, struct bl_err *err)
{
	static const unsigned int files[] = { BL_S_TLS_CA, BL_S_TLS_CERT, BL_S_TLS_KEY,
					      BL_S_AUTH_KEYS };
	char path[48], value[256];
	unsigned int k;
	int rc = 0;

	for (k = 0; k < sizeof(files) / sizeof(files[0]) && !rc; k++) {
		const struct bl_setting *s = bl_setting(files[k]);

		rc = check_file(bl_setting_path(s, path, sizeof(path)),
				bl_setting_value(s, c, value, sizeof(value)), err);
	}
	return rc;
}
