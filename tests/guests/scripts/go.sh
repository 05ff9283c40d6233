#!/bin/sh
# GUEST0114 a Go program: goroutines, channels, timers, files, another process, a panic, garbage collection
/tests/bin/go-program
echo "status $?"
/tests/bin/go-program panic 2>&1 | head -n 1
