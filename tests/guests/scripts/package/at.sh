#!/bin/sh
# PACKAGE0058 at: runs a job of a user, and batch jobs
useradd --create-home later
atd
echo 'id -un >/tmp/work/at; pwd >>/tmp/work/at' | at now 2>/dev/null
echo 'true' | at 'now + 1 hour' 2>/dev/null
atq | wc -l
for second in $(seq 1 100); do [ -s at ] && break; sleep 1; done
sleep 1
cat at
chmod 777 /tmp/work
su later -c "echo 'id -un >/tmp/work/later' | at now" 2>/dev/null
for second in $(seq 1 100); do [ -s later ] && break; sleep 1; done
cat later
atq | wc -l
atrm "$(atq | cut -f1)"; atq | wc -l
echo true | at 'nonsense' 2>&1 | head -1
pkill atd
userdel -r later 2>/dev/null
