//! Writes system calls to the log, one on each line, in the manner of strace(1).

use crate::Driver;
use crate::server::Server;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use mach::Machine;
use mach::machine::{Event, Resume, SystemCall};
use unix::Error;
use unix::front_end::{CallDescription, FrontEnds, Next};
use unix::thread::Thread;

impl<M: Machine, D: Driver<M>, F: FrontEnds<M>> Server<M, D, F> {
    /// Serves a system call, and writes the call and its result to the log.
    pub(crate) async fn serve_traced(
        &self,
        thread: &Arc<Thread<M>>,
        request: SystemCall,
        kept: &F::Kept,
    ) -> Next<M> {
        let (pid, tid) = (thread.pid().number(), thread.tid().number());
        let description = self.front_ends.describe(kept, &request);
        let text = describe(thread, request, &description).await;
        // A call that may not return, or only much later, is also written when it begins.
        if description.is_long {
            self.driver.log(format_args!("[{pid}.{tid}] {text} ..."));
        }
        let next = self.front_ends.serve_call(thread, kept, request).await;
        match &next {
            Next::Resume(Resume::Return(value)) if *value > u64::MAX - 4095 => {
                self.driver.log(format_args!("[{pid}.{tid}] {text} = {}", *value as i64));
            }
            Next::Resume(Resume::Return(value)) => {
                self.driver.log(format_args!("[{pid}.{tid}] {text} = {value:#x}"))
            }
            Next::Resume(Resume::Continue | Resume::Reply(_)) => {
                self.driver.log(format_args!("[{pid}.{tid}] {text} = (unchanged)"))
            }
            Next::Resume(Resume::Registers(state)) | Next::Executed(_, state) => {
                let (result, at, stack) = (state.result(), state.instruction(), state.stack());
                self.driver
                    .log(format_args!("[{pid}.{tid}] {text} = {result:#x} at {at:#x}, stack {stack:#x}"));
            }
            Next::Ended => self.driver.log(format_args!("[{pid}.{tid}] ended")),
        }
        next
    }

    /// Writes an event that is not a system call to the log.
    pub(crate) fn trace_event(&self, thread: &Arc<Thread<M>>, event: Event) {
        let (pid, tid) = (thread.pid().number(), thread.tid().number());
        let at = thread.registers().map_or(0, |state| state.instruction());
        self.driver.log(format_args!("[{pid}.{tid}] {event:x?} at {at:#x}"));
    }
}

/// Formats a system call with its arguments, paths included.
async fn describe<M: Machine>(
    thread: &Arc<Thread<M>>,
    request: SystemCall,
    description: &CallDescription,
) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, so the result is ignored.
    let _ = match description.name {
        Some(name) => write!(text, "{name}("),
        None => write!(text, "call {}(", request.number),
    };
    for (index, argument) in request.arguments.into_iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        let string = match description.path == Some(index) {
            true => thread.memory().read_string(argument, 256, Error::ENAMETOOLONG).await.ok(),
            false => None,
        };
        let _ = match string {
            Some(string) => write!(text, "{:?}", String::from_utf8_lossy(&string)),
            None => write!(text, "{argument:#x}"),
        };
    }
    text.push(')');
    let argument = |index: usize| request.arguments.get(index).copied().unwrap_or(0);
    if let Some((address, count)) = description.data.map(|(at, count)| (argument(at), argument(count)))
        && count > 0
    {
        let bytes: Vec<u8> =
            thread.memory().read_bytes(address, count.min(32) as usize).await.unwrap_or_default();
        let _ = write!(text, " {:?}", String::from_utf8_lossy(&bytes));
    }
    text
}
