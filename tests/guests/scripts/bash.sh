#!/bin/bash
# GUEST0201 a long bash script: arrays, associative arrays, functions, patterns, arithmetic, here-documents, traps, subshells
set -u

section() { printf -- '--- %s\n' "$1"; }

section 'indexed arrays'
list=(pear apple fig 'two words')
list+=(plum)
echo "${#list[@]}: ${list[*]}"
printf '<%s>' "${list[@]}"; echo
echo "${list[@]:1:2} last=${list[-1]} indices=${!list[*]}"
unset 'list[1]'
echo "after unset: ${!list[*]} = ${list[*]}"
list=("${list[@]/p/P}")
echo "${list[*]^^}"
mapfile -t lines < <(printf '%s\n' "${list[@]}" | sort)
for index in "${!lines[@]}"; do echo "$index ${lines[index]}"; done
sparse[5]=five sparse[900]=nine
echo "${!sparse[@]} ${#sparse[@]}"

section 'associative arrays'
declare -A ages=([ann]=31 [bob]=25 ["carl gustav"]=77)
ages[dora]=$((ages[ann] + 1))
for name in "${!ages[@]}"; do printf '%s=%s\n' "$name" "${ages[$name]}"; done | sort
[[ -v ages[bob] ]] && echo 'bob is there'
unset 'ages[bob]'
[[ -v ages[bob] ]] || echo 'bob is gone'
declare -A count=()
while read -r -n 1 letter; do
    [[ -n $letter ]] && count[$letter]=$((${count[$letter]-0} + 1))
done <<<'mississippi'
for letter in $(printf '%s\n' "${!count[@]}" | sort); do printf '%s%d ' "$letter" "${count[$letter]}"; done; echo
declare -A matrix
for ((i = 0; i < 4; i++)); do for ((j = 0; j < 4; j++)); do matrix[$i,$j]=$((i * j)); done; done
for ((i = 0; i < 4; i++)); do
    row=()
    for ((j = 0; j < 4; j++)); do row+=("${matrix[$i,$j]}"); done
    echo "${row[*]}"
done

section 'functions'
factorial() { local n=$1; ((n < 2)) && echo 1 || echo $((n * $(factorial $((n - 1))))); }
factorial 12
swap() { local -n first=$1 second=$2; local kept=$first; first=$second; second=$kept; }
one=1 two=2; swap one two; echo "$one $two"
fails() { return 42; }
fails; echo "status $?"
counter() { echo "called as ${FUNCNAME[0]} with $# arguments: $*"; }
counter a 'b c' d
primes() {
    local limit=$1 n d
    for ((n = 2; n <= limit; n++)); do
        for ((d = 2; d * d <= n; d++)); do ((n % d == 0)) && continue 2; done
        printf '%d ' "$n"
    done
    echo
}
primes 60

section 'patterns and expansion'
path=/usr/local/share/doc/file.tar.gz
echo "${path##*/} ${path%/*} ${path%%.*} ${path#*.} ${#path}"
echo "${path//\//:} ${path:5:5} ${path: -3} ${unset_variable-default} ${path/#\/usr/~}"
shopt -s extglob nullglob
touch a.txt b.txt c.log 'd e.txt' .hidden
echo *.txt; echo !(*.txt); echo @(a|c).*; echo *.none; echo .h*
for word in abc ABC a1c 123 ''; do
    case $word in
    +([a-z])) kind=lower ;;
    +([A-Z])) kind=upper ;;
    +([0-9])) kind=number ;;
    '') kind=empty ;;
    *) kind=mixed ;;
    esac
    printf '%s:%s ' "$word" "$kind"
done
echo
[[ 2026-11-21 =~ ^([0-9]+)-([0-9]+)-([0-9]+)$ ]] && echo "year ${BASH_REMATCH[1]} day ${BASH_REMATCH[3]}"
echo {a,b}{1..3} {10..1..3} {x..z}
text='The quick brown fox'
echo "${text,,} ${text^^} ${text~} ${text@Q}"

section arithmetic
echo $((7 / 2)) $((-7 / 2)) $((-7 % 3)) $((2 ** 62)) $((1 << 40 | 5)) $((0x1f + 010 + 2#101))
echo $((9223372036854775807 + 1)) $((5 > 3 ? 10 : 20)) $((x = 5, x += 3, x * 2))
printf '%05d|%-8s|%+d|%x|%o|%e|%.3f|%q\n' 42 left 7 255 8 12345.678 2.71828 'a b$c'
a=1 b=1
for ((i = 0; i < 40; i++)); do ((c = a + b, a = b, b = c)); done
echo "fibonacci $a"

section 'here-documents and input'
cat <<END
expanded: $((6 * 7)) $(echo command) ${list[0]}
END
cat <<'END'
literal: $((6 * 7)) $(echo command)
END
cat <<-END
	without tabulators
	END
while IFS=: read -r user _ id _; do echo "$user has $id"; done <<END
root:x:0:0
user:x:1000:1000
END
read -r first rest <<<'one two three'; echo "$first|$rest"
IFS=, read -ra fields <<<'a,b,,d'; echo "${#fields[@]} ${fields[*]}"

section 'subshells and pipelines'
value=outer
(value=inner; echo "$value"); echo "$value"
printf '%s\n' 3 1 2 | { sort; echo end; } | tr '\n' ' '; echo
true | false | true; echo "${PIPESTATUS[*]}"
set -o pipefail; false | true; echo "pipefail $?"; set +o pipefail
exec 5<>file; echo 'through a descriptor' >&5; exec 5>&-; cat file
{ echo out; echo err >&2; } 2>&1 >/dev/null | sed 's/^/caught: /'
diff <(seq 1 5) <(seq 2 6) | grep -c '^[<>]'
paste -d+ <(seq 3) <(seq 4 6) | bc
coproc bc; echo '2 ^ 100' >&"${COPROC[1]}"; read -r power <&"${COPROC[0]}"; echo "$power"
exec {COPROC[1]}>&-; wait
for i in 1 2 3; do (sleep "0.$i"; echo "job $i" >"/tmp/job$i") & done; wait; cat /tmp/job[123]; rm /tmp/job[123]; echo 'all jobs'
sleep 60 & kill $!; wait $! 2>/dev/null; echo "killed $?"
timeout 0.2 sleep 60; echo "timed out $?"

section 'signals and traps'
trap 'echo got USR1' USR1; kill -USR1 $BASHPID; trap - USR1
(trap 'echo cleaning up' EXIT; exit 7); echo "status $?"
trap 'echo "error in line of $BASH_COMMAND"' ERR; false; trap - ERR
{ bash -c 'kill -SEGV $$'; } 2>/dev/null; echo "status $?"
bash -c 'trap "" TERM; kill -TERM $$; echo survived'
(trap 'echo child said $?' CHLD; (exit 3) & wait; true) | sort -u

section control
n=0
until ((n >= 3)); do ((++n)); done; echo $n
select choice in red green; do echo "chose $choice"; break; done <<<2 2>/dev/null
while getopts 'ab:c' option -a -b value -c; do echo "option $option ${OPTARG-}"; done
for ((;;)); do ((n++ > 6)) && break; done; echo $n
eval 'echo evaluated $n'
declare -i number=5+5; readonly number; echo $number
(number=3) 2>/dev/null || echo 'readonly holds'
printf -v formatted '%03d-%s' 7 x; echo "$formatted"
type -t section; type -t if; type -t cat
echo "nested $(echo "deep $(echo "deeper `echo deepest`")")"
time_format() { TIMEFORMAT=%R; time true; }
time_format 2>&1 | tr 0-9 0
history_is_off=$(set -o | grep -c 'history.*off'); echo "$history_is_off"

section 'a queue and a stack'
queue=(); for i in {1..5}; do queue+=("$i"); done
while ((${#queue[@]})); do printf '%s ' "${queue[0]}"; queue=("${queue[@]:1}"); done; echo
stack=(); for i in {1..5}; do stack=("$i" "${stack[@]}"); done; echo "${stack[*]}"
sorted=($(printf '%s\n' 5 3 9 1 | sort -n)); echo "${sorted[*]}"
declare -p sorted
declare -f counter | head -n 2
exit 5
