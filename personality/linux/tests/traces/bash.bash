declare -A count
for word in a b a c a; do ((count[$word]++)); done
echo "${count[a]} ${count[b]} ${count[c]}"
array=(one two three)
printf '%s\n' "${array[@]^^}" | tac
mapfile -t lines < <(printf '1\n2\n3\n')
echo "${#lines[@]}"
f() { local x=$1; [[ $x =~ ^([a-z]+)([0-9]+)$ ]] && echo "${BASH_REMATCH[2]}"; }
f abc42
trap 'echo end' EXIT
echo text > file
[[ -f file && ! -d file ]] && cp file copy && mv copy moved && rm file moved
read -r first rest <<< "some words here"
echo "$rest" | tr a-z A-Z
{ echo out; echo err >&2; } 2>/dev/null
( cd / && pwd )
kill -0 $$ && echo alive
true | false
echo "${PIPESTATUS[@]}"
