#!/bin/sh
# PACKAGE0063 htop: shows processes and meters on a terminal
export TERM=xterm
htop --version | cut -d' ' -f1
script -qec 'stty rows 24 cols 100; htop -d 5' /dev/null <<END >screen
q
END
grep -aoE 'Load average|Uptime|Mem\[|PID' screen | sort -u
