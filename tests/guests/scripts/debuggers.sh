#!/bin/sh
# GUEST0231 debuggers: strace and gdb see calls, signals, stops, steps and ends of programs, and gdb reads a core file
section() { echo "--- $*"; }
# Numbers of processes and addresses differ, and so does the padding after them.
plain() { sed -E 's/ +/ /g; s/0x[0-9a-f]+/ADDRESS/g; s/\b(process|pid|PID|Process|LWP) [0-9]+/\1 N/g; s/^[0-9]+ +/N /; s/si_pid=[0-9]+/si_pid=N/; s/(si_[us]time=)[0-9]+( .\*[^*]*\*.)?/\1N/g; s/kill\([0-9]+/kill(N/' ; }
# The shared object with the clocks cannot be read by a tracer here, and gdb says so.
gdb() { command gdb -batch -nx -ex 'set debuginfod enabled off' -ex 'set width 0' "$@" 2>&1 </dev/null | grep -v -e '^warning' -e libthread_db -e '^Failed to read a valid object file' -e '^Using host' | plain; }
echo text >/tmp/text

section "calls of a program"
strace -qq -e trace=openat,read,write,close,exit_group cat /tmp/text 2>&1 | grep -e /tmp/text -e '"text' -e exit_group -e '^text' | plain
section "a failing call, and the status"
strace -qq -e trace=execve,exit_group -e status=failed cat /absent 2>&1 | plain
strace -qq -o /tmp/log sh -c 'exit 7'; echo "status $?"
tail -1 /tmp/log | plain
section "children"
strace -f -qq -e trace=exit_group -o /tmp/log sh -c '(exit 3); (exit 4); exit 5'; echo "status $?"
plain </tmp/log | sort
section "signals"
{ strace -qq -e trace=kill -e signal=all sh -c 'trap "echo caught" USR1; kill -USR1 $$; kill -TERM $$'; } 2>&1 | plain; echo
section "counts of calls"
strace -c -o /tmp/log -e trace=write sh -c 'echo a; echo b'; grep -c write /tmp/log
section "a process that runs is attached"
sleep 100 & child=$!
sleep 1
timeout 20 strace -qq -p $child -o /tmp/log & tracer=$!
sleep 2
grep TracerPid /proc/$child/status | sed 's/[1-9][0-9]*/N/'
kill $child
wait $child; echo "sleep: $?"
wait $tracer; echo "strace: $?"
tail -1 /tmp/log

section "gdb starts, steps and continues"
gdb -ex starti -ex stepi -ex 'print $_siginfo.si_signo' -ex 'info threads' -ex continue /bin/true | sed 's/ in .*//; s/"true".*/"true"/'
section "a breakpoint in a library, arguments, registers, memory"
gdb -ex 'set breakpoint pending on' -ex 'break puts' -ex 'break write' -ex run -ex 'print (int)$rdi' -ex 'print (int)$rdx' -ex 'x/s $rsi' -ex 'set var $rdx = 3' -ex 'delete' -ex continue --args echo abcdef | grep -e '^\$' -e 'abc' -e exited -e Breakpoint | sed 's/Breakpoint \([0-9]\).*/Breakpoint \1/'
section "catchpoints"
gdb -ex 'catch syscall exit_group' -ex 'catch signal SIGUSR1' -ex run -ex 'info program' -ex continue -ex continue --args sh -c 'kill -USR1 $$; exit 9' | grep -e Catchpoint -e exited -e signal -e SIGUSR1 | sed 's/, .*//; s/ in .*//'
section "forks are followed"
gdb -ex 'set follow-fork-mode child' -ex 'set detach-on-fork on' -ex run --args sh -c '(exit 6)' | grep -e exited -e Attaching -e Detaching | sed 's/process [0-9N]*/process/g; s/ (.*)//'
section "a watchpoint in software"
gdb -ex 'set can-use-hw-watchpoints 0' -ex starti -ex 'watch $sp' -ex continue -ex kill /bin/true | grep -c -e 'Watchpoint 1: $sp' 
section "a core file"
cd /tmp
ulimit -c unlimited
sh -c 'kill -SEGV $$'; echo "status $?"
ls core* | wc -l
gdb -ex 'print $_siginfo.si_signo' -ex 'print $_siginfo.si_code' /bin/sh core* | grep -e terminated -e '^\$' -e Core
