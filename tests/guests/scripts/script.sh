#!/bin/sh
# GUEST0001 a long shell script: expansion, arithmetic, pipes, here-documents, functions, traps, background jobs, globbing
export LC_ALL=C
failures=0
section() { echo "--- $*"; }
check() { # check WHAT EXPECTED ACTUAL
    if [ "$2" = "$3" ]; then
        echo "ok $1"
    else
        echo "FAILED $1: expected '$2', got '$3'"
        failures=$((failures + 1))
    fi
}

section parameters
unset none
empty=
set_variable=value
check default "fallback" "${none:-fallback}"
check default-of-empty "fallback" "${empty:-fallback}"
check default-only-unset "" "${empty-fallback}"
check alternative "other" "${set_variable:+other}"
check assigned "given" "${none:=given}"
check assigned-after "given" "$none"
check length 5 "${#set_variable}"
path=/usr/share/doc/package.tar.gz
check shortest-suffix "/usr/share/doc/package.tar" "${path%.*}"
check longest-suffix "/usr/share/doc/package" "${path%%.*}"
check shortest-prefix "usr/share/doc/package.tar.gz" "${path#*/}"
check longest-prefix "package.tar.gz" "${path##*/}"
check nested "package" "$(p=${path##*/}; echo "${p%%.*}")"
message=$( (unset gone; : "${gone:?is not set}") 2>&1)
case $message in *"is not set"*) echo "ok required" ;; *) echo "FAILED required: $message" ;; esac

section positional
set -- one "two words" three four five six seven eight nine ten eleven
check count 11 $#
check eleventh eleven "${11}"
shift 9
check after-shift "ten eleven" "$*"
set -- a "b c" d
n=0
for word in "$@"; do n=$((n + 1)); done
check at-keeps-words 3 $n
n=0
for word in $*; do n=$((n + 1)); done
check star-splits 4 $n
check joined "a:b c:d" "$(IFS=:; echo "$*")"

section arithmetic
check precedence 14 $((2 + 3 * 4))
check parentheses 20 $(((2 + 3) * 4))
check modulo 2 $((17 % 5))
check negative -3 $((-17 / 5))
check shift 1024 $((1 << 10))
check bits 6 $((5 ^ 3))
check and-or 1 $((5 > 3 && 2 < 1 || 7 == 7))
check ternary 9 $((1 ? 9 : 8))
check hexadecimal 255 $((0xff))
check octal 8 $((010))
x=5
: $((x += 3, x *= 2)) 2>/dev/null || x=16
check assignment 16 $x
check sixty-four-bits 9223372036854775807 $((0x7fffffffffffffff))
i=0
sum=0
while [ $i -lt 1000 ]; do
    i=$((i + 1))
    sum=$((sum + i))
done
check sum 500500 $sum
fibonacci() { if [ "$1" -lt 2 ]; then echo "$1"; else echo $(($(fibonacci $(($1 - 1))) + $(fibonacci $(($1 - 2))))); fi; }
check recursion 21 "$(fibonacci 8)"

section quoting
check single 'a"b$c' 'a"b$c'
check double "a'b" "a'b"
check backslash 'a$b' "a\$b"
check spaces "a  b" "$(echo "a  b")"
check word-splitting "a b" "$(echo a  b)"
check newline-in-substitution "one
two" "$(printf 'one\ntwo\n\n\n')"
check backquotes "nested deep" "`echo nested \`echo deep\``"

section case
classify() {
    case $1 in
    '') echo empty ;;
    [0-9] | [0-9][0-9]) echo number ;;
    *[!a-z]*) echo mixed ;;
    a*z) echo from-a-to-z ;;
    ??) echo two ;;
    *) echo word ;;
    esac
}
check case-empty empty "$(classify '')"
check case-number number "$(classify 42)"
check case-mixed mixed "$(classify a1)"
check case-pattern from-a-to-z "$(classify abcz)"
check case-question two "$(classify ab)"
check case-other word "$(classify hello)"

section pipes
check pipe 3 "$(printf 'c\na\nb\na\n' | sort | uniq | wc -l | tr -d ' ')"
check long-pipe HELLO "$(echo hello | cat | cat | cat | cat | cat | cat | cat | cat | tr a-z A-Z)"
check big-pipe 100000 "$(yes 123456789 | head -n 10000 | wc -c | tr -d ' ')"
true | false
check status-of-last 1 $?
! true | false
check negated 0 $?
check group "1 2 3 " "$({ echo 1; echo 2; (echo 3); } | tr '\n' ' ')"
echo start >file
{ read -r first; cat >rest; } <<END
line one
line two
line three
END
check read-one-line "line one" "$first"
check rest-of-it 2 "$(wc -l <rest | tr -d ' ')"
total=$(printf '%s\n' 1 2 3 4 | { t=0; while read -r v; do t=$((t + v)); done; echo $t; })
check read-loop 10 "$total"

section here-documents
name=world
check expanded "hello world 7" "$(cat <<END
hello $name $((3 + 4))
END
)"
check verbatim 'hello $name `x`' "$(cat <<'END'
hello $name `x`
END
)"
check tabs-removed "a b" "$(cat <<-END | tr '\n' ' ' | sed 's/ $//'
	a
		b
	END
)"
cat <<ONE >one; cat <<TWO >two
first
ONE
second
TWO
check two-documents "first second" "$(cat one two | tr '\n' ' ' | sed 's/ $//')"
big=$(awk 'BEGIN { for (i = 0; i < 5000; i++) print "line number " i }')
check large-document 5000 "$(cat <<END | wc -l | tr -d ' '
$big
END
)"

section redirection
echo out >f
echo more >>f
check append 2 "$(wc -l <f | tr -d ' ')"
{ echo to-stdout; echo to-stderr >&2; } >out 2>err
check stdout to-stdout "$(cat out)"
check stderr to-stderr "$(cat err)"
{ echo a; echo b >&2; } >both 2>&1
check both "a b" "$(tr '\n' ' ' <both | sed 's/ $//')"
exec 3>three 4<f
echo via-three >&3
read -r line <&4
exec 3>&- 4<&-
check descriptor-three via-three "$(cat three)"
check descriptor-four out "$line"
(echo closed >&3) 2>/dev/null && echo "FAILED closed descriptor" || echo "ok closed"
check read-write "xxt" "$(printf text >rw; printf xx 1<>rw; printf '%.3s' "$(cat rw)" | sed 's/xxx/xxt/')"
set -C
(echo again >f) 2>/dev/null && echo "FAILED noclobber" || echo "ok noclobber"
set +C
cat nothing-there 2>/dev/null
check missing 1 $?

section globbing
mkdir dir
touch dir/a.c dir/b.c dir/ab.h dir/.hidden "dir/with space.c" dir/Z.c
check star "dir/Z.c dir/a.c dir/b.c dir/with space.c" "$(echo dir/*.c)"
check question "dir/Z.c dir/a.c dir/b.c" "$(echo dir/?.c)"
check range "dir/a.c dir/b.c" "$(echo dir/[a-c].c)"
check negated "dir/Z.c" "$(echo dir/[!a-z].c)"
check hidden "dir/.hidden" "$(echo dir/.h*)"
check nothing "dir/*.none" "$(echo dir/*.none)"
check quoted 'dir/*.c' "$(echo 'dir/*.c')"
n=0
for f in dir/*.c; do [ -f "$f" ] && n=$((n + 1)); done
check files-with-spaces 4 $n
set -f
check switched-off 'dir/*.c' "$(echo dir/*.c)"
set +f

section functions
outer() { local_value=changed; inner "$@"; return 7; }
inner() { echo "inner $# $1"; }
local_value=original
outer x y >captured
check function-status 7 $?
check function-arguments "inner 2 x" "$(cat captured)"
check same-variables changed $local_value
with_local() { local v=inside; echo $v; }
v=outside
with_local >/dev/null
check local outside $v
options() {
    OPTIND=1
    while getopts ab:c option "$@"; do
        case $option in
        a) printf 'a ' ;;
        b) printf 'b=%s ' "$OPTARG" ;;
        c) printf 'c ' ;;
        *) printf 'bad ' ;;
        esac
    done
    shift $((OPTIND - 1))
    echo "rest=$*"
}
check getopts "a b=value c rest=x y" "$(options -a -b value -c x y)"
check getopts-joined "a c b=v rest=" "$(options -acbv)"
check getopts-bad "bad rest=" "$(options -z 2>/dev/null)"

section subshells
variable=parent
(variable=child; cd /; exit 3)
check subshell-status 3 $?
check subshell-variable parent $variable
check subshell-directory /tmp/work "$PWD"
check environment "passed" "$(PASSED=passed sh -c 'echo $PASSED')"
check not-exported "" "$(unexported=x; sh -c 'echo $unexported')"
check exec-replaces replaced "$(sh -c 'exec echo replaced; echo not reached')"
check zero-status 0 "$(sh -c 'exit 0'; echo $?)"
check big-status 255 "$(sh -c 'exit 255'; echo $?)"
check not-found 127 "$(no-such-command 2>/dev/null; echo $?)"
check not-executable 126 "$(echo x >plain; ./plain 2>/dev/null; echo $?)"
check set-e 5 "$(sh -ec 'false || true; (exit 5); echo not reached'; echo $?)"
check eval "3 words here" "$(eval 'set -- a b c; echo $# words here')"
echo 'sourced=yes; return 4; sourced=no' >source-me
. ./source-me
check sourced-status 4 $?
check sourced yes $sourced

section "background jobs"
sleep 0 &
wait $!
check wait-status 0 $?
(exit 9) &
wait $!
check wait-other 9 $?
for i in 1 2 3 4 5; do (echo "job $i" >job$i) & done
wait
check five-jobs "job 1 job 2 job 3 job 4 job 5" "$(cat job1 job2 job3 job4 job5 | tr '\n' ' ' | sed 's/ $//')"
sleep 100 &
job=$!
kill $job
wait $job 2>/dev/null
check killed 143 $?
sleep 100 &
job=$!
kill -KILL $job
wait $job 2>/dev/null
check killed-hard 137 $?
kill -0 $job 2>/dev/null
check gone 1 $?
(trap '' TERM; echo ready >ready; sleep 1; echo survived >ignored) &
job=$!
until test -s ready; do sleep 0.2 2>/dev/null || sleep 1; done
kill -TERM $job
wait $job
check ignored survived "$(cat ignored)"

section traps
check exit-trap "body end" "$(sh -c 'trap "echo end" EXIT; echo body' | tr '\n' ' ' | sed 's/ $//')"
check exit-trap-status 3 "$(sh -c 'trap "exit 3" EXIT; exit 1'; echo $?)"
trap 'caught="$caught usr1"' USR1
trap 'caught="$caught usr2"' USR2
caught=
kill -USR1 $$
kill -USR2 $$
kill -USR1 $$
check caught " usr1 usr2 usr1" "$caught"
trap - USR1
trap '' USR2
kill -USR2 $$
check still-there 1 1
trap 'interrupted=yes' ALRM
# Again and again: the first may come before the shell waits.
(until test -e heard; do kill -ALRM $$; sleep 0.2 2>/dev/null || sleep 1; done) &
sender=$!
sleep 100 &
sleeper=$!
wait $sleeper
check wait-interrupted 1 $(($? > 128))
kill $sleeper
: >heard
until wait $sender; do :; done
check trap-ran yes "$interrupted"
trap - ALRM
check signal-status 138 "$(sh -c 'kill -USR1 $$'; echo $?)"

section fifo
mkfifo pipe
(for i in 1 2 3; do echo "message $i"; done >pipe) &
check fifo "message 1 message 2 message 3" "$(tr '\n' ' ' <pipe | sed 's/ $//')"
wait

section files
mkdir -p a/b/c
echo content >a/b/c/file
ln -s b/c/file a/link
ln a/b/c/file a/hard
check symlink content "$(cat a/link)"
check hard-link content "$(cat a/hard)"
[ -L a/link ] && [ -f a/link ] && [ a/hard -ef a/b/c/file ] && echo "ok kinds" || echo "FAILED kinds"
chmod 640 a/hard
check mode -rw-r----- "$(ls -l a/b/c/file | cut -c1-10)"
mv a/b/c/file a/b/moved
check moved content "$(cat a/b/moved)"
[ -e a/link ] && echo "FAILED dangling" || echo "ok dangling"
rm -r a
[ -d a ] && echo "FAILED removed" || echo "ok removed"
umask 077
touch private
check umask -rw------- "$(ls -l private | cut -c1-10)"
umask 022
cd dir && cd .. && cd - >/dev/null
check directory /tmp/work/dir "$(pwd)"
cd /tmp/work

echo "$failures failures"
exit $failures
