#!/bin/sh
# GUEST0151 a directory of the host: what the guest does there the host sees, and the other way round
cd /mnt/share || exit
# Without a host, its part is done here.
grep -q ' /mnt/share 9p ' /proc/mounts || sh host.sh &
cat from-host changed
cat tree/one tree/deep/two

echo "made in the guest" > made
echo "and more" >> made
mv made moved
ln moved linked
ln -s moved symbolic
cat symbolic
stat -c '%F %a %s %h' moved symbolic
mkdir -p new/directory
rmdir new 2>/dev/null || echo "new is not empty"
chmod 640 moved
touch -d '2001-02-03 04:05:06 UTC' moved
stat -c '%a %Y' moved

# A large file, written, read, changed in the middle, cut off.
seq 1 1400000 > large
cksum large
cp large copy
cmp large copy && echo "the copy is the same"
printf CHANGED | dd of=copy bs=1 seek=5000000 conv=notrunc 2>/dev/null
cmp large copy | sed 's/,.*//'
truncate -s 6000000 copy
cksum copy

# A mapping.
tcc -o program mapped.c && ./program

# Nothing is from the future, as make would say.
now() { date +%s%N; }
for round in 1 2 3 4 5 6 7 8 9 10; do
    echo "$round" >just-made
    made=$(stat -c %.9Y just-made | tr -d .)
    [ "$(now)" -ge "$made" ] || echo "round $round: $made is in the future"
done
rm just-made

# C libraries read the clock without a system call. Both tell the same time, while it is corrected,
# too, and it never goes back.
cat >clocks.c <<'.'
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long long nanoseconds(struct timespec time) { return time.tv_sec * 1000000000LL + time.tv_nsec; }
int main(void)
{
    struct timespec start, library, call;
    long long last = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        clock_gettime(CLOCK_REALTIME, &library);
        if (nanoseconds(library) < last)
            return printf("the library's clock is %lld ns late\n", last - nanoseconds(library));
        syscall(SYS_clock_gettime, CLOCK_REALTIME, &call);
        if (nanoseconds(call) < nanoseconds(library))
            return printf("the call's clock is %lld ns late\n", nanoseconds(library) - nanoseconds(call));
        last = nanoseconds(call);
        clock_gettime(CLOCK_MONOTONIC, &library);
    } while (library.tv_sec < start.tv_sec + 2);
    return puts("the clocks agree") < 0;
}
.
tcc -o clocks clocks.c && ./clocks
rm clocks clocks.c

# A tree of files.
for directory in 1 2 3 4 5; do
    mkdir -p source/$directory/sub
    for file in 1 2 3 4 5 6; do echo "$directory $file" > source/$directory/sub/$file; done
done
tar cf source.tar source
mkdir unpacked
tar --warning=no-timestamp -xf source.tar -C unpacked
diff -r source unpacked/source && echo "the trees are the same"
find unpacked -type f | wc -l
rm -rf source source.tar unpacked/source/3
ls unpacked/source

# An open file that loses its name.
exec 3< linked
rm linked
cat <&3
exec 3<&-

# The host's turn.
exec 3< changed
echo "begun in the guest" > appended
echo "is anybody there?" > question
until [ -f answer ]; do sleep 1; done
cat answer changed appended made-by-host/file
ls tree
cat <&3
sync
sh list.sh
