/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a controller does when it is elected, and when it loses the lead. */
#ifndef BARLINE_CONTROLLER_LEAD_H
#define BARLINE_CONTROLLER_LEAD_H

#include "controller/ctl_priv.h"

/**
 * ctl_lead_campaign - Begins the campaign in the store, with the callbacks of this file. When this
 * controller is elected, it loads the store and starts the failure procedure; when it loses the
 * lead, it forgets the procedure's state and ends all sessions.
 *
 * Returns 0 or -errno with a text in @err.
 */
int ctl_lead_campaign(struct bl_ctl *c, struct bl_err *err);

#endif
