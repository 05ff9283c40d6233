#!/bin/sh
# GUEST0232 a program that has slept is served first among hundreds that compute
/tests/bin/shares
echo "status $?"
