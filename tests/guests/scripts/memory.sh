#!/bin/sh
# GUEST0121 when memory runs out, the biggest process ends, or the one that asks to be first, and no other is affected
for test in files wishes bystanders; do
    echo "--- $test"
    /tests/bin/memory $test
    echo "status $?"
done
