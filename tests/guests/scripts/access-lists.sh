#!/bin/sh
# GUEST0905 access-lists: what setfacl gives to users and groups, what new files inherit, and what chmod, cp and tar make of it
section() { echo "--- $*"; }
run() { echo "\$ $*"; "$@" 2>&1; status=$?; [ $status = 0 ] || echo "status $status"; }
as() { user=$1 group=$2; shift 2; run setpriv --reuid "$user" --regid "$group" --clear-groups "$@"; }
export LC_ALL=C
disk=/dev/vda
all() {
    chmod 755 .
    umask 022
    section "$1: a list of a file"
    echo text >file
    chmod 640 file
    run getfacl file
    as 1000 1000 cat file
    run setfacl -m u:1000:rw,g:50:r file
    run getfacl file
    run stat -c '%a %A' file
    run ls -l --time-style=+ file
    as 1000 1000 cat file
    as 1000 1000 sh -c 'echo more >>file'
    as 1001 50 cat file
    as 1001 50 sh -c 'echo more >>file'
    as 1001 1001 cat file
    as 1000 1000 setfacl -m u:1001:rwx file
    as 1000 1000 chmod 777 file
    section "$1: chmod changes the mask"
    run chmod g=r file
    run getfacl -c file
    as 1000 1000 sh -c 'echo more >>file'
    run chmod 600 file
    as 1000 1000 cat file
    run getfacl -c file
    run setfacl -m m::rwx file
    run stat -c %a file
    section "$1: what is not a list"
    run setfacl -m u:1000:rwx,m::- missing
    run setfacl -d -m u:1000:rwx file
    run setfattr -n system.posix_acl_access -v 0x02000000 file
    run getfacl -c file
    run setfattr -n system.posix_acl_access -v 0x0200000001000700 file
    run setfattr -n system.posix_acl_access -v 0x01000000 file
    run getfattr -n system.posix_acl_default file
    section "$1: new files"
    mkdir directory
    chmod 755 directory
    run setfacl -d -m u:1000:rwx,g::rx,o::- directory
    run getfacl directory
    umask 077
    echo text >directory/file
    mkdir directory/below
    ln -s file directory/link
    mkfifo directory/fifo
    umask 022
    (cd directory && run getfacl file below fifo)
    as 1000 1000 cat directory/file
    as 1000 1000 touch directory/below/new
    as 1001 1001 ls directory/below
    run rm -r directory/below
    run setfacl -k directory
    run getfacl -c directory
    echo text >directory/other
    run stat -c %a directory/other
    section "$1: copies"
    run setfacl -m u:1000:rw,g:50:r file
    cp -p file copy
    run getfacl -c copy
    tar --acls -cf archive file directory
    mkdir unpacked
    tar --acls -C unpacked -xf archive
    (cd unpacked && run getfacl -c file)
    mv file moved
    run getfacl -c moved
    run setfacl -b moved
    run getfacl -c moved
    run stat -c %a moved
    section "$1: many names"
    many=$(seq 2000 2100 | sed 's/.*/u:&:r/' | paste -sd,)
    run setfacl -m "$many" moved >/dev/null
    getfacl -c moved | wc -l
    as 2100 1 cat moved
    section "$1: owners"
    chown 1000:50 copy
    run getfacl copy
    as 1000 1000 setfacl -m u:1001:- copy
    as 1001 1001 cat copy
    as 1000 1000 setfacl -x u:1001 copy
    as 1000 1000 getfacl -c copy
}
# Debian's kernel is recorded without a disk. What it does with a tmpfs is asked of ext4, too.
if [ -b $disk ]; then
    begin() { mkfs.ext4 -q -F $disk && mount -t ext4 $disk /mnt && rmdir /mnt/lost+found; }
    again() { umount /mnt && e2fsck -fn $disk >/dev/null 2>&1 && mount -t ext4 $disk /mnt; }
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
echo 1 >last
setfacl -m u:1000:rw last
mkdir default
setfacl -d -m u:1000:rw default
cd /
again
cd /mnt || exit 1
run getfacl last default
run setpriv --reuid 1000 --regid 1000 --clear-groups sh -c 'echo 2 >>last; cat last'
cd /
umount /mnt
