/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plots of result files, drawn by gnuplot.
 */
#ifndef BARLINE_CLI_UTIL_PLOT_H
#define BARLINE_CLI_UTIL_PLOT_H

/**
 * out_plot - Draws a plot of @dir/@data with the gnuplot script @script of barline. A plot that
 * cannot be drawn causes a message on stderr, but no error.
 * @more: further gnuplot definitions, as in "a='b'; c=1"
 */
void out_plot(const char *script, const char *dir, const char *more, const char *data);

#endif
