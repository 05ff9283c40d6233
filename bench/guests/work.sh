# What each of the shells of `./mac bench speedup` does: mostly the shell's own work, with files and
# pipelines in between.
set -e
directory=/tmp/work.$$
mkdir "$directory"
cd "$directory"
sum=0
for round in 1 2 3; do
    number=0
    while [ "$number" -lt 150 ]; do
        number=$((number + 1))
        sum=$(((sum * 31 + number * round) % 65521))
        case $sum in
        *0) word=zero ;;
        *[13579]) word=odd ;;
        *) word=even ;;
        esac
        echo "$number $word $sum"
    done >"list.$round"
    odd=$(grep -c odd "list.$round")
    sed -n 's/zero/nothing/p' "list.$round" | sort -n -k 3 >"sorted.$round"
    [ "$odd" -gt 0 ] && [ -s "sorted.$round" ]
done
cat sorted.* | wc -l >/dev/null
cd /
rm -r "$directory"
