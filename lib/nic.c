// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The account of a NIC's ring that several endpoints of a host share (nic_core.h has the
 * arithmetic). It is in the page of hints (struct bl_hints), which all of them can write. Each line
 * is written by its endpoint, and by the daemon when the endpoint is gone:
 *
 *	offered		frames put into the ring, or about to be
 *	queued		frames put into the ring; less than offered while a scattering leaves
 *	out		frames of the whole host that have left it, as far as this endpoint knows
 *
 * These words only grow, and outlive the process: the next endpoint in the slot continues them. At
 * most the sum of offered less the greatest out is in the ring. An endpoint looks at its
 * socket only when its frames do not fit according to the account.
 *
 * A socket does not tell a frame that has left the ring from one that was dropped because the ring
 * was full. If one was dropped, the account would take everything before it for gone, and the
 * frames that then follow would be lost, too. So no frame goes into a ring that may be full: not
 * only data asks for room, but also each control frame and each retransmission.
 *
 * Two endpoints that ask at the same time see each other; both may withdraw and try again. The
 * request of a process that stops while it sends, or that writes nonsense, costs the others
 * BL_NIC_TRUST_NS; that of a dead process ends when the daemon releases its slot.
 *
 * It can happen that no endpoint has a frame in the ring that could tell that the ring is empty:
 * the others sleep, and the account still has their frames. In that case a PROBE, or a single frame
 * of those that can leave one by one, is the witness.
 */
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "nic.h"

static uint32_t line_count(const struct bl_endpoint *ep)
{
	uint32_t n = __atomic_load_n(&ep->page->eps_lines, __ATOMIC_RELAXED);

	return n < BL_EPS_MAX ? n : BL_EPS_MAX;
}

/*
 * Frames that endpoint @k has offered. *@queued is read last: what is in the ring is in both words.
 */
static uint64_t frames_offered(const struct bl_endpoint *ep, uint32_t k, uint64_t *queued)
{
	uint64_t all = __atomic_load_n(&ep->hints->nic[k].offered, __ATOMIC_ACQUIRE);

	*queued = __atomic_load_n(&ep->hints->nic[k].queued, __ATOMIC_ACQUIRE);
	return all > *queued ? all : *queued;
}

/* Frames of the host that have left the ring, as far as any endpoint knows. */
static uint64_t frames_out(const struct bl_endpoint *ep)
{
	uint32_t n = line_count(ep), k;
	uint64_t out = 0;

	for (k = 0; k < n; k++)
		out = bl_max64(out, __atomic_load_n(&ep->hints->nic[k].out, __ATOMIC_ACQUIRE));
	return out;
}

/*
 * Frames in the ring, at most; ours as far as they are queued. What has left is read first:
 * otherwise frames that were put in meanwhile would count as gone.
 */
static uint64_t frames_in_ring(struct bl_endpoint *ep)
{
	uint64_t out = frames_out(ep), in = 0, others = 0, queued;
	uint32_t n = line_count(ep), k;

	for (k = 0; k < n; k++) {
		if (k == ep->slot)
			continue;
		in += frames_offered(ep, k, &queued);
		others += queued;
	}
	ep->nic.others = others;
	ep->nic.then = ep->nic.queued;
	return bl_nic_used(in + ep->nic.queued, out);
}

/*
 * Read from the socket which of our frames have left the ring. Returns whether that says anything
 * new.
 */
static bool read_own_marks(struct bl_endpoint *ep)
{
	uint64_t all;
	int bytes;

	if (!ep->nic.marks.n || ioctl(ep->sock, SIOCOUTQ, &bytes))
		return false;
	all = bl_nic_passed(&ep->nic.marks, ep->nic.queued, (uint32_t)bytes / BL_FRAME_CHARGE);
	if (all <= ep->nic.out)
		return false;
	ep->nic.out = all;
	__atomic_store_n(&ep->hints->nic[ep->slot].out, all, __ATOMIC_RELEASE);
	return true;
}

static void store_queued(struct bl_endpoint *ep, uint64_t queued)
{
	ep->nic.queued = queued;
	__atomic_store_n(&ep->hints->nic[ep->slot].offered, queued, __ATOMIC_RELAXED);
	__atomic_store_n(&ep->hints->nic[ep->slot].queued, queued, __ATOMIC_RELEASE);
}

/*
 * Whether others use the ring, so that the account has to be kept. It starts with what we may have
 * in the ring already.
 */
static bool is_ring_shared(struct bl_endpoint *ep)
{
	uint64_t was;

	if (bl_nic_alone(ep)) {
		ep->nic.on = false;
		return false;
	}
	if (!ep->nic.on) {
		ep->nic.on = true;
		ep->nic.marks.n = 0;
		was = bl_max64(ep->hints->nic[ep->slot].offered, ep->hints->nic[ep->slot].queued);
		ep->nic.out = ep->hints->nic[ep->slot].out;
		store_queued(ep, was + ep->flying);
		ep->nic.then = ep->nic.queued;
	}
	return true;
}

/*
 * The account has no room. Returns whether to wait: not for ever, since any process of this host
 * may have stopped or written nonsense. While a frame of ours is in the ring, the ring stands, and
 * the account may well be right: the CPU of the NIC may be busy, or the link down, for longer than
 * any process is trusted. So the time begins when no frame of ours is left in it.
 */
static bool believes_account(struct bl_endpoint *ep, enum bl_nic_kind kind)
{
	struct bl_nic_wait *w = &ep->nic.wait[kind];
	uint64_t mono = bl_mono();

	if (mono < ep->nic.distrust_ns)
		return false;
	if (frames_in_ring(ep) > BL_NIC_NONSENSE) {
		ep->nic.distrust_ns = mono + BL_NIC_DISTRUST_NS;
		return false;
	}
	if (!w->since_ns || bl_nic_unsent(ep))
		*w = (struct bl_nic_wait){ .since_ns = mono,
					   .asked_ns = mono,
					   .out = frames_out(ep) };
	if (mono - w->asked_ns >= BL_NIC_WAIT_NS) {
		w->asked_ns = mono;
		w->asks++;
	}
	if (mono - w->since_ns < BL_NIC_TRUST_NS ||
	    (frames_out(ep) != w->out && w->asks < BL_NIC_TRUST_ASKS))
		return true;
	w->since_ns = 0;
	ep->nic.distrust_ns = mono + BL_NIC_DISTRUST_NS;
	return false;
}

static bool fits_ring(struct bl_endpoint *ep, uint32_t need)
{
	if (bl_nic_fits(frames_in_ring(ep), need, BL_NIC_SHARED))
		return true;
	return read_own_marks(ep) && bl_nic_fits(frames_in_ring(ep), need, BL_NIC_SHARED);
}

/* Whether @need more frames might not fit, if nobody else's frames are in the ring. */
static bool is_own_ring_full(const struct bl_endpoint *ep, uint32_t need)
{
	uint32_t frames;
	int bytes;

	if (ep->flying + need <= BL_NIC_FRAMES)
		return false;
	if (ioctl(ep->sock, SIOCOUTQ, &bytes))
		return false;
	frames = (uint32_t)bytes / BL_FRAME_CHARGE;
	return frames && frames + need > BL_NIC_FRAMES;
}

bool bl_nic_full(struct bl_endpoint *ep, uint32_t need)
{
	if (!is_ring_shared(ep))
		return is_own_ring_full(ep, need);
	return need && !fits_ring(ep, need) &&
	       (believes_account(ep, BL_NIC_SCATTERING) || is_own_ring_full(ep, need));
}

bool bl_nic_waits(struct bl_endpoint *ep, uint32_t need)
{
	if (!is_ring_shared(ep) || !need)
		return false;
	if (!fits_ring(ep, need))
		return believes_account(ep, BL_NIC_RELIABLE);
	ep->nic.wait[BL_NIC_RELIABLE].since_ns = 0;
	return false;
}

bool bl_nic_take(struct bl_endpoint *ep, uint32_t need)
{
	uint64_t all = ep->nic.queued + need;

	if (!ep->nic.on || !need)
		return true;
	__atomic_store_n(&ep->hints->nic[ep->slot].offered, all, __ATOMIC_SEQ_CST);
	/*
	 * Pairs with itself in another endpoint: of two endpoints that ask at once, at least one
	 * sees the other.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (bl_nic_fits(frames_in_ring(ep), need, BL_NIC_SHARED) ||
	    !believes_account(ep, BL_NIC_SCATTERING)) {
		/* Ours alone; others see the frames as queued after bl_nic_sent(). */
		ep->nic.wait[BL_NIC_SCATTERING].since_ns = 0;
		ep->nic.queued = all;
		return true;
	}
	store_queued(ep, ep->nic.queued);
	return false;
}

void bl_nic_sent(struct bl_endpoint *ep)
{
	bl_nic_witness(ep);
}

uint32_t bl_nic_room(struct bl_endpoint *ep, uint32_t want, uint32_t most)
{
	enum bl_nic_kind kind = most > BL_NIC_SHARED ? BL_NIC_CONTROL : BL_NIC_SINGLE;
	uint64_t n;

	if (!is_ring_shared(ep))
		return want;
	n = frames_in_ring(ep);
	if (n + want > most && read_own_marks(ep))
		n = frames_in_ring(ep);
	if (n < most) {
		ep->nic.wait[kind].since_ns = 0;
		return most - n < want ? (uint32_t)(most - n) : want;
	}
	if (!believes_account(ep, kind))
		return want;
	return !ep->nic.marks.n;
}

void bl_nic_count(struct bl_endpoint *ep, uint32_t n)
{
	if (!ep->nic.on)
		return;
	ep->nic.queued += n;
	__atomic_store_n(&ep->hints->nic[ep->slot].offered, ep->nic.queued, __ATOMIC_RELEASE);
}

void bl_nic_witness(struct bl_endpoint *ep)
{
	if (!ep->nic.on)
		return;
	store_queued(ep, ep->nic.queued);
	/*
	 * Only a frame that was put in after the others' counts were read is behind their frames.
	 */
	if (ep->nic.queued != ep->nic.then)
		bl_nic_mark(&ep->nic.marks, ep->nic.queued, ep->nic.others + ep->nic.queued);
	ep->nic.then = ep->nic.queued;
}

bool bl_nic_needs_witness(struct bl_endpoint *ep)
{
	return ep->nic.on && !ep->nic.marks.n &&
	       bl_nic_witness_due(&ep->nic.calls, frames_out(ep), bl_mono());
}

void bl_nic_sender(struct bl_endpoint *ep, int n)
{
	ep->nic.senders += (uint64_t)(int64_t)n;
}

/* The other endpoints of this host are assumed to have as many senders as this one. */
uint32_t bl_nic_window(const struct bl_endpoint *ep, uint32_t w)
{
	uint32_t active = __atomic_load_n(&ep->page->eps_active, __ATOMIC_RELAXED), share;

	if (bl_nic_alone(ep) || ep->ring_bytes > BL_RING_BYTES)
		return w;
	share = bl_nic_share(BL_NIC_FRAMES, ep->nic.senders * active);
	share = share < BL_WINDOW_FIRST ? BL_WINDOW_FIRST : share;
	return w < share ? w : share;
}

bool bl_nic_unsent(const struct bl_endpoint *ep)
{
	int bytes;

	return !ioctl(ep->sock, SIOCOUTQ, &bytes) && bytes > 0;
}
