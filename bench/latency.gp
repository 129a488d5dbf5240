# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# latency.gp - one-way latency of ordered messages beside plain UDP. The script reads
# DIR/latency.csv and writes DIR/latency.png. The vertical axis counts nines: 1 is p90, 2 is p99, 3
# is p99.9.
#
#   gnuplot -e "dir='DIR'" latency.gp
set terminal pngcairo size 900,560 font "sans,11"
set output dir . "/latency.png"
set datafile separator ","
set key bottom right
set grid
set logscale x
set xlabel "one-way latency (us)"
set ylabel "quantile"
set yrange [0:4]
set ytics ("0" 0, "p50" 0.30103, "p90" 1, "p99" 2, "p99.9" 3, "p99.99" 4)
set title "Ordered messages beside plain UDP on one idle rack"
csv = dir . "/latency.csv"
array mode[6] = ["ordered blocking", "ordered busy-poll", "ordered; others talk; blocking", \
	"ordered; others talk; busy-poll", "plain UDP blocking", "plain UDP busy-poll"]
plot for [i = 1:6] csv skip 1 using (strcol(1) eq mode[i] ? $3 : NaN):(-log10(1 - $2)) \
	with lines lw 2 title mode[i]
