#!/bin/sh
# GUEST0143 pages of pipes, descriptors in flight, watches of epoll and inotify are limited for each user, as the superuser sets it
for test in pipes messages watches settings; do
    echo "--- $test"
    mkdir -m 777 $test
    (cd $test && /tests/bin/users $test)
    echo "status $?"
done
