/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counters of a lab's switches and hosts while a workload runs: queue lengths at one time, and
 * histograms, drops and lateness from the beginning to the end.
 *
 * Data queues are those of the classes "data" and "unscheduled", which carry the frames of
 * applications, on the ports of hosts that receive. Beacons use the same queues on all ports, so
 * that the queues of other ports, which are almost always empty, would dominate the histograms.
 */
#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "bench/counter_span.h"
#include "bench/traffic/traffic.h"
#include "cli/util/out.h"
#include "cli/util/read_admission.h"

static const unsigned int data_classes[] = { BL_CL_DATA, BL_CL_UNSCHED };
#define DATA_CLASSES (sizeof(data_classes) / sizeof(data_classes[0]))

/** struct sampled_switch - The maps of one switch. */
struct sampled_switch {
	int queues, hists; /* descriptors */
	uint32_t ports;    /* highest sampled port + 1 */
	uint64_t sampled;  /* bit per port */
};

struct traffic_sampler {
	struct counter_span span;
	unsigned int nswitches;
	struct sampled_switch sw[LAB_TORS_MAX];
	struct bl_hist found, sojourn; /* at the beginning */
};

/* returns whether @port leads to a receiver; in a lab it has the name of the host */
static bool is_receiver(int names, uint32_t port, uint64_t receivers)
{
	struct bl_sw_port p;
	unsigned int host;

	if (bpf_map_lookup_elem(names, &port, &p))
		return false;
	p.name[sizeof(p.name) - 1] = '\0';
	return sscanf(p.name, "h%u", &host) == 1 && host >= 1 && host <= LAB_HOSTS_MAX &&
	       receivers >> (host - 1) & 1;
}

static int open_switch(const struct bl_node_ref *ref, struct sampled_switch *s, uint64_t receivers)
{
	uint32_t queues, hists, ports, i;
	int meters = adm_map(ref, BL_MAP_METERS, sizeof(struct bl_meter), &ports);
	int names = meters < 0 ? -1
			       : adm_map(ref, BL_MAP_SW_PORTS, sizeof(struct bl_sw_port), NULL);

	s->queues = s->hists = -1;
	if (names < 0) {
		if (meters >= 0)
			close(meters);
		return 1;
	}
	s->queues = adm_map(ref, BL_MAP_QUEUES, sizeof(struct bl_queue), &queues);
	s->hists = s->queues < 0
			   ? -1
			   : adm_map(ref, BL_MAP_QUEUE_HIST, sizeof(struct bl_queue_hist), &hists);
	for (i = 0; s->hists >= 0 && i < ports && i < 64; i++) {
		struct bl_meter m;

		if (BL_PORT_QUEUE(i + 1, 0) > queues || BL_PORT_QUEUE(i + 1, 0) > hists ||
		    bpf_map_lookup_elem(meters, &i, &m) || !m.ns_q20 ||
		    !is_receiver(names, i, receivers))
			continue;
		s->sampled |= 1ULL << i;
		s->ports = i + 1;
	}
	close(meters);
	close(names);
	return s->hists < 0;
}

static void read_hists(const struct traffic_sampler *l, struct bl_hist *found,
		       struct bl_hist *sojourn)
{
	unsigned int i, k;
	uint32_t port;

	for (i = 0; i < l->nswitches; i++)
		for (port = 0; port < l->sw[i].ports; port++)
			for (k = 0; k < DATA_CLASSES; k++) {
				uint32_t key = BL_PORT_QUEUE(port, data_classes[k]);
				struct bl_queue_hist h;

				if (!(l->sw[i].sampled >> port & 1) ||
				    bpf_map_lookup_elem(l->sw[i].hists, &key, &h))
					continue;
				hist_add(found, &h.found, NULL);
				hist_add(sojourn, &h.sojourn, NULL);
			}
}

static void sampler_free(struct traffic_sampler *l)
{
	unsigned int i;

	for (i = 0; i < l->nswitches; i++) {
		if (l->sw[i].queues >= 0)
			close(l->sw[i].queues);
		if (l->sw[i].hists >= 0)
			close(l->sw[i].hists);
	}
	counter_span_free(&l->span);
	free(l);
}

struct traffic_sampler *traffic_sampler_new(struct traffic_cell *c, bool admission)
{
	struct traffic_sampler *l = calloc(1, sizeof(*l));
	int i, bad;

	if (!l) {
		cli_fail("out of memory");
		return NULL;
	}
	bad = counter_span_begin(&l->span, admission);
	for (i = 0; i < l->span.nrefs && admission && !bad; i++)
		if (l->span.refs[i].role == BL_ROLE_SWITCH && l->nswitches < LAB_TORS_MAX) {
			struct sampled_switch *s = &l->sw[l->nswitches++];

			bad = open_switch(&l->span.refs[i], s, c->receivers);
			c->metered |= s->sampled != 0;
		}
	if (bad) {
		sampler_free(l);
		return NULL;
	}
	read_hists(l, &l->found, &l->sojourn);
	return l;
}

uint32_t traffic_sampler_sample(struct traffic_sampler *l, struct traffic_cell *c,
				uint64_t since_ns)
{
	uint32_t longest = 0, port;
	unsigned int i, k;
	uint64_t now = bl_mono_ns();

	for (i = 0; i < l->nswitches; i++)
		for (port = 0; port < l->sw[i].ports; port++) {
			uint32_t bytes = 0;

			for (k = 0; k < DATA_CLASSES && l->sw[i].sampled >> port & 1; k++) {
				struct bl_queue q;

				if (!adm_queue(l->sw[i].queues,
					       BL_PORT_QUEUE(port, data_classes[k]), &q))
					bytes += q.bytes;
			}
			if (bytes > longest)
				longest = bytes;
		}
	if (c->metered && c->nsamples < TRAFFIC_SAMPLES_MAX)
		c->sample[c->nsamples++] =
			(struct traffic_sample){ (uint32_t)((now - since_ns) / 1000), longest };
	return longest;
}

void traffic_sampler_end(struct traffic_sampler *l, struct traffic_cell *c)
{
	struct bl_hist found = { 0 }, sojourn = { 0 };

	read_hists(l, &found, &sojourn);
	hist_add(&c->found, &found, &l->found);
	hist_add(&c->sojourn, &sojourn, &l->sojourn);
	counter_span_end(&l->span, &c->switch_counts, &c->host_counts, &c->late);
	sampler_free(l);
}
