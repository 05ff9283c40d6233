#!/bin/sh
# GUEST0108 random system calls with hostile pointers: processes may die of it, nobody else notices
/tests/bin/hammer 60 1000
echo "status $?"
echo after | cat
