#!/bin/sh
# GUEST0150 an image with large files is there to its end, and files are where they belong in it
cd /filling
count=$(ls zeros-* | wc -l)
last=$((count - 1))
bytes=0
for number in $(seq 0 $last); do
    bytes=$((bytes + $(stat -c %s zeros-$number)))
    [ "$(cat after-$number)" = "$bytes bytes of zeros before" ] || echo "after-$number: $(cat after-$number)"
    # What the ends of the file have in addition to zeros.
    head -c 65536 zeros-$number | tr -d '\000' | wc -c
    tail -c 65536 zeros-$number | tr -d '\000' | wc -c
    # Files of the image are written in memory of the system's own.
    echo xyz | dd of=zeros-$number bs=1 seek=4097 conv=notrunc 2>/dev/null
    dd if=zeros-$number bs=1 skip=4096 count=4 2>/dev/null | od -c | head -1
done | sort | uniq
echo done
