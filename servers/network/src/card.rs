//! Frames between the stack and the driver of a network interface, which may end.

use crate::frames::{OFFLOAD, head, offload};
use alloc::vec::Vec;
use driver::end;
use inet::{Frame, Instant, InterfaceIndex, Stack};
use net::client::Refused;
use net::interface::{Interface, Notified, Places};
use rt::root::Status;

/// The name of the server that drives the interface, and the interface's own.
const SERVER: &str = "net";
const NAME: &str = "eth0";
/// So many received frames are passed at a time.
const TURN: usize = 64;
/// Microseconds between looks whether the driver has ended, between looks for the next one, and
/// until it is not waited for any more.
const CHECK: u64 = 250_000;
const LOOK: u64 = 20_000;
const PATIENCE: u64 = 10_000_000;

/// A network interface.
pub struct Card {
    interface: Interface,
    notified: Notified,
    /// What the present stack calls it.
    index: Option<InterfaceIndex>,
    /// The memory of received frames.
    frame: Vec<u8>,
    /// A frame that the driver had no room for.
    held: Option<Frame>,
    /// Whether the link was up when it was last looked at.
    link: bool,
    /// When the driver was seen to have ended, if no other one is there yet.
    ended: Option<u64>,
}

impl Card {
    /// Opens the interface. The calling thread is notified. Blocks until the driver has started.
    ///
    /// # Errors
    /// Those of [`Interface::open`].
    pub fn open(places: Places, notified: Notified) -> Result<Card, Status> {
        let interface = Interface::open(SERVER, places, notified, OFFLOAD)?;
        let link = interface.client.link();
        Ok(Card { interface, notified, index: None, frame: Vec::new(), held: None, link, ended: None })
    }

    /// Gives the interface to a new stack.
    pub fn begin(&mut self, stack: &mut Stack) {
        let about = self.interface.description();
        // A new stack has no other interface, and the description was checked.
        self.index = stack.add_interface(NAME, about.address, about.mtu.into(), offload(about)).ok();
        self.held = None;
        self.link = self.interface.client.link();
        self.tell_link(stack);
    }

    fn tell_link(&self, stack: &mut Stack) {
        if let Some(index) = self.index {
            // The stack has the interface as long as this has its number.
            let _ = stack.set_link(index, self.link);
        }
    }

    /// Passes received frames to the stack, and the stack's to the driver. Returns whether there
    /// are more to be passed; otherwise the driver notifies.
    pub fn pass(&mut self, stack: &mut Stack, now: Instant) -> bool {
        let has_more = self.receive(stack, now);
        self.send(stack);
        self.interface.flush();
        has_more
    }

    fn receive(&mut self, stack: &mut Stack, now: Instant) -> bool {
        for _ in 0..TURN {
            let is_up = self.interface.client.link();
            if core::mem::replace(&mut self.link, is_up) != is_up {
                self.tell_link(stack);
            }
            match (self.interface.client.receive(&mut self.frame), self.index) {
                (Some(head), Some(index)) => {
                    match head.checked {
                        true => stack.receive_verified(index, &self.frame, now),
                        false => stack.receive(index, &self.frame, now),
                    }
                    end::step();
                }
                (Some(_), None) => {}
                (None, _) => {
                    self.interface.flush();
                    if !self.interface.client.sleep_to_receive() {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn send(&mut self, stack: &mut Stack) {
        let Some(index) = self.index else { return };
        while let Some(frame) = self.held.take().or_else(|| stack.transmit(index)) {
            if self.interface.client.send(&head(&frame), &frame.bytes) != Err(Refused::Full) {
                // What cannot be sent is lost, as on a wire.
                stack.recycle(frame);
                end::step();
                continue;
            }
            self.held = Some(frame);
            self.interface.flush();
            if !self.interface.client.sleep_to_send() {
                return;
            }
        }
    }

    /// Looks whether the driver has ended, and for the one that is started in its place. Overwrites
    /// the message registers. Returns after how many microseconds to look again.
    pub fn look_after(&mut self, stack: &mut Stack, now: u64) -> u64 {
        if self.interface.client.is_gone() {
            return u64::MAX;
        }
        if self.ended.is_none() && !self.interface.has_ended() {
            return CHECK;
        }
        let since = *self.ended.get_or_insert(now);
        match self.interface.open_again(SERVER, self.notified) {
            Ok(()) => {
                self.ended = None;
                CHECK
            }
            Err(Status::NotFound | Status::InUse) if now.saturating_sub(since) < PATIENCE => LOOK,
            Err(_) => {
                self.interface.client.fail();
                self.link = false;
                self.tell_link(stack);
                u64::MAX
            }
        }
    }
}
