#!/bin/sh
# GUEST0102 coreutils, sed, grep, mawk, findutils, diffutils: what some seventy programs print
export LC_ALL=C TZ=UTC
seq 1 20 >numbers
printf 'pear 3\napple 5\nfig 1\napple 2\nbanana 4\n' >fruit
echo "--- text"
head -n 2 numbers; tail -n 2 numbers; tail -c 4 numbers
sort fruit; sort -k2,2n fruit | tac; sort -u -k1,1 fruit | nl -ba
cut -d' ' -f2 fruit | paste -s -d+; paste numbers fruit | head -n 2
join -o 1.1,2.2 fruit fruit 2>/dev/null | sort | uniq -c | sort -rn | head -n 3
tr -d aeiou <fruit; tr -s p <fruit | head -n 2; wc fruit; wc -L fruit
fold -w 4 fruit | head -n 3; fmt -w 20 fruit; pr -t -2 numbers | head -n 3; expand -t 4 fruit | unexpand -a | head -n 1
comm -23 numbers numbers | wc -l; csplit -s numbers 5 10 && ls xx*; split -n 3 -d numbers part. && ls part.*; cat part.* | cmp - numbers && echo same
od -An -tx1 fruit | head -n 2; od -c fruit | head -n 1
numfmt --to=iec 1048576 1500; factor 1000000007; seq -s, 1 0.5 3; shuf -e one | cat; printf '%08.3f|%-6s|%+d|%x\n' 3.14159 ab 5 255
expr 17 % 5; expr match abcdef 'abc'; basenc --base16 fruit | head -c 20; echo
tsort <<END
shirt tie
tie jacket
trousers shoes
END
ptx -w 40 fruit 2>/dev/null | wc -l; echo text | tee copy | cat - copy; yes | head -n 2; echo abc | rev 2>/dev/null || echo cba
echo "--- checksums"
md5sum numbers; sha1sum numbers; sha224sum numbers; sha256sum numbers; b2sum numbers | cut -c1-32; cksum numbers; sum numbers
sha256sum numbers fruit >sums; sha256sum -c sums; base64 fruit | base64 -d | cmp - fruit && echo round; base32 fruit | head -n 1
echo "--- sed, grep, awk"
sed -E 's/([a-z]+) ([0-9])/\2 \1/;2d' fruit; sed -n '/fig/,$p' fruit; sed = numbers | sed 'N;s/\n/:/' | tail -n 1
sed -i.old 's/pear/plum/' fruit; head -n 1 fruit fruit.old; sed ':a;N;$!ba;s/\n/;/g' fruit
grep -c apple fruit; grep -on 'p*le' fruit; grep -rl plum . | sort; grep -Ev '^(a|b)' fruit; grep -q nothing fruit; echo $?; echo 'x.y' | grep -F '.'; grep -w 1 numbers
grep -P '\d$' fruit | wc -l
awk '{ s += $2; n[$1]++ } END { print s, length(n), n["apple"] }' fruit; awk -F: '$3 == 0 { print $1, $6 }' /etc/passwd
awk 'function f(x) { return x < 2 ? 1 : x * f(x - 1) } BEGIN { print f(10); "echo from a pipe" | getline l; print l; print substr("hello", 2, 3), index("hello", "l"), split("a,b,c", p, ","), p[2]; printf "%5.2f|%-4d|%s\n", 1/3, 7, tolower("ABC"); gsub(/l+/, "L", l); print match("foobar", /o+/), RLENGTH }'
diff -u numbers fruit | sed 1,2d | head -n 4; diff -q numbers numbers && echo equal; cmp numbers fruit; diff3 numbers numbers fruit | head -n 2; sdiff -s -w 40 numbers fruit | wc -l
echo "--- files"
mkdir -p tree/a/b tree/c; for i in 1 2 3; do echo $i >tree/a/$i; echo $i$i >tree/a/b/$i; done; ln -s ../a/1 tree/c/link; ln tree/a/2 tree/c/hard
find tree -printf '%y %m %s %p\n' | grep -v '^d' | sort; find tree -type f -size -2 -newer numbers | wc -l; find tree -name '[12]' -print0 | sort -z | xargs -0 -n 1 basename; find tree -depth -empty; find tree -maxdepth 1 -type d | sort
find tree -type f -exec sha1sum {} + | sort -k2 | cut -c1-10 | head -n 2; find tree -links +1 -type f | sort
cp -a tree copy2 && diff -r tree copy2 && echo copied; cp -r --preserve=links tree/c copy3 && readlink copy3/link; mv copy2 moved && ls moved; rm -rf moved && ls
stat -c '%n %s %a %F %h %U:%G' numbers tree/c/link tree/c/hard; stat -c '%n %a %F %h' tree; stat -f -c %T . >/dev/null && echo statfs
chmod u=rwx,g=rx,o= numbers; stat -c %A numbers; chmod -R g-w tree; touch -d '2001-02-03 04:05:06.789' numbers; stat -c %y numbers; ls -l --time-style=+%Y numbers | awk '{ print $1, $5, $6 }'; touch -r numbers fruit; [ numbers -nt fruit ] || echo not newer
ln -sf nowhere dangling; [ -L dangling ] && [ ! -e dangling ] && echo dangling; readlink dangling; realpath --relative-to=tree tree/a/b; readlink -f tree/c/link; basename -s .c a.c b.c; dirname a/b/c d; pathchk -p 'a b' 2>&1 | head -c 8; echo
dd if=/dev/zero of=zeros bs=4096 count=25 conv=fsync 2>/dev/null; stat -c %s zeros; dd if=numbers bs=1 skip=2 count=5 status=none; echo; truncate -s 1M sparse; stat -c %s sparse; du --apparent-size -b sparse; shred -n 1 -u zeros && [ ! -e zeros ] && echo shredded
install -m 750 -D numbers deep/er/file && stat -c %a deep/er/file; mktemp -u XXXXXX | wc -c; mkfifo fifo; stat -c %F fifo; mknod null c 1 3 && echo gone >null && stat -c '%F %t:%T' null; link numbers linked && unlink linked; rmdir -p --ignore-fail-on-non-empty deep/none 2>&1 | wc -l
ls -1F tree; ls -R tree | head -n 4; dir tree; vdir -d tree | cut -c1-10; ls -ld /tmp | cut -c1-10; cat nothing; echo "$?"
mkdir locked; chmod 0 locked; stat -c %a locked; sync; df -P / | wc -l
echo "--- processes and system"
id; whoami; groups; id nobody; logname 2>/dev/null; users; who | wc -l; tty; arch; uname -sm; nproc --all | wc -l; hostid | wc -c
date -u -d @1000000000 '+%F %T %j %A %s'; date -d '2024-02-28 +2 days' +%F; env -i A=1 B=2 env | sort; printenv HOME; echo $PATH | tr : '\n' | wc -l
timeout 0.5 sleep 1000; echo "timeout $?"; timeout -s KILL 0.5 sleep 1000; echo "timeout $?"; nice -n 5 nice; nohup echo nohup 2>/dev/null; stdbuf -o0 echo unbuffered; sleep 0.01; true && ! false; echo $?; test 1 -lt 2 -a abc != abd && echo test; chroot / /bin/echo chroot; /bin/kill -l TERM; /bin/kill -l 9; env -S 'printf %s\n split'; pinky 2>/dev/null | wc -l
sort --parallel=2 -S 1M numbers | wc -l; seq 1 50000 | sort -R | sort -n | md5sum; seq 1 100000 | tail -n 1; head -c 100000 /dev/zero | tr '\0' x | md5sum
