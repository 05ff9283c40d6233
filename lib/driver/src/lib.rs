//! What the programs of drivers have in common: the loop over interrupts, notifications and
//! requests ([`run`]), and the memory that a driver shares with a client ([`client`]).
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod client;

use direct::{Registers as _, Reply};
use l4::direct::Direct;
use l4::ipc::{self, Message};
use l4::x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use l4::x2::{MessageTag, ThreadId};
use rt::root::names;

/// The notification bit by which a client says that there is something to do for it.
pub const WORK: u64 = 1;

/// The work of a driver.
pub trait Driver {
    /// Does everything that there is to do for the device and the clients. Called at the start,
    /// after each interrupt, and after each notification with [`WORK`].
    fn serve(&mut self);

    /// Carries out the request in the registers, by the function `serve` of its interface.
    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>>;
}

/// Registers the calling thread as that of its server, and serves clients and interrupts for ever.
/// Interrupts of the device come to this thread from the thread `interrupt`.
pub fn run(driver: &mut impl Driver, interrupt: ThreadId) -> ! {
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
            Some((to, reply)) => registers.reply_wait(to, &reply, &mut []),
            None => registers.wait(&mut []),
        };
        // An error needs no action: the receiver of the answer has ended.
        let Ok((from, tag)) = received else { continue };
        if from == interrupt {
            // The device is served before the answer, so that a line that stays raised does not
            // interrupt again, and after it, for what the device has done in between.
            driver.serve();
            // The interrupt belongs to this thread and its message was delivered: the reply cannot
            // fail.
            let _ = ipc::reply(interrupt, Message::new(0));
            driver.serve();
        } else if from.is_nil() && tag.label() == NOTIFICATION_LABEL {
            if registers.register(1) & WORK != 0 {
                driver.serve();
            }
        } else {
            let reply = driver.answer(from, tag, &mut registers);
            answer = reply.map(|reply| (from, reply));
        }
    }
}
