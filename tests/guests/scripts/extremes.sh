#!/bin/sh
# GUEST0120 damaged programs, pointers that are none in every call, too many regions and watches, and long requests while others go on
for test in elf pointers regions watches starve; do
    echo "--- $test"
    /tests/bin/extremes $test
    echo "status $?"
done
