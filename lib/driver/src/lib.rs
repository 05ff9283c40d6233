//! What the programs of drivers have in common: their start ([`start`]), the loop over interrupts,
//! notifications and requests ([`run`]), the memory that a driver shares with a client ([`client`]
//! for the driver, [`connection`] for the client), and their end in tests ([`end`]).
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod client;
pub mod connection;
pub mod end;

use core::fmt::{Display, Write as _};
use direct::{Registers as _, Reply};
use l4::direct::Direct;
use l4::ipc::{self, Message};
use l4::x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use l4::x2::{IpcError, IpcErrorKind, IpcPhase, MessageTag, ThreadId, Time};
use rt::root::{self, Console, names};

/// The notification bit by which a client says that there is something to do for it.
pub const WORK: u64 = 1;

/// The threads from which the interrupts of a device come.
#[derive(Clone, Copy, Debug)]
pub enum Interrupts<'a> {
    /// A line of the interrupt controller.
    Line(ThreadId),
    /// Messages of the device.
    Messages(&'a [ThreadId]),
    /// The device does not interrupt.
    None,
}

/// The work of a driver.
pub trait Driver {
    /// From where the interrupts come. Asked for each message.
    fn interrupts(&self) -> Interrupts<'_>;

    /// For how long the driver waits before [`serve`](Self::serve) is called without a reason.
    fn period(&self) -> Time {
        Time::NEVER
    }

    /// An interrupt has come from the thread `from`, one of [`interrupts`](Self::interrupts). It is
    /// served after this call.
    fn interrupted(&mut self, from: ThreadId) {
        let _ = from;
    }

    /// Does everything that there is to do for the device and the clients. Called at the start,
    /// after each interrupt, and after each notification with [`WORK`].
    fn serve(&mut self);

    /// Carries out the request in the registers, by the function `serve` of its interface.
    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>>;
}

/// Starts the program of a driver, and serves clients and interrupts for ever. `open` makes the
/// driver of the device that the server has; it gets the thread to which interrupts must come.
///
/// If there is no such device, the server ends, and says what is missing: `what` the device is. A
/// driver without a device does not register, so that no client finds it.
pub fn start<D: Driver, E: Display>(what: &str, open: impl FnOnce(ThreadId) -> Result<D, E>) -> ! {
    root::report_panics();
    end::prepare();
    let opened = open(l4::utcb::my_global_id());
    match opened {
        Ok(mut driver) => run(&mut driver),
        Err(error) => {
            let name = rt::start_page::read().map_or("?", |(name, _)| name);
            // If the console does not work, that cannot be reported.
            let _ = writeln!(Console, "{name}: no {what}: {error}");
            root::exit(1)
        }
    }
}

/// Registers the calling thread as that of its server, and serves clients and interrupts for ever.
fn run(driver: &mut impl Driver) -> ! {
    names::register(l4::utcb::my_global_id()).expect("it is a thread of this server");
    #[allow(unsafe_code, reason = "what the thread accepts is an invariant of all its memory")]
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe {
        l4::utcb::set_buffer_register(0, ACCEPT_NOTIFICATION)
    };
    driver.serve();
    let (mut registers, mut answer) = (Direct::default(), None);
    loop {
        let received = match answer.take() {
            Some((to, reply)) => registers.reply_wait_for(to, &reply, &mut [], driver.period()),
            None => registers.wait_for(&mut [], driver.period()),
        };
        let (from, tag) = match received {
            Ok(received) => received,
            Err(error) => {
                // A failed send needs no action: the receiver of the answer has ended.
                if error == IpcError::new(IpcPhase::Receive, IpcErrorKind::Timeout) {
                    driver.serve();
                }
                continue;
            }
        };
        match driver.interrupts() {
            Interrupts::Line(line) if from == line => {
                // The device is served before the answer, so that a line that stays raised does not
                // interrupt again, and after it, for what the device has done in between.
                driver.interrupted(from);
                driver.serve();
                acknowledge(from);
                driver.serve();
            }
            Interrupts::Messages(all) if all.contains(&from) => {
                // What the device does after the answer interrupts again.
                acknowledge(from);
                driver.interrupted(from);
                driver.serve();
            }
            _ if from.is_nil() && tag.label() == NOTIFICATION_LABEL => {
                if registers.register(1) & WORK != 0 {
                    driver.serve();
                }
            }
            _ => {
                let reply = driver.answer(from, tag, &mut registers);
                answer = reply.map(|reply| (from, reply));
            }
        }
    }
}

/// Answers an interrupt, so that the next one can come.
fn acknowledge(interrupt: ThreadId) {
    // The interrupt belongs to this thread and its message was delivered: the reply cannot fail.
    let _ = ipc::reply(interrupt, Message::new(0));
}
