// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* bl_send(), bl_send_reliable() and bl_flush(): from the application's messages into the stages. */
#include <errno.h>

#include "ask.h"
#include "dst_core.h"
#include "drain.h"
#include "error.h"
#include "figures.h"
#include "frame.h"
#include "lock.h"
#include "open.h"
#include "peer.h"
#include "rstage.h"
#include "rtx.h"
#include "send_fail.h"
#include "stage.h"
#include "tx.h"

/* Refuse a destination that can never be an endpoint of the rack. Returns -EINVAL. */
static int refuse_destination(struct bl_endpoint *ep, size_t i, const struct bl_addr *dst,
			      enum bl_dst_fault fault)
{
	static const char *const why[] = {
		[BL_DST_NOBODY] = "an address of nobody",
		[BL_DST_MULTICAST] = "a multicast or broadcast address; a scattering names each "
				     "receiver",
		[BL_DST_LOOPBACK] = "a loopback address; ordered messages go to addresses of NICs",
		[BL_DST_FAMILY] = "of another address family than this endpoint (struct "
				  "bl_options.family)",
	};
	char text[64];

	if (fault == BL_DST_PORT && dst->port)
		return bl_set_error(ep, EINVAL,
				    "message %zu: port %u is outside of the ports of endpoints, %u "
				    "to %u",
				    i, dst->port, ep->port_base,
				    ep->port_base + ep->port_count - 1);
	if (fault == BL_DST_PORT)
		return bl_set_error(ep, EINVAL, "message %zu has no destination port", i);
	return bl_set_error(ep, EINVAL, "message %zu: %s is %s", i,
			    bl_addr_format(dst, text, sizeof(text)), why[fault]);
}

/* Check the arguments of both streams. Returns 0 or -errno. */
static int check_scattering(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n,
			    unsigned int flags)
{
	enum bl_dst_fault fault;
	size_t i;

	if (!n || n > BL_SCATTER_MAX || flags & ~BL_MORE)
		return bl_set_error(ep, EINVAL,
				    "a scattering has 1 to %u messages, and the only flag is "
				    "BL_MORE",
				    BL_SCATTER_MAX);
	for (i = 0; i < n; i++) {
		if (vec[i].len > BL_MESSAGE_MAX)
			return bl_set_error(ep, EMSGSIZE,
					    "message %zu has %u bytes; the limit is %u", i,
					    vec[i].len, BL_MESSAGE_MAX);
		if (vec[i].len && !vec[i].data)
			return bl_set_error(ep, EINVAL, "message %zu has no data", i);
		fault = bl_dst_judge(vec[i].dst.ip, vec[i].dst.port, ep->self.ip, ep->port_base,
				     ep->port_count);
		if (fault)
			return refuse_destination(ep, i, &vec[i].dst, fault);
	}
	return 0;
}

static int send_best_effort(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n,
			    unsigned int flags)
{
	int rc = check_scattering(ep, vec, n, flags);
	uint64_t mono;
	bool first;

	if (rc)
		return rc;
	if (bl_is_out(ep))
		return bl_outcast(ep);
	if (bl_is_drained(ep))
		return bl_drain_refuse(ep);
	mono = bl_mono();
	if (!bl_clock_usable(ep->clock, mono))
		return bl_tx_hold_void(ep);
	rc = bl_ask_refuses(ep, vec, n);
	if (rc)
		return rc;
	first = !ep->dirty;
	rc = bl_stage_scattering(ep, vec, n);
	if (rc == -EAGAIN) {
		rc = bl_tx_flush(ep);
		if (rc)
			return rc;
		first = !ep->dirty;
		rc = bl_stage_scattering(ep, vec, n);
	}
	if (rc == -EAGAIN && !ep->held) /* nothing waits in front of it, so waiting does not help */
		return bl_set_error(ep, EMSGSIZE,
				    "a scattering has at most %u frames of %u bytes for one "
				    "destination, and %u bytes in large messages; split it",
				    BL_STAGE_FRAMES, ep->frame_max, ep->send_buffer);
	if (rc == -EAGAIN) {
		ep->st.again++;
		return bl_set_error(ep, EAGAIN,
				    "the send buffer is full; wait with bl_wait(BL_WAIT_SEND)");
	}
	if (rc)
		return bl_set_error(ep, -rc, "out of memory");
	if (first)
		bl_fig_staged(ep, false, mono);
	bl_fig_call(ep);
	ep->st.scatterings++;
	ep->st.messages_sent += n;
	if (!(flags & BL_MORE)) {
		/*
		 * The scattering is accepted whatever the flush returns. If the clock has become
		 * void, it leaves when the clock is valid again.
		 */
		bl_tx_flush(ep);
	}
	return 0;
}

int bl_send(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n, unsigned int flags)
{
	int rc;

	bl_enter(ep);
	rc = send_best_effort(ep, vec, n, flags);
	bl_leave(ep);
	return rc;
}

/*
 * Fail a scattering to a destination that is known not to answer, before it could delay, or take
 * down, what waits together with it. Returns whether it has failed.
 */
static bool fail_if_dead(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n)
{
	bool dead = false;
	size_t i;

	if (!ep->rdead)
		return false;
	for (i = 0; i < n && !dead; i++) {
		struct bl_peer *p = bl_peer_find(ep, vec[i].dst.ip, vec[i].dst.port);

		dead = p && bl_open_is_dead(ep, p);
	}
	for (i = 0; i < n && dead; i++) {
		struct bl_peer *p = bl_peer_get(ep, vec[i].dst.ip, vec[i].dst.port);

		if (p)
			bl_tx_fail(ep, p, 0, vec[i].cookie, BL_NAK_UNREACHABLE);
	}
	return dead;
}

static int send_reliable(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n,
			 unsigned int flags)
{
	int rc = check_scattering(ep, vec, n, flags);
	uint64_t mono;
	bool first;

	if (rc)
		return rc;
	if (bl_is_out(ep) || ep->outcast)
		return bl_outcast(ep);
	if (bl_is_drained(ep))
		return bl_drain_refuse(ep);
	mono = bl_mono();
	if (!bl_clock_usable(ep->clock, mono))
		return bl_tx_clock_void(ep);
	ep->reliable = true;
	rc = bl_ask_refuses(ep, vec, n);
	if (rc)
		return rc;
	if (fail_if_dead(ep, vec, n)) {
		ep->st.scatterings++;
		ep->st.messages_sent += n;
		return flags & BL_MORE ? 0 : bl_rtx_flush(ep);
	}
	first = !ep->rdirty;
	rc = bl_rstage_scattering(ep, vec, n);
	if (rc == -EAGAIN) {
		rc = bl_rtx_flush(ep);
		if (rc)
			return rc;
		first = !ep->rdirty;
		rc = bl_rstage_scattering(ep, vec, n);
	}
	if (rc == -EAGAIN && !ep->rheld)
		return bl_set_error(ep, EMSGSIZE,
				    "a scattering has at most %u frames of %u bytes for one "
				    "destination, besides large messages; split it",
				    BL_STAGE_FRAMES, ep->frame_max);
	if (rc == -EAGAIN) {
		ep->st.again++;
		return bl_set_error(ep, EAGAIN,
				    "the send buffer is full; wait with "
				    "bl_wait(BL_WAIT_SEND_RELIABLE)");
	}
	if (rc)
		return bl_set_error(ep, -rc, "out of memory");
	if (first)
		bl_fig_staged(ep, true, mono);
	bl_fig_call(ep);
	ep->st.scatterings++;
	ep->st.messages_sent += n;
	if (!(flags & BL_MORE))
		bl_rtx_flush(ep); /* the scattering is accepted whatever this returns */
	return 0;
}

int bl_send_reliable(struct bl_endpoint *ep, const struct bl_msg *vec, size_t n, unsigned int flags)
{
	int rc;

	bl_enter(ep);
	rc = send_reliable(ep, vec, n, flags);
	bl_leave(ep);
	return rc;
}

int bl_flush(struct bl_endpoint *ep)
{
	int rc, rel;

	bl_enter(ep);
	if (bl_is_out(ep)) {
		rc = bl_outcast(ep);
	} else {
		rc = bl_tx_flush(ep);
		rel = bl_rtx_flush(ep);
		rc = rc ? rc : rel;
	}
	bl_leave(ep);
	return rc;
}
