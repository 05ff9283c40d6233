//! The serial port and the virtual consoles as the server reaches them: by the rings that it shares
//! with their drivers. Without a driver of the serial port, root's console takes its place.

use crate::again;
use crate::places;
use crate::report::say;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use console::client::{self, Console, Input, Output, SERIAL, View};
use core::fmt::{Arguments, Write};
use core::sync::atomic::{AtomicBool, Ordering};
use rt::root::{self, Status};
use unix::poll::{PollQueue, Readiness, until_ready};
use unix::sync::SpinLock;
use unix::tty::{Locks, Screen, VirtualConsoles, WindowSize};
use unix::{AttemptError, Environment};
use unix_server::console::Line;

/// The names of the servers that drive the serial port, and the screen of the virtual consoles.
const SERIAL_DRIVER: &str = "console";
const SCREEN_DRIVER: &str = "screen";
/// The distance from the memory shared for one console to that for the next number.
const NEXT_AREA: u64 = 1 << 16;
/// The most virtual consoles that are used.
const MOST_CONSOLES: u64 = 7;

/// A console's driver, and the tasks that wait for it.
pub(crate) struct Port {
    /// The server's ends of what it shares with the driver; `None` if there is no driver.
    ends: Option<Ends>,
    /// The tasks that wait for input, for room for output, or for another console to be visible.
    queue: PollQueue,
}

struct Ends {
    /// The name of the driver, and the number of its console.
    driver: &'static str,
    number: u64,
    /// Whether the driver has ended for good: what is written is lost then.
    is_gone: AtomicBool,
    output: SpinLock<Output>,
    input: SpinLock<Input>,
    view: View,
    size: WindowSize,
}

/// The virtual consoles of the screen's driver; that of number 1 is the first.
#[derive(Clone)]
pub(crate) struct VirtualPorts(Vec<Arc<Port>>);

impl Port {
    /// Opens the serial port. The calling thread must be the worker that polls it. Blocks until the
    /// driver has started.
    pub(crate) fn open() -> Arc<Port> {
        Arc::new(Port { ends: Ends::open(SERIAL_DRIVER, SERIAL), queue: PollQueue::new() })
    }

    /// Writes all of `bytes` to the serial port, waiting for room.
    pub(crate) async fn write(&self, bytes: &[u8]) {
        let Some(ends) = &self.ends else { return print(bytes) };
        let mut done = 0;
        while done < bytes.len() {
            let written = self.until(Readiness::WRITE, || {
                if ends.is_gone() {
                    return Some(bytes.len() - done);
                }
                let mut output = ends.output.lock();
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
        let Some(ends) = &self.ends else { return };
        let drained = self.until(Readiness::WRITE, || {
            let output = ends.output.lock();
            output.wait();
            (output.is_drained() || ends.is_gone()).then_some(())
        });
        drained.await;
    }

    /// Reads what was typed. Waits until there is at least a byte. Without a driver it waits for
    /// ever.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> usize {
        let Some(Ends { input, .. }) = &self.ends else { return core::future::pending().await };
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
        if bits & places::CONSOLE_NEWS != 0 {
            self.queue.wake(Readiness::READ | Readiness::WRITE);
        }
    }

    /// Connects with the driver that is started in place of one that has ended. Ends when none is
    /// started any more. Programs only notice that it takes a moment.
    pub(crate) async fn look_after(
        self: Arc<Self>,
        clock: Arc<dyn Environment>,
        log: impl Fn(Arguments<'_>),
    ) {
        let Some(ends) = &self.ends else { return };
        let Ends { driver, number, view, .. } = ends;
        loop {
            again::ended(&*clock, || view.has_ended()).await;
            let again = || view.open_again(driver, *number, l4::utcb::my_global_id(), places::CONSOLE_NEWS);
            let is_there = again::connect(&*clock, again).await;
            ends.is_gone.store(!is_there, Ordering::Release);
            self.queue.wake(Readiness::READ | Readiness::WRITE);
            if !is_there {
                return log(format_args!("console {number} of the server {driver} has ended for good"));
            }
            log(format_args!("console {number} of the server {driver} is there again"));
        }
    }
}

impl Line for Port {
    async fn show(&self, bytes: &[u8]) {
        self.write(bytes).await;
    }

    async fn typed(&self, buffer: &mut [u8]) -> usize {
        self.read(buffer).await
    }
}

impl Ends {
    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Opens a console. `None`: there is none of this number.
    fn open(driver: &'static str, number: u64) -> Option<Ends> {
        let thread = l4::utcb::my_global_id();
        match client::open(
            driver,
            number,
            places::CONSOLES + number * NEXT_AREA,
            thread,
            places::CONSOLE_NEWS,
        ) {
            Ok(Console { output, input, view, size }) => {
                let (columns, rows) = size.unwrap_or((0, 0));
                let size = WindowSize { columns, rows, ..WindowSize::default() };
                let (output, input) = (SpinLock::new(output), SpinLock::new(input));
                let is_gone = AtomicBool::new(false);
                Some(Ends { driver, number, is_gone, output, input, view, size })
            }
            Err(Status::NotFound) => None,
            Err(status) => {
                say(format_args!("unix: console {number} of the server {driver}: {status:?}"));
                None
            }
        }
    }
}

impl VirtualPorts {
    /// Opens the virtual consoles, as [`Port::open`] opens the serial port. There are none without
    /// a screen.
    pub(crate) fn open() -> VirtualPorts {
        let ends = (1..=MOST_CONSOLES).map_while(|number| Ends::open(SCREEN_DRIVER, number));
        VirtualPorts(ends.map(|ends| Arc::new(Port { ends: Some(ends), queue: PollQueue::new() })).collect())
    }

    /// The ports of the consoles, in the order of their numbers.
    pub(crate) fn ports(&self) -> &[Arc<Port>] {
        &self.0
    }

    /// The screen: the number of its consoles, their size, and the way to it.
    pub(crate) fn screen(&self) -> Option<(u8, WindowSize, Arc<dyn Screen>)> {
        let ends = self.0.first()?.ends.as_ref()?;
        Some((self.0.len() as u8, ends.size, Arc::new(ScreenDriver(ends.view.clone()))))
    }

    /// Tells `consoles` which of them is visible, whenever another one is; never returns.
    pub(crate) async fn watch(self, consoles: Arc<VirtualConsoles>) {
        let Some((port, ends)) = self.0.first().and_then(|port| Some((port, port.ends.as_ref()?))) else {
            return;
        };
        let mut last = 0;
        loop {
            last = port
                .until(Readiness::READ, || Some(ends.view.visible()).filter(|&number| number != last))
                .await;
            consoles.shown(u8::try_from(last).unwrap_or(0));
        }
    }

    /// Wakes those that wait for the driver, whose notification bits are `bits`.
    pub(crate) fn notified(&self, bits: u64) {
        self.0.iter().for_each(|port| port.notified(bits));
    }
}

/// The way to the driver of the screen.
struct ScreenDriver(View);

impl Screen for ScreenDriver {
    fn show(&self, number: u8) {
        self.0.show(number.into());
    }

    fn locks(&self) -> Locks {
        Locks::from_bits_truncate(self.0.locks() as u8)
    }
}

/// Prints on root's console, which adds carriage returns itself and accepts only text.
fn print(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).replace('\r', "");
    // An error is ignored: there is no other place where it could be reported.
    let _ = root::Console.write_str(&text);
}
