/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a switch's registers say to its agent: which inputs went silent, with their last commit, and which are heard again. Pure: registers in, events out; whoever calls reads the map "sw_regs".
 *
 * An input is silent when one of its lanes is DEAD: that lane's C stands still, and with it the minimum over the input's lanes, which is all that the switch ever passed on of this input. So that minimum is its last
 * commit. Lanes that are not heard yet (ABSENT, JOINING) are in nobody's minimum.
 *
 * Example: port 3 with two lanes, LIVE with C 900 and LIVE with 950; then DEAD with 900 and LIVE with 970: silent, C = 900, whatever the other lane does. It stays silent until RESUME (bl_agent_watch_resumed()), even if it is
 * heard again meanwhile: its C was reported, and must not rise. After that it is live again as soon as all its lanes are LIVE.
 */
#ifndef BARLINE_AGENT_WATCH_H
#define BARLINE_AGENT_WATCH_H

#include "../maps/switch_abi.h"
#include "agent.h"

/** struct bl_agent_watch - @state: enum bl_agent_port_state, by port. @c: SILENT: what was reported. Zeroed by bl_agent_watch_init(). */
struct bl_agent_watch {
	uint8_t state[BL_SW_PORTS_MAX];
	uint64_t c[BL_SW_PORTS_MAX];
};

enum bl_agent_seen { BL_AGENT_SEEN_NOTHING, BL_AGENT_SEEN_SILENT, BL_AGENT_SEEN_LIVE };

/** bl_agent_watch_init - nothing was heard: all inputs are in nobody's minimum. */
void bl_agent_watch_init(struct bl_agent_watch *w);
/** bl_agent_watch_look - @port's registers are @r now. SILENT: went silent, @w->c[@port] is its last commit (48 bits; BL_AGENT_NO_C: none ever came). LIVE: is in C's minimum from now on. @barred: it may not be. */
enum bl_agent_seen bl_agent_watch_look(struct bl_agent_watch *w, unsigned int port, const struct bl_port_regs *r, bool barred);
/** bl_agent_watch_freeze - stands still from now on, by order; returns its last commit. */
uint64_t bl_agent_watch_freeze(struct bl_agent_watch *w, unsigned int port, const struct bl_port_regs *r);
/** bl_agent_watch_resumed - is in nobody's minimum any more. */
void bl_agent_watch_resumed(struct bl_agent_watch *w, unsigned int port);

#endif
