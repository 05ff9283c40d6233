#!/bin/sh
# GUEST0121 when memory runs out, the biggest ends, or who wants to be the first, and nobody else notices
for test in files wishes bystanders; do
    echo "--- $test"
    /tests/bin/memory $test
    echo "status $?"
done
