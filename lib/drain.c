// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * See drain.h. A send either finds that the host is drained, or was made by a call that ended
 * before this library looked: then it is under way when bl_drain_work() looks for it. So an
 * endpoint that has said that it is quiet sends nothing more.
 */
#include <errno.h>

#include "drain.h"
#include "error.h"
#include "rtx.h"
#include "sweep.h"
#include "tx.h"

int bl_drain_refuse(struct bl_endpoint *ep)
{
	return bl_set_error(ep, ESHUTDOWN,
			    "this host is being drained, and sends nothing new; end this "
			    "endpoint with bl_exit(), and begin anew after `barline host undrain`");
}

void bl_drain_work(struct bl_endpoint *ep)
{
	uint64_t token = __atomic_load_n(&ep->page->drained, __ATOMIC_ACQUIRE);
	struct bl_inflight *mine = ep->line;
	const struct bl_peer *p;

	if (!token || mine->quiet == token)
		return;
	/* what BL_MORE has held back; nothing comes that could join it */
	bl_tx_flush(ep);
	if (ep->reliable)
		bl_rtx_flush(ep);
	if (ep->nfailed || (ep->reliable && !bl_rtx_empty(ep)))
		return;
	for (p = ep->peers; p; p = p->all_next)
		if (bl_is_sending(p))
			return;
	__atomic_store_n(&mine->quiet, token, __ATOMIC_RELEASE);
}
