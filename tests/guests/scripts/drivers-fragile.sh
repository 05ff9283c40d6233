#!/bin/sh
# GUEST0210 what is printed while the driver of the terminal ends again and again
seq 1 4000
head -c 100000 /dev/urandom | wc -c
seq -f "line %05.0f of a long text" 1 300
echo end
