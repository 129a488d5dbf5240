/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verdict "all or none" for tests of the reliable stream. lossy.h has hosts that lose frames.
 */
#ifndef BARLINE_TESTS_RELIABLE_H
#define BARLINE_TESTS_RELIABLE_H

#include "tests/net/lossy.h"

T_FN bool has(unsigned int receiver, unsigned int sender, uint64_t seq)
{
	const struct tr_node *n = &tr_sh->node[receiver];
	uint32_t g;

	for (g = 0; g < n->ngot; g++)
		if (n->got[g].sender == sender && n->got[g].seq == seq)
			return true;
	return false;
}

/*
 * Checks that each scattering of @sender arrived at all receivers in @correct, or at none. Returns
 * the number that arrived at none.
 */
T_FN unsigned int all_or_none(unsigned int sender, uint64_t correct)
{
	const struct tr_node *s = &tr_sh->node[sender];
	unsigned int none = 0, r;
	uint32_t q;

	for (q = 0; q < s->nsent; q++) {
		uint64_t to = s->sent[q].to & correct, got = 0;

		for (r = 0; r < tr_sh->count; r++)
			if ((to >> r & 1) && has(r, sender, q))
				got |= 1ULL << r;
		CHECK(!got || got == to,
		      "(%u,%u) was sent to %" PRIx64 " and delivered by %" PRIx64 " only", sender,
		      q, to, got);
		none += to && !got;
	}
	return none;
}

/*
 * Ends a case in which @dead was killed: everything that @correct sent arrived, in one order, and
 * what @dead sent arrived at all of them or at none.
 */
T_FN void judge_without(unsigned int dead, uint64_t correct)
{
	unsigned int none, i;

	tr_stop();
	tr_judge(correct, correct);
	none = all_or_none(dead, correct);
	for (i = 0; i < tr_sh->count; i++)
		if (correct >> i & 1)
			all_or_none(i, correct);
	fprintf(stderr,
		"  of the dead %u scatterings were delivered by nobody, %" PRIu64 " frames "
		"discarded\n",
		none, TR_SUM(discarded));
}

#endif
