#!/bin/sh
# GUEST0002 busybox's applets: each program that the image has a link for, and what some sixty of them print
export LC_ALL=C TZ=UTC
for applet in $(busybox --list); do
    command -v "$applet" >/dev/null || echo "missing: $applet"
done
echo "--- the package's checksums"
cd / && grep -v usr/share /var/lib/dpkg/info/busybox-static.md5sums | md5sum -c
cd /tmp/work || exit 1
echo "--- text"
seq 1 20 >numbers
printf 'pear\napple\nfig\napple\nbanana\n' >fruit
head -n 3 numbers | tr '\n' ' '; tail -n 3 numbers | tr '\n' ' '; echo
sort fruit | uniq -c | sort -rn | head -n 1
sort -u fruit | tac | nl
cut -c2-3 fruit | paste -s -d,
grep -n app fruit; grep -vc app fruit; grep -E '^(f|b)' fruit
sed -n '2,3p;$s/ana/ANA/gp' fruit
awk '{ count[$1]++ } END { for (f in count) if (count[f] > 1) print f, count[f] }' fruit
awk 'BEGIN { printf "%.3f %d %s %x\n", 22 / 7, 7.9, toupper("abc"), 255 }'
tr a-z A-Z <fruit | rev | fold -w 3 | head -n 4
wc numbers fruit
expand <<END | unexpand -a | od -c | head -n 2
	tabs	here
END
diff numbers fruit | head -n 3
printf 'a b\n1 2\n' | xargs -n 1 echo item
echo text | tee copy | cat - copy
yes no | head -n 2
factor 1001 97
expr 6 \* 7; expr length hello; expr abc : 'a\(.\)c'
echo '2^64; scale=5; 1/3' | bc
echo '6 7 * p' | dc
echo "--- checksums and encodings"
md5sum numbers; sha1sum numbers; sha256sum numbers; sha512sum numbers | cut -c1-32
base64 fruit; base64 fruit | base64 -d | cmp - fruit && echo round trip
uuencode name <fruit | uudecode -o - | cmp - fruit && echo round trip
hexdump -C fruit | head -n 2
xxd fruit | head -n 1
strings -n 6 fruit
gzip -c numbers | gunzip | cmp - numbers && echo gzip
bzip2 -c numbers | bunzip2 | cmp - numbers && echo bzip2
xz -dc </dev/null >/dev/null 2>&1; echo "xz $?"
echo "--- files"
mkdir -p tree/a/b tree/c
for i in 1 2 3; do echo $i >tree/a/$i; echo $i$i >tree/a/b/$i; done
ln -s ../a/1 tree/c/link; ln tree/a/2 tree/c/hard
find tree | sort
find tree -type f -name '[12]' | sort | xargs cat
find tree -type l -exec readlink {} \;
tar cf tree.tar tree && mkdir out && tar xf tree.tar -C out && diff -r tree out/tree && echo tar
tar tf tree.tar | wc -l
(cd tree && find . | sort | cpio -o -H newc 2>/dev/null) >tree.cpio; mkdir out2 && (cd out2 && cpio -id <../tree.cpio 2>/dev/null) && diff -r tree out2 && echo cpio
cp -r tree tree2 && mv tree2 tree3 && rm -r tree3/a && ls tree3
dd if=/dev/zero of=zeros bs=1k count=64 2>/dev/null; wc -c <zeros
dd if=numbers bs=1 skip=2 count=5 2>/dev/null; echo
stat -c '%n %s %a %F' numbers tree/c/link; stat -c '%n %a %F' tree
chmod 751 numbers; stat -c %A numbers
touch -d '2001-02-03 04:05:06' numbers; date -u -r numbers '+%Y-%m-%d %H:%M:%S'; ls -l numbers | awk '{ print $1, $5 }'
basename /a/b.c .c; dirname /a/b.c; realpath tree/c/../a/1; readlink -f tree/c/link
truncate -s 100 numbers && wc -c <numbers
mktemp /tmp/work/nameXXXXXX | wc -c; mkfifo fifo && stat -c %F fifo
[ -x /bin/busybox ] && test ! -e nothing && echo test
du -s tree >/dev/null && echo sizes
echo "--- processes and system"
date -u -d @1000000000 '+%Y-%m-%d %H:%M:%S %j %A'
cal 2 2024 | tail -n 5
id; whoami; id -u nobody
env -i A=1 B=2 env | sort
timeout 1 sleep 1000; echo "timeout $?"
sh -c 'kill -TERM $$'; echo "terminated $?"
sleep 60 & pid=$!
# It is another program's copy first.
until ps | grep -q '[s]leep 60'; do :; done
ps | grep -c '[s]leep 60'
kill $pid; wait $pid 2>/dev/null; echo "killed $?"
nohup echo nohup 2>/dev/null
time -p true 2>&1 | wc -l
printf '%s %5d|%-5s|%05.1f\n' text 42 left 3.14159
setsid sh -c 'echo session'
chroot / echo chroot
usleep 1000; echo slept
cat /proc/self/comm; ls /proc/self/fd | wc -l
uname -s; uname -m
echo quit | ash -c 'read word; echo "$word"'
ash -c 'type cd; echo $((RANDOM >= 0))'
