#!/bin/sh
# GUEST0943 watched: the processor's debug registers, by ptrace and by gdb: watchpoints for writes and for reads, breakpoints in hardware
section() { echo "--- $*"; }
gdb() { command gdb -batch -nx -ex 'set debuginfod enabled off' -ex 'set width 0' "$@" 2>&1 </dev/null | grep -v -e '^warning' -e libthread_db -e '^Failed to read a valid object file' -e '^Using host' | sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/process [0-9]+/process N/g; s/^ADDRESS in (.*) \(.*/in \1/'; }
section "by ptrace"
/tests/bin/watched ptrace
section "watch"
gdb -ex 'break main' -ex run -ex 'watch *(long *)&counter' -ex continue -ex continue -ex 'info watchpoints' -ex 'delete 2' -ex continue --args /tests/bin/watched run
section "rwatch and awatch"
gdb -ex 'break main' -ex run -ex 'rwatch *(long *)&other' -ex 'awatch *(long *)&counter' -ex continue -ex continue -ex continue -ex 'delete' -ex continue --args /tests/bin/watched run
section "hbreak"
gdb -ex 'break main' -ex run -ex 'hbreak tick' -ex 'info breakpoints' -ex continue -ex continue -ex continue -ex continue --args /tests/bin/watched run
section "more than there are"
gdb -ex 'break main' -ex run -ex 'hbreak tick' -ex 'hbreak show' -ex 'hbreak set' -ex 'hbreak go' -ex 'hbreak trace' -ex continue -ex 'delete 6' -ex continue --args /tests/bin/watched run
section "a process that runs is attached"
sh -c 'while :; do sleep 0.1; done' & child=$!
sleep 1
gdb -p $child -ex 'watch -l *(long *)($sp - 512)' -ex 'info watchpoints' -ex 'delete' -ex detach | grep -e watchpoint -e Detaching -e '[Nn]ot'
kill $child
# Whether dash says that it was terminated depends on how soon it ends.
wait $child 2>/dev/null; echo "status $?"
