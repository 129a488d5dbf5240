# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# throughput.gp - delivered messages per second by number of hosts, beside Corosync:
#
#   gnuplot -e "csv='throughput.csv'; png='throughput.png'" throughput.gp
set terminal pngcairo size 900,540 font "sans,11"
set output png
set datafile separator ","
set title "All-to-all broadcast of 64-byte messages: delivered messages per second in total"
set xlabel "hosts"
set ylabel "messages per second"
set logscale x 2
set logscale y
set format y "10^{%L}"
set xtics (2, 4, 8, 16)
set grid
set key left top
plot csv skip 1 using 1:2 with linespoints lw 2 pt 7 title "barline, best effort", \
	csv skip 1 using 1:3 with linespoints lw 2 pt 9 title "barline, reliable", \
	csv skip 1 using 1:4 with linespoints lw 1 dt 2 pt 6 title "best effort, 32 per call", \
	csv skip 1 using 1:5 with linespoints lw 1 dt 2 pt 8 title "reliable, 32 per call", \
	csv skip 1 using 1:6 with linespoints lw 2 pt 5 title "Corosync (tuned)"
