//! Descriptions of system calls, for the server's trace.

use crate::names::name;
use crate::names::number::*;
use unix::front_end::CallDescription;

/// The description of the call with this number.
#[expect(non_upper_case_globals, reason = "calls go by their own names")]
pub(crate) fn describe(number: u64) -> CallDescription {
    let path = match number {
        open | stat | lstat | access | execve | chdir | mkdir | rmdir | unlink | readlink | chmod | creat
        | statfs | truncate | rename | link | symlink | mknod | chown | lchown | mount | umount2 | chroot => {
            Some(0)
        }
        openat | newfstatat | faccessat | faccessat2 | readlinkat | statx | mkdirat | unlinkat | execveat
        | fchmodat | fchownat | utimensat | openat2 | mknodat => Some(1),
        _ => None,
    };
    CallDescription {
        name: name(number),
        path,
        data: (number == write).then_some((1, 2)),
        is_long: matches!(number, exit | exit_group | execve | rt_sigreturn | wait4 | pause),
    }
}
