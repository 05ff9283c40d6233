#!/bin/sh
# PACKAGE0038 ninja-build: builds what has changed by its own rules
cat >build.ninja <<'END'
rule upper
  command = tr a-z A-Z <$in >$out
  description = UPPER $out
build a.out: upper a.in
build b.out: upper b.in
build all: phony a.out b.out
default all
END
echo a >a.in; echo b >b.in
ninja -j1
cat a.out b.out
ninja
ninja -t query a.out
rm a.in; ninja
echo "status $?"
