/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots for what each flow is due (alloc_due.c), where every port has one packet a slot.
 *
 * A window is an edge colouring: ports are vertices, packets edges, slots colours. By Koenig's
 * theorem all that is due fits, since no port is due more packets than it has slots. The greedy
 * choice alone places 90 to 95 % of it where all ports are full: at the end the slots that are free
 * at one end of a pair are not those that are free at the other. Alternating chains place the rest.
 *
 * A pair s>d lacks a packet; slot a is free at s, slot b at d. In slot a, d receives from s1; s1
 * sends to d1 in slot b, which receives from s2 in slot a, and so on. The chain never comes to s,
 * which is free in slot a, so it ends. All its packets change places: those in slot a move to b,
 * and those in b to a. Now slot a is free at both s and d. Where several slots are free there are
 * many chains; eight are followed at once, and the first that ends is taken.
 *
 * Example: slots a and b. 0>5 has a, 0 is free in b, 2>6 has b, 6 is free in a: 0>6 has no slot in
 * common. The chain from 6: in b it receives from 2, which sends nothing in a. 2>6 moves to a, and
 * 0>6 gets b.
 */
#include <string.h>

#include "arbiter/alloc/alloc_priv.h"

#define CHAINS    8u
#define STEPS_MAX 128u

/*
 * Writes up to @max slots to @slot in which the port is free and the window is open. Returns how
 * many.
 */
static uint32_t free_slots(const struct bl_alloc *a, uint32_t port, uint16_t *slot, uint32_t max)
{
	uint32_t j, n = 0;

	for (j = 0; j < a->words; j++) {
		uint64_t m = a->free[(size_t)port * a->words + j] & a->open[j];

		for (; m && n < max; m &= m - 1)
			slot[n++] = (uint16_t)(j * BL_WORD_SLOTS + (uint32_t)__builtin_ctzll(m));
	}
	return n;
}

static void toggle_port(struct bl_alloc *a, uint32_t port, uint32_t slot)
{
	a->free[(size_t)port * a->words + slot / BL_WORD_SLOTS] ^= 1ULL << slot % BL_WORD_SLOTS;
}

static void toggle_flow(struct bl_alloc *a, size_t i, uint32_t slot)
{
	a->takes[i * a->words + slot / BL_WORD_SLOTS] ^= 1ULL << slot % BL_WORD_SLOTS;
}

static void give_slot(struct bl_alloc *a, uint32_t i, uint32_t slot)
{
	const uint32_t s = a->list[i].src, d = a->n + a->list[i].dst;

	toggle_port(a, s, slot);
	toggle_port(a, d, slot);
	toggle_flow(a, i, slot);
	a->chain.peer[(size_t)s * a->chain.row + slot] = (uint16_t)(d + 1);
	a->chain.peer[(size_t)d * a->chain.row + slot] = (uint16_t)(s + 1);
}

/*
 * Swaps the slots of the packets of a chain that begins at port @v: its packets are in slots @from
 * and @to in turn, the first one in @from.
 */
static void swap_chain(struct bl_alloc *a, uint32_t v, uint32_t from, uint32_t to)
{
	uint32_t c = from, next, i;
	uint16_t *row, keep;

	toggle_port(a, v, from);
	toggle_port(a, v, to);
	for (;; v = next, c = c == from ? to : from) {
		row = &a->chain.peer[(size_t)v * a->chain.row];
		next = row[c];
		keep = row[from];
		row[from] = row[to];
		row[to] = keep;
		if (!next)
			break;
		next--;
		/* ports below n are senders */
		i = v < a->n ? a->chain.where[(size_t)v * a->n + next - a->n]
			     : a->chain.where[(size_t)next * a->n + v - a->n];
		toggle_flow(a, i, from);
		toggle_flow(a, i, to);
	}
	toggle_port(a, v, from);
	toggle_port(a, v, to);
}

/*
 * Gives flow @i one packet more. Returns false if one of its ports has no free slot, or no chain
 * ended within the limit of steps.
 */
static bool give_one_more(struct bl_alloc *a, uint32_t i)
{
	const uint32_t s = a->list[i].src, d = a->n + a->list[i].dst;
	uint16_t at_s[CHAINS], at_d[CHAINS], from[CHAINS], to[CHAINS];
	uint32_t v[CHAINS], ns, nd, k, n, step, j;

	for (j = 0; j < a->words; j++) {
		const uint64_t m = a->free[(size_t)s * a->words + j] &
				   a->free[(size_t)d * a->words + j] & a->open[j];

		if (m) {
			give_slot(a, i, j * BL_WORD_SLOTS + (uint32_t)__builtin_ctzll(m));
			return true;
		}
	}
	ns = free_slots(a, s, at_s, CHAINS);
	nd = free_slots(a, d, at_d, CHAINS);
	if (!ns || !nd)
		return false;
	n = ns * nd < CHAINS ? ns * nd : CHAINS;
	for (k = 0; k < n; k++) {
		from[k] = at_s[k % ns];
		to[k] = at_d[(k + k / ns) % nd];
		v[k] = d;
	}
	for (step = 0; step < STEPS_MAX && a->chain.steps; step++, a->chain.steps--)
		for (k = 0; k < n; k++) {
			const uint32_t slot = step & 1 ? to[k] : from[k];
			const uint32_t next = a->chain.peer[(size_t)v[k] * a->chain.row + slot];

			if (!next) {
				swap_chain(a, d, from[k], to[k]);
				give_slot(a, i, from[k]);
				return true;
			}
			v[k] = next - 1;
		}
	return false;
}

/* Writes down which port sends to which in each slot, and the place of each pair in the list. */
static void lay_out_peers(struct bl_alloc *a)
{
	struct bl_chain *c = &a->chain;
	uint32_t j;
	size_t i;

	memset(c->peer, 0, 2 * (size_t)a->n * c->row * sizeof(*c->peer));
	for (i = 0; i < a->nlist; i++) {
		const uint32_t s = a->list[i].src, d = a->n + a->list[i].dst;
		uint16_t *at_s = &c->peer[(size_t)s * c->row], *at_d = &c->peer[(size_t)d * c->row];

		c->where[(size_t)s * a->n + a->list[i].dst] = (uint32_t)i;
		for (j = 0; j < a->words; j++) {
			uint64_t m = a->takes[i * a->words + j];

			for (; m; m &= m - 1) {
				const uint32_t slot =
					j * BL_WORD_SLOTS + (uint32_t)__builtin_ctzll(m);

				at_s[slot] = (uint16_t)(d + 1);
				at_d[slot] = (uint16_t)(s + 1);
			}
		}
	}
}

/* Returns true if packets of others are moved for this flow, see BL_CHAIN_SHORT. */
static bool moves_others(const struct bl_alloc *a, const struct bl_want *w)
{
	return w->key >> BL_KEY_WINDOWS > 1 || w->mtus > BL_CHAIN_SHORT(a->words * a->span);
}

/*
 * Returns how many MTUs are due, have found no slot, and are worth to move others for; 0 if they
 * are too few, see BL_LACKS_FEW.
 */
static uint64_t lacking_mtus(struct bl_alloc *a)
{
	uint64_t given = 0, lacks = 0;
	uint32_t most = 0;
	size_t i;

	for (i = 0; i < a->nlist; i++) {
		const uint32_t lack =
			moves_others(a, &a->list[i]) ? a->due.aim[i] - (uint32_t)a->parts[i] : 0;

		lacks += lack;
		given += a->parts[i];
		most = lack > most ? lack : most;
	}
	a->chain.steps = BL_CHAIN_STEPS(given);
	return most > BL_LACKS_FEW || lacks > given / BL_LACKS_PART ? lacks : 0;
}

void bl_alloc_chains(struct bl_alloc *a)
{
	size_t i;

	if (!lacking_mtus(a))
		return;
	lay_out_peers(a);
	for (i = 0; i < a->nlist; i++)
		for (; moves_others(a, &a->list[i]) && a->parts[i] < a->due.aim[i]; a->parts[i]++) {
			if (!give_one_more(a, (uint32_t)i))
				break;
			a->st.chains++;
		}
}
