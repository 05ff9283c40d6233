#!/bin/sh
# PACKAGE0060 screen: keeps a shell that is not attached, types into it and reads its screen
export SHELL=/bin/sh TERM=xterm LC_ALL=C.UTF-8 PS1='$ '
screen -dmS one sh
sleep 2
screen -S one -p 0 -X stuff 'echo $((6 * 7))^M'
sleep 2
screen -S one -p 0 -X hardcopy /tmp/work/copy
sleep 1
sed '/^ *$/d' copy
screen -ls | sed -n 's/[0-9]*\.//;s/(.*)//;s/[ \t]//gp' | sed -n 2p
screen -S one -X quit
sleep 1
screen -ls | sed -n '1s/ in .*//p'
