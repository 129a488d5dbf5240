// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What admission's files share: see common.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "loader/admission/common.h"
#include "loader/admission/top_switch.h"

static const char *const class_names[] = {
#define NAME(sym, name) [BL_CL_##sym] = name,
	BL_CLASSES(NAME)
#undef NAME
};

const char *bl_class_name(unsigned int class)
{
	return class < BL_CL_COUNT ? class_names[class] : "?";
}

/* How a switch chooses the path up; @by: enum bl_path_by. */
const char *bl_path_by_name(unsigned int by)
{
	return by == BL_PATH_BY_FLOW ? "symmetric" : by == BL_PATH_BY_TURN ? "spray" : "routes";
}

/* ---- the configuration ---- */

int bl_admission_rate(uint64_t bps, const char *of, struct bl_err *err)
{
	char text[32];

	if (!bps || (bps >= BL_RATE_MIN && bps <= BL_RATE_MAX))
		return 0;
	return bl_fail(err, EINVAL, "a rate of %s for %s; from 2mbit to 1000gbit",
		       bl_rate_text(bps, text, sizeof(text)), of);
}

/* Bits per second; 0: not metered. @c: the configuration with its ports. */
uint64_t bl_admission_port_rate(const struct bl_node_cfg *c, const char *ifname)
{
	unsigned int k;

	for (k = 0; k < c->ports_count && c->admission.on; k++)
		if (!strcmp(c->ports[k].ifname, ifname))
			return c->ports[k].rate_bps ? c->ports[k].rate_bps : c->admission.rate_bps;
	return 0;
}

static bool has_metered_port(const struct bl_node_cfg *c)
{
	unsigned int k;

	for (k = 0; k < c->ports_count; k++)
		if (c->ports[k].rate_bps || c->admission.rate_bps)
			return true;
	return false;
}

/* @c: the configuration with its ports, which n->cfg does not have. */
bool bl_admission_paced(const struct bl_node_cfg *c)
{
	return c->admission.on && (c->role == BL_ROLE_HOST || has_metered_port(c));
}

int bl_admission_cpu(const struct bl_node_cfg *c)
{
	return c->admission.pacer_cpu ? (int)c->admission.pacer_cpu - 1 : c->ncpus ? c->cpus[0] : 0;
}

/* ---- maps ---- */

int bl_value_read(const struct bl_node_ref *ref, const char *map, void *value, uint32_t size,
		  bool write, struct bl_err *err)
{
	int fd = bl_map_open(ref, map, size, write, err), rc;
	uint32_t zero = 0;

	if (fd < 0 || !bpf_map_lookup_elem(fd, &zero, value))
		return fd;
	rc = bl_fail(err, errno, "cannot read the map %s: %s", map, strerror(errno));
	close(fd);
	return rc;
}

/* ---- a change of a running node ---- */

void bl_say(const struct bl_said *s, const char *what, const char *old, const char *now)
{
	size_t at = strlen(s->text);

	snprintf(s->text + at, s->size - at, "%s%s: %s -> %s", at ? ", " : "", what, old, now);
}

void bl_say_number(const struct bl_said *s, const char *what, uint64_t old, uint64_t now,
		   const char *unit)
{
	char a[32], b[32];

	if (old == now)
		return;
	snprintf(a, sizeof(a), "%llu%s", (unsigned long long)old, unit);
	snprintf(b, sizeof(b), "%llu%s", (unsigned long long)now, unit);
	bl_say(s, what, a, b);
}

void bl_say_truth(const struct bl_said *s, const char *what, bool old, bool now)
{
	if (old != now)
		bl_say(s, what, old ? "yes" : "no", now ? "yes" : "no");
}

void bl_say_rate(const struct bl_said *s, const char *what, uint32_t old_q20, uint32_t now_q20)
{
	char a[32], b[32];

	if (old_q20 != now_q20)
		bl_say(s, what, bl_rate_text(bl_rate_of_q20(old_q20), a, sizeof(a)),
		       bl_rate_text(bl_rate_of_q20(now_q20), b, sizeof(b)));
}

int bl_set_number(const struct bl_admission_set *set, enum bl_option_id id, __u32 *to,
		  struct bl_err *err)
{
	const struct bl_option *o = bl_option(id);

	if (!set->given[id])
		return 0;
	if (bl_option_check(o, o->set, set->value[id], err))
		return -EINVAL;
	*to = (__u32)set->value[id];
	return 0;
}

int bl_set_time(const struct bl_admission_set *set, enum bl_option_id id, __u64 *to,
		struct bl_err *err)
{
	__u32 us;
	int rc = bl_set_number(set, id, &us, err);

	if (!rc && set->given[id])
		*to = us * 1000ULL;
	return rc;
}
