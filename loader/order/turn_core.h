/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which controller a node tries next. Pure.
 *
 * The controller that is said to lead is tried first. If it does not lead, all controllers are
 * tried in turn before anybody is believed again. A controller that does not reach its store goes
 * on to name the last leader that it knew, and that one may have been dead for long.
 *
 * Example: A led and is dead, B does not reach the store and names A, and C leads. The node tries
 * B, A, B and C. If B were believed each time, the node would try B and A for ever.
 */
#ifndef BARLINE_TURN_CORE_H
#define BARLINE_TURN_CORE_H

/** struct bl_turn - Where a node is in its list of controllers. */
struct bl_turn {
	unsigned int at;     /* the controller that is tried, or has the session */
	unsigned int n;      /* controllers in the list */
	unsigned int before; /* controllers to be tried in turn before a hint is followed */
};

/**
 * bl_turn_next - Goes on to the next controller.
 * @hint: index of the controller that is said to lead; n: none is, or it is not in the list
 * @led: the present one has led, so whom it names is believed
 * Returns whether the hint was followed.
 */
static inline _Bool bl_turn_next(struct bl_turn *t, unsigned int hint, _Bool led)
{
	if (led)
		t->before = 0;
	if (hint < t->n && !t->before) {
		t->at = hint;
		t->before = t->n;
		return 1;
	}
	t->at = (t->at + 1) % t->n;
	t->before -= t->before > 0;
	return 0;
}

#endif
