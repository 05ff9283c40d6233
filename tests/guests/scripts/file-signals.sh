#!/bin/sh
# GUEST0239 pipes, sockets, terminals and directories signal their owners, as O_ASYNC, F_SETOWN, F_SETSIG and F_NOTIFY ask for
for test in pipes sockets terminals groups directories; do
    echo "--- $test"
    /tests/bin/file-signals $test
    echo "status $?"
done
