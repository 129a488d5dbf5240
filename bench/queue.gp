# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# queue.gp - the longest data queue of the switch over time. Each transport is one panel; each
# policy is one line. The script reads DIR/queue.csv and writes DIR/queue.png:
#
#   gnuplot -e "dir='DIR'; what='incast'; mbit=250; transports='tcp udp';
#               policies='none pl2'" queue.gp
set terminal pngcairo size 1000,360 * words(transports) font "sans,11"
set output dir . "/queue.png"
set datafile separator ","
set grid
set key outside right top
set logscale y 2
set yrange [0.5:*]
set xlabel "time (s)"
set ylabel "full frames in the longest data queue (0.5: or less)"
csv = dir . "/queue.csv"
set multiplot layout words(transports), 1
do for [t in transports] {
	set title sprintf("%s, %s, links of %.0f Mbit/s", what, t eq "tcp" ? "TCP" : "UDP", mbit) \
		noenhanced
	plot for [p in policies] csv skip 1 \
		using (strcol(1) eq p && strcol(2) eq t ? $3 / 1000 : NaN):($4 < 0.5 ? 0.5 : $4) \
		with lines lw 1 title p noenhanced
}
unset multiplot
