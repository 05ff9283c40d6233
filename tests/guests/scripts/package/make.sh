#!/bin/sh
# PACKAGE0036 make: builds what has changed, side by side, by pattern rules
cat >Makefile <<'END'
all: one.out two.out three.out
%.out: %.in ; @echo making $@; sleep 0.1; tr a-z A-Z <$< >$@
.PHONY: all fail
fail: ; @exit 3
n := $(words a b c)
show: ; @echo $(n) $(patsubst %.c,%.o,x.c y.c) $(shell echo shell) $(MAKELEVEL)
END
for n in one two three; do echo $n >$n.in; done
make -j3 | sort
make
sleep 1; touch two.in; make
make show
make fail
echo "status $?"
make nothing
make -n show
