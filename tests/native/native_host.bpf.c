// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The programs of a host, compiled natively: see native.h. */
#include "bpf/host/host.bpf.c"

void native_host_maps(void);

/* Makes the maps that a harness fills or reads before a program has used them. */
void native_host_maps(void)
{
#define MAP(m) NATIVE_KEYED(&m, "&" #m)
	MAP(counts);
	MAP(host_cfg);
	MAP(host_orders);
	MAP(host_page);
	MAP(ep_pages);
	MAP(hints);
	MAP(eps);
	MAP(rings);
	MAP(failures);
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
