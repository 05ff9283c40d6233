#!/bin/sh
# PACKAGE0047 sox: makes, converts and measures sound
sox -n -r 8000 -b 16 -c 1 a.wav synth 1 sine 440 vol 0.5
soxi a.wav | grep -E 'Channels|Rate|Precision|Duration'
sox a.wav -r 4000 b.wav trim 0 0.5 reverse
soxi -s b.wav
sox a.wav -n stat 2>&1 | grep -E 'Maximum amp|Rough'
sox -m a.wav a.wav -c 2 c.au && soxi -c c.au
sox nothing.wav x.wav 2>/dev/null
echo "status $?"
