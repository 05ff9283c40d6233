#!/bin/sh
# GUEST0906 mapped-times: writing through a shared mapping changes the times of a file, on a tmpfs and on ext4
export LC_ALL=C
disk=/dev/vda
cat >/tmp/mapped.c <<'END'
/* Maps a file and does to it what the letters of the second argument say: reads it, writes to it,
 * synchronises it, sets its time to 2001, ends the mapping. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int file = open(argv[1], O_RDWR);
    int kind = argv[2][0] == 'p' ? MAP_PRIVATE : MAP_SHARED;
    volatile char *memory = mmap(0, 8192, PROT_READ | PROT_WRITE, kind, file, 0);
    if (memory == MAP_FAILED) return 1;
    struct timespec times[2] = { { 978307200 }, { 978307200 } };
    for (char *step = argv[2]; *step; step++) {
        if (*step == 'r') (void)memory[4096];
        if (*step == 'w') memory[4096] = step - argv[2];
        if (*step == 's') msync((void *)memory, 8192, MS_SYNC);
        if (*step == 'a') msync((void *)memory, 8192, MS_ASYNC);
        if (*step == 't') futimens(file, times);
        if (*step == 'u') munmap((void *)memory, 8192);
    }
    return 0;
}
END
tcc -o /tmp/mapped /tmp/mapped.c || exit 1
year() { [ "$(TZ=UTC stat -c %y file | cut -c1-4)" = 2001 ] && echo old || echo new; }
all() {
    dd if=/dev/zero of=file bs=4096 count=2 2>/dev/null
    for steps in tr tw twt tws twa twut ptw ptr trt; do
        /tmp/mapped file "$steps"
        sync
        echo "$1 $steps $(year)"
    done
    touch -d '2001-01-01 UTC' file
    changed=$(stat -c %z file)
    sleep 0.1
    /tmp/mapped file w
    [ "$changed" = "$(stat -c %z file)" ] && echo "$1 the same change" || echo "$1 another change"
    one=$(stat -c %y file)
    sleep 0.1
    [ "$one" = "$(stat -c %y file)" ] && echo "$1 the same time" || echo "$1 another time"
}
# Debian's kernel is recorded without a disk. What it does with a tmpfs is asked of ext4, too.
if [ -b $disk ]; then
    begin() { mkfs.ext4 -q -F $disk && mount -t ext4 $disk /mnt; }
    again() { umount /mnt && mount -t ext4 $disk /mnt; }
else
    begin() { mount -t tmpfs x /mnt; }
    again() { :; }
fi
mount -t tmpfs x /mnt
cd /mnt || exit 1
all tmpfs
cd /
umount /mnt
begin
cd /mnt || exit 1
all ext4
touch -d '2001-01-01 UTC' file
/tmp/mapped file w
cd /
again
cd /mnt || exit 1
echo "ext4 after a mount $(year)"
cd /
umount /mnt
