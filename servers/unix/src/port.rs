//! The serial port as the server reaches it: by the rings that it shares with the console's driver,
//! or by root's console if there is no driver.

use crate::report::say;
use alloc::string::String;
use alloc::sync::Arc;
use console::client::{self, Console, Input, Output, SERIAL};
use core::fmt::Write;
use rt::root::{self, Status};
use unix::AttemptError;
use unix::poll::{PollQueue, Readiness, until_ready};
use unix::sync::SpinLock;

/// The name of the server that drives the console.
const NAME: &str = "console";
/// The address at which the memory shared with the driver is mapped.
const AREA: u64 = 0x0500_0000_0000;
/// The notification bit by which the driver says that a ring has changed; bit 0 is the executor's.
const NEWS: u64 = 2;

/// The console's driver, and the tasks that wait for it.
pub(crate) struct Port {
    /// The server's ends of the rings that it shares with the driver; `None` if there is no driver.
    ends: Option<(SpinLock<Output>, SpinLock<Input>)>,
    /// The tasks that wait for input or for room for output.
    queue: PollQueue,
}

impl Port {
    /// Opens the console. The calling thread must be the worker that polls it. Blocks until the
    /// driver has started.
    pub(crate) fn open() -> Arc<Port> {
        let ends = match client::open(NAME, SERIAL, AREA, l4::utcb::my_global_id(), NEWS) {
            Ok(Console { output, input, .. }) => Some((SpinLock::new(output), SpinLock::new(input))),
            Err(Status::NotFound) => None,
            Err(status) => {
                say(format_args!("unix: the console cannot be opened: {status:?}"));
                None
            }
        };
        Arc::new(Port { ends, queue: PollQueue::new() })
    }

    /// Writes all of `bytes` to the serial port, waiting for room.
    pub(crate) async fn write(&self, bytes: &[u8]) {
        let Some((output, _)) = &self.ends else { return print(bytes) };
        let mut done = 0;
        while done < bytes.len() {
            let written = self.until(Readiness::WRITE, || {
                let mut output = output.lock();
                let count = output.write(&bytes[done..]);
                if count > 0 {
                    return Some(count);
                }
                output.wait();
                Some(output.write(&bytes[done..])).filter(|&count| count > 0)
            });
            done += written.await;
        }
    }

    /// Waits until the port has sent everything that was written.
    pub(crate) async fn drain(&self) {
        let Some((output, _)) = &self.ends else { return };
        let drained = self.until(Readiness::WRITE, || {
            let output = output.lock();
            output.wait();
            output.is_drained().then_some(())
        });
        drained.await;
    }

    /// Reads what was typed. Waits until there is at least a byte. Without a driver it waits for
    /// ever.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> usize {
        let Some((_, input)) = &self.ends else { return core::future::pending().await };
        let taken =
            self.until(Readiness::READ, || Some(input.lock().read(buffer)).filter(|&count| count > 0));
        taken.await
    }

    async fn until<T>(&self, interest: Readiness, mut attempt: impl FnMut() -> Option<T> + Unpin) -> T {
        loop {
            let ready = until_ready(&self.queue, interest, || attempt().ok_or(AttemptError::WouldBlock));
            if let Ok(value) = ready.await {
                return value;
            }
        }
    }

    /// Wakes those that wait for the driver, whose notification bits are `bits`.
    pub(crate) fn notified(&self, bits: u64) {
        if bits & NEWS != 0 {
            self.queue.wake(Readiness::READ | Readiness::WRITE);
        }
    }
}

/// Prints on root's console, which adds carriage returns itself and accepts only text.
fn print(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).replace('\r', "");
    // An error is ignored: there is no other place where it could be reported.
    let _ = root::Console.write_str(&text);
}
