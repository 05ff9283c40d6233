#!/bin/sh
# GUEST0122 a hundred thousand empty files of a user without privileges, in half a GiB of memory: other programs run as before
/tests/bin/limits files
echo "status $?"
