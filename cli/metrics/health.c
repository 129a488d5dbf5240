// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* See health.h. */
#include "cli/metrics/health.h"

#include <stdlib.h>

#include "base/text.h"
#include "cli/health/health.h"
#include "cli/show/show.h"

#define ALIVE (1U << CHECK_DAEMON | 1U << CHECK_CLOCK)
/* Those that need nothing but maps and the run directory: the exporter has CAP_BPF alone. */
#define READY (ALIVE | 1U << CHECK_NEIGHBOUR | 1U << CHECK_NODE_ID | 1U << CHECK_CONTROLLER)

bool metrics_health(bool ready, char *text, size_t size)
{
	struct bl_text t = { .buf = text, .size = size };
	struct bl_node_ref *refs = NULL;
	struct health h;
	struct bl_err err;
	int n = bl_nodes_find(&refs, bl_netns_ino(), &err), i;
	bool well = n > 0;
	char line[1024];

	*text = '\0';
	if (n < 0)
		bl_text_add(&t, "%s\n", err.text);
	else if (!n)
		bl_text_add(&t, "no barline node in this network namespace\n");
	for (i = 0; i < n; i++) {
		well &= health_read_some(&refs[i], ready ? READY : ALIVE, &h);
		bl_text_add(&t, "%s\n", health_text(&h, line, sizeof(line)));
	}
	free(refs);
	return well;
}
