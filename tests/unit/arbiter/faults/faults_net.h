/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Networks for the tests of fault isolation (test_faults.c, test_faults_service.c): racks of hosts
 * and paths between them, drawn at random.
 */
#ifndef BARLINE_TEST_FAULTS_NET_H
#define BARLINE_TEST_FAULTS_NET_H

#include "tests/unit/unit.h"

#include "arbiter/faults/faults.h"

#define SECRET0 0x1122334455667788ULL
#define SECRET1 0x99aabbccddeeff00ULL
#define TABLE   77
#define MS      1000000ULL

static struct bl_fcp_params params = { .secret = { SECRET0, SECRET1 } };

#define RACKS_MAX 8
#define HOSTS_MAX 32

struct topo {
	struct bl_iso_net net;
	uint16_t rack_of[HOSTS_MAX];
	uint32_t parts;
};

static void topo_random(struct topo *t, struct rnd *r, uint32_t racks_min)
{
	uint32_t i, each = 2 + rnd_below(r, 2);

	*t = (struct topo){ 0 }; /* two tiers: no pods */
	t->net.racks = racks_min + rnd_below(r, 3);
	t->net.paths = 1 + rnd_below(r, 4);
	t->net.endpoints = t->net.racks * each;
	for (i = 0; i < t->net.endpoints; i++)
		t->rack_of[i] = (uint16_t)(i % t->net.racks);
	t->net.rack_of = t->rack_of;
	t->parts = bl_iso_components(&t->net);
}

#endif
