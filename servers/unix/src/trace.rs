//! System calls in the log, a line each, in the manner of strace(1), to find out what a program
//! does.

use crate::Driver;
use crate::server::Server;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use linux::{Decoded, Next};
use mach::Machine;
use mach::machine::{Event, SystemCall};
use unix::Error;
use unix::thread::Thread;

/// Calls whose first argument is a path, and those whose second is.
const FIRST_IS_PATH: &[&str] = &[
    "open", "stat", "lstat", "access", "execve", "chdir", "mkdir", "rmdir", "unlink", "readlink", "chmod",
    "creat", "statfs", "truncate", "rename", "link", "symlink", "mknod", "chown", "lchown", "mount",
    "umount2", "chroot",
];
const SECOND_IS_PATH: &[&str] = &[
    "openat",
    "newfstatat",
    "faccessat",
    "faccessat2",
    "readlinkat",
    "statx",
    "mkdirat",
    "unlinkat",
    "execveat",
    "fchmodat",
    "fchownat",
    "utimensat",
    "openat2",
    "mknodat",
];

impl<M: Machine, D: Driver<M>> Server<M, D> {
    /// Serves a call and writes it and its result to the log.
    pub(crate) async fn serve_traced(
        &self,
        thread: &Arc<Thread<M>>,
        request: SystemCall,
        decoded: &Decoded<M>,
    ) -> Next<M> {
        let (pid, tid) = (thread.pid().number(), thread.tid().number());
        let text = describe(thread, request).await;
        // A call that does not return, or only much later, is shown at its beginning, too.
        let name = linux::name(request.number).unwrap_or("");
        if matches!(name, "exit" | "exit_group" | "execve" | "rt_sigreturn" | "wait4" | "pause") {
            self.driver.log(format_args!("[{pid}.{tid}] {text} ..."));
        }
        let next = self.linux.serve_call(thread, request, decoded).await;
        match &next {
            Next::Return(value) if *value > u64::MAX - 4095 => {
                self.driver.log(format_args!("[{pid}.{tid}] {text} = {}", *value as i64));
            }
            Next::Return(value) => self.driver.log(format_args!("[{pid}.{tid}] {text} = {value:#x}")),
            Next::Resume => self.driver.log(format_args!("[{pid}.{tid}] {text} = (unchanged)")),
            Next::Run(state) | Next::RunNew(_, state) => {
                let (rax, rip, rsp) = (state.rax, state.rip, state.rsp);
                self.driver.log(format_args!("[{pid}.{tid}] {text} = {rax:#x} at {rip:#x}, stack {rsp:#x}"));
            }
            Next::Ended => self.driver.log(format_args!("[{pid}.{tid}] ended")),
        }
        next
    }

    /// Writes an event that is no system call to the log.
    pub(crate) fn trace_event(&self, thread: &Arc<Thread<M>>, event: Event) {
        let (pid, tid) = (thread.pid().number(), thread.tid().number());
        let at = thread.registers().map_or(0, |state| state.rip);
        self.driver.log(format_args!("[{pid}.{tid}] {event:x?} at {at:#x}"));
    }
}

/// The text of a system call with its arguments, paths included.
async fn describe<M: Machine>(thread: &Arc<Thread<M>>, request: SystemCall) -> String {
    let mut text = String::new();
    let name = linux::name(request.number);
    // Writing to a string does not fail.
    let _ = match name {
        Some(name) => write!(text, "{name}("),
        None => write!(text, "call {}(", request.number),
    };
    let path = match name {
        Some(name) if FIRST_IS_PATH.contains(&name) => Some(0),
        Some(name) if SECOND_IS_PATH.contains(&name) => Some(1),
        _ => None,
    };
    for (index, argument) in request.arguments.into_iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        let string = match path == Some(index) {
            true => thread.memory().read_string(argument, 256, Error::ENAMETOOLONG).await.ok(),
            false => None,
        };
        let _ = match string {
            Some(string) => write!(text, "{:?}", String::from_utf8_lossy(&string)),
            None => write!(text, "{argument:#x}"),
        };
    }
    text.push(')');
    if name == Some("write") && request.arguments[2] > 0 {
        let count = request.arguments[2].min(32) as usize;
        let bytes: Vec<u8> =
            thread.memory().read_bytes(request.arguments[1], count).await.unwrap_or_default();
        let _ = write!(text, " {:?}", String::from_utf8_lossy(&bytes));
    }
    text
}
