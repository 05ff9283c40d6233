#!/bin/sh
# PACKAGE0062 ncdu: measures a tree and writes it as JSON
mkdir -p d/e && head -c 100000 /dev/zero >d/e/f && ln d/e/f d/g
ncdu -0 -o out d
sed 's/"\(progver\|timestamp\|dev\|ino\|dsize\)":[^,}]*[,}]//g' out | tr -d '\n' | grep -o '"name":"[a-z]*"' | sort
