//! The driver's side of a console: its ends of the rings that it shares with the client.

use crate::area::{Area, INPUT, OUTPUT, SIZE, at};
use core::sync::atomic::Ordering;
use driver::client::{Attachment, Client};
use ring::{Reader, Writer};
use rt::root::Status;

/// The driver's ends of the rings of a console.
#[derive(Debug)]
pub struct Ends {
    area: &'static Area,
    output: Reader<'static, OUTPUT>,
    input: Writer<'static, INPUT>,
    /// Whether the client has yet to be notified of a change.
    news: bool,
}

/// Makes a server the client of the console whose client is in `place`, as [`Client::attach`] does.
/// What it shares is mapped at `address`.
///
/// # Errors
/// Those of [`Client::attach`].
///
/// # Safety
/// Nothing else of this program is at `address`, and only this `place` has clients there.
#[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
pub unsafe fn attach(
    place: &mut Option<Client<Ends>>,
    attachment: Attachment,
    address: u64,
) -> Result<(), Status> {
    let open = || {
        // SAFETY: root has mapped the memory there, and it is unmapped only when these ends are
        // gone.
        let area = unsafe { at(address) };
        Ends { area, output: Reader::new(&area.output), input: Writer::new(&area.input), news: false }
    };
    // SAFETY: the caller promises that nothing else is at the address; the ends are its only user.
    unsafe { Client::attach(place, attachment, address, SIZE, open) }
}

/// Notifies the client if there is a change. Returns false if the client has ended.
pub fn tell(client: &mut Client<Ends>) -> bool {
    !client.shared.take_news() || client.notify()
}

impl Ends {
    /// How many bytes of input there is room for. If there is none, the driver will be notified
    /// when there is.
    pub fn room(&mut self) -> usize {
        if self.input.room() == 0 {
            self.input.wait_for_reader();
        }
        self.input.room()
    }

    /// Gives the client bytes of input. Those for which there is no room are lost, and counted.
    pub fn receive(&mut self, bytes: &[u8]) {
        let lost = bytes.len() - self.input.write(bytes);
        if lost > 0 {
            self.area.lost.fetch_add(u32::try_from(lost).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
        self.news = true;
    }

    /// Takes up to `most` bytes of the client's output, one by one. Returns how many.
    pub fn take_each(&mut self, most: usize, take: impl FnMut(u8)) -> usize {
        self.output.read_each(most, take)
    }

    /// Takes bytes as [`take_each`](Self::take_each) does, but the client is told only by
    /// [`publish`](Self::publish): a driver that ends before is followed by one that takes them
    /// again.
    pub fn take_ahead(&mut self, most: usize, take: impl FnMut(u8)) -> usize {
        self.output.read_ahead(most, take)
    }

    /// Tells the client that all bytes which were taken are not needed any more.
    pub fn publish(&self) {
        self.output.publish();
    }

    /// The position in the client's output, modulo 2^32.
    pub fn position(&self) -> u32 {
        self.output.position()
    }

    /// Goes on at a position that an earlier driver had reached, if it is in this client's output.
    pub fn go_on_at(&mut self, position: u32) {
        let ahead = position.wrapping_sub(self.output.position()) as usize;
        if ahead <= self.output.available() {
            self.output.skip(ahead);
        }
    }

    /// How many bytes of output there are.
    pub fn available(&self) -> usize {
        self.output.available()
    }

    /// Says which of the driver's consoles is visible, and which locks of the keyboard are on: bits
    /// 0 Scroll Lock, 1 Num Lock, 2 Caps Lock.
    pub fn set_state(&mut self, visible: u32, locks: u32) {
        self.area.locks.store(locks, Ordering::Relaxed);
        self.news |= self.area.visible.swap(visible, Ordering::Relaxed) != visible;
    }

    /// Which of the driver's consoles the client was told to be visible last; 0: none yet.
    pub fn visible(&self) -> u32 {
        self.area.visible.load(Ordering::Relaxed)
    }

    /// Takes the client's wish for another console to be visible, if it has one. The number may be
    /// that of no console.
    pub fn take_wanted(&self) -> Option<u32> {
        let wanted = self.area.wanted.swap(0, Ordering::Relaxed);
        (wanted != 0).then_some(wanted)
    }

    /// Whether there is something that the client has to be notified of.
    fn take_news(&mut self) -> bool {
        let has_room = self.output.available() <= OUTPUT / 2;
        core::mem::take(&mut self.news) || has_room && self.output.take_waiting()
    }
}
