// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs of a switch, compiled natively: see native.h. */
#include "bpf/switch/switch.bpf.c"

void native_switch_maps(void);

/* Makes the maps that a harness fills or reads before a program has used them. */
void native_switch_maps(void)
{
#define MAP(m) NATIVE_KEYED(&m, "&" #m)
	MAP(counts);
	MAP(sw_cfg);
	MAP(sw_ifindex);
	MAP(sw_ports);
	MAP(sw_regs);
	MAP(sw_trees);
	MAP(sw_lanes);
	MAP(sw_orders);
	MAP(sw_lives);
	MAP(sw_lags);
	MAP(sw_sources);
	MAP(sw_owners);
	MAP(sw_quotas);
	MAP(sw_carried);
	MAP(sw_fdb);
	MAP(sw_tx);
	MAP(sw_homing);
	MAP(auth_links);
	MAP(auth_states);
	MAP(link_seen);
	MAP(epoch);
	native_map(&clock, "clock", BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct bl_clock), 1);
#undef MAP
}

void native_set_auth(uint8_t mode)
{
	native_set_const(&bl_auth, mode);
}
