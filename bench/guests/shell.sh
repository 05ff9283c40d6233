#!/bin/bash
# What an interactive session costs: `./mac measure` runs this and reads its lines, a name, a
# tabulator and a number.
mkdir /tmp/measure && cd /tmp/measure || exit 1
watch=/bench/stopwatch
for directory in {1..100}; do
    mkdir -p "files/$directory"
    (cd "files/$directory" && touch {1..100})
done
ls -lR files >/dev/null
$watch run 'ls -lR of 10 000 files' ls -lR files >/dev/null
for ((i = 0; i < 100; i++)); do
    printf '%s\n' "value$i=\$((i * $i + \${#HOME}))" "list+=(\"item \$value$i\")" \
        "[[ \${list[$i]} == item* ]] && count=\$((count + 1))" "text=\${list[$i]// /_}" \
        "case \$text in item_*) printf -v line '%08x' \$value$i ;; esac"
done >script
wc -l <script | grep -qx 500 || exit 1
$watch run 'bash, a script of 500 lines' bash script
$watch run '200 times: fork, exec of true, wait' bash -c 'for i in {1..200}; do /bin/true; done'
$watch run '50 times four jobs: sh, echo, a pipe, sed' \
    bash -c 'for i in {1..50}; do for j in 1 2 3 4; do sh -c "echo x | sed s/x/y/" & done; wait; done' >/dev/null
$watch keys 'key press to echo, bash on a pseudoterminal' 200
