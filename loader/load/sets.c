// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Input sets from the roles of ports: which ports' registers a port's barrier is the minimum of.
 *
 * Example: hosts on ports 0 and 1, a spine on port 2. What leaves upwards by port 2 is given the
 * minimum of set 0 = {0, 1}; what leaves by ports 0 and 1 is given the minimum of set 1 = {0, 1,
 * 2}. So in_sets is 0b11 for the hosts and 0b10 for the spine; out_set is 1 for the hosts and 0 for
 * the spine. Without an up-link both sets are the same, and there is one.
 *
 * Pure: no map, no interface.
 */
#include "loader/load/sets.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

int bl_sets_derive(const uint8_t *roles, unsigned int n, struct bl_sets *s, struct bl_err *err)
{
	unsigned int p, ups = 0, below = 0, to_below;

	if (n > BL_SW_PORTS_MAX)
		return bl_fail(err, E2BIG, "%u ports; a switch has at most %u", n, BL_SW_PORTS_MAX);
	memset(s, 0, sizeof(*s));
	for (p = 0; p < n; p++) {
		ups += roles[p] == BL_PORT_UP;
		below += roles[p] == BL_PORT_HOST || roles[p] == BL_PORT_DOWN;
	}
	if (ups && !below)
		return bl_fail(err, ELOOP,
			       "all %u ports are up-links: an up-link would have to wait for "
			       "another up-link, a cycle; give the ports that face "
			       "hosts or lower switches the role host or down",
			       ups);
	to_below = ups ? 1 : 0;
	s->nsets = to_below + 1;
	for (p = 0; p < n; p++) {
		if (roles[p] == BL_PORT_UNUSED)
			continue;
		if (roles[p] == BL_PORT_UP) {
			s->in_sets[p] = (uint8_t)(1u << to_below);
			s->out_set[p] = 0;
		} else {
			s->in_sets[p] = (uint8_t)(1u | 1u << to_below);
			s->out_set[p] = (uint8_t)to_below;
		}
	}
	return bl_sets_check(roles, n, s, err);
}

/*
 * In a Clos network a barrier goes up, turns once, and comes down. An up-link that is an input of
 * an up-link turns it at the bottom; then two switches wait for each other for ever.
 */
int bl_sets_check(const uint8_t *roles, unsigned int n, const struct bl_sets *s, struct bl_err *err)
{
	unsigned int o, i;

	for (o = 0; o < n; o++)
		for (i = 0; i < n; i++)
			if (roles[o] == BL_PORT_UP && roles[i] == BL_PORT_UP &&
			    s->in_sets[i] & 1u << s->out_set[o])
				return bl_fail(err, ELOOP,
					       "port %u (up) would wait for port %u (up): a cycle; "
					       "check the roles",
					       o, i);
	return 0;
}
