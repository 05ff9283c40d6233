#!/bin/sh
# GUEST0232 shares of the processor: a program that has slept gets its work done while hundreds of programs compute, and these get on, too
/tests/bin/shares
echo "status $?"
