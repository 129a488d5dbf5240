// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What others ask of the file that arbiters and hosts share; see fastpass_file.h. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip.h"
#include "core/fastpass/fcp_core.h"
#include "proto/fastpass_file_priv.h"

const char *const bl_fp_path_fields[BL_FIELD_COUNT] = {
#define FIELD(sym, name, text) [BL_FIELD_##sym] = name,
	BL_PATH_FIELDS(FIELD)
#undef FIELD
};

char *bl_fp_addr_text(const uint8_t addr[16], char *buf)
{
	bool v4 = bl_ip_is_v4(addr);

	inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? addr + 12 : addr, buf, INET6_ADDRSTRLEN);
	return buf;
}

bool bl_fp_addr_parse(const char *s, uint8_t addr[16])
{
	memset(addr, 0, 16);
	if (strchr(s, ':'))
		return inet_pton(AF_INET6, s, addr) == 1;
	bl_ip_map_v4(addr);
	return inet_pton(AF_INET, s, addr + 12) == 1;
}

const char *bl_fp_field_name(unsigned int field)
{
	return field < BL_FIELD_COUNT ? bl_fp_path_fields[field] : "?";
}

int bl_fp_find(const struct bl_fp_file *f, const uint8_t addr[16])
{
	unsigned int i;

	for (i = 0; i < f->npeers; i++)
		if (!memcmp(f->peer[i].addr, addr, 16))
			return (int)i;
	return -1;
}

void bl_fp_key(const uint8_t addr[16], struct bl_mac_key *key)
{
	memset(key, 0, sizeof(*key));
	if (bl_ip_is_v4(addr)) {
		memcpy(key->mac + 2, addr + 12, 4);
		key->kind = 4;
		return;
	}
	memcpy(key->upper, addr, sizeof(key->upper));
	memcpy(key->mac, addr + sizeof(key->upper), sizeof(key->mac));
	key->kind = 6;
}

uint32_t bl_fp_table(const struct bl_fp_file *f)
{
	uint8_t *all = malloc(16 * (f->npeers + 1));
	uint32_t table = 0;
	unsigned int i;

	for (i = 0; all && i < f->npeers; i++)
		memcpy(all + 16 * i, f->peer[i].addr, 16);
	if (all)
		table = bl_fcp_table(all, f->npeers);
	free(all);
	return table;
}

void bl_fp_free(struct bl_fp_file *f)
{
	free(f->peer);
	free(f->path_name);
	free(f->pair);
	free(f->pod_of);
	f->peer = NULL;
	f->pair = NULL;
	f->pod_of = NULL;
	f->path_name = NULL;
	f->npeers = f->npath_names = f->npairs = f->npods = 0;
}
