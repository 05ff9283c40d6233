#!/bin/sh
# GUEST0106 threads and futexes in static programs of musl and of the GNU C library
for library in musl glibc; do
    echo "--- $library"
    /tests/bin/threads-$library
    echo "status $?"
done
