//! A keyboard as its driver sees it: which keys are held, and the client that gets the events.

use crate::area::{SIZE, at};
use crate::event::{Event, PRESSED, RELEASED, REPEATED};
use crate::events::Events;
use driver::client::{Attachment, Client};
use rt::root::Status;

/// The address at which the client's area is mapped.
const AREA: u64 = 0x4000_0000;
/// The number of codes of keys that are known here. Linux has a few more, which are no keys of
/// keyboards.
const CODES: usize = 512;

/// A keyboard and its client.
#[derive(Debug)]
pub struct Keyboard {
    held: Held,
    client: Option<Client<Events<'static>>>,
    /// Whether the client has yet to be notified of events.
    news: bool,
}

impl Keyboard {
    /// A keyboard of which no key is held, without a client.
    ///
    /// # Safety
    /// The program makes only one, and uses nothing else at the address 0x4000_0000.
    #[allow(unsafe_code, reason = "the use of the address is the caller's promise")]
    pub unsafe fn new() -> Keyboard {
        Keyboard { held: Held::default(), client: None, news: false }
    }

    /// A key was pressed or released, or is said once more to be pressed, since it is held.
    pub fn key(&mut self, code: u16, is_pressed: bool) {
        if let Some(event) = self.held.change(code, is_pressed) {
            self.write(event);
        }
    }

    /// Something about the keys was lost: all count as released.
    pub fn lost(&mut self) {
        self.held = Held::default();
        self.write(Event::LOST);
    }

    fn write(&mut self, event: Event) {
        if let Some(client) = &mut self.client {
            client.shared.write(event);
            self.news = true;
        }
    }

    /// Notifies the client of the events that were written. The driver calls this when it has
    /// written all that there are, and after each notification.
    pub fn finish(&mut self) {
        if let Some(client) = &mut self.client {
            self.news |= client.shared.report_loss();
            if self.news && !client.notify() {
                self.client = None;
            }
        }
        self.news = false;
    }

    /// The lights that the client wants on, if they have changed.
    pub fn changed_lights(&mut self) -> Option<u32> {
        self.client.as_mut()?.shared.changed_lights()
    }

    /// Carries out the request `input_attach`.
    ///
    /// # Errors
    /// Those of [`Client::attach`].
    pub fn attach(&mut self, attachment: Attachment) -> Result<(), Status> {
        #[allow(unsafe_code, reason = "root has mapped the memory")]
        // SAFETY: root has mapped the area when its end is made, and unmaps it only when that end
        // is gone. The maker of this value promises that nothing else is at this address.
        unsafe {
            Client::attach(&mut self.client, attachment, AREA, SIZE, || Events::new(at(AREA)))
        }
    }
}

/// The keys that are held: a bit for each code.
#[derive(Debug, Default)]
struct Held([u64; CODES / 64]);

impl Held {
    /// The event for a key that a device says is pressed or released; `None`: there is no such key,
    /// or it was released before.
    fn change(&mut self, code: u16, is_pressed: bool) -> Option<Event> {
        let word = self.0.get_mut(usize::from(code / 64))?;
        let bit = 1 << (code % 64);
        let was_pressed = *word & bit != 0;
        *word = if is_pressed { *word | bit } else { *word & !bit };
        let value = match (was_pressed, is_pressed) {
            (false, true) => PRESSED,
            (true, true) => REPEATED,
            (true, false) => RELEASED,
            (false, false) => return None,
        };
        Some(Event::key(code, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_pressed_repeated_and_released_once() {
        let mut held = Held::default();
        let mut values = |code| {
            [true, true, true, false, false]
                .map(|is_pressed| held.change(code, is_pressed).map(|event| event.value))
        };
        let expected = [Some(PRESSED), Some(REPEATED), Some(REPEATED), Some(RELEASED), None];
        assert_eq!([values(1), values(511)], [expected; 2]);
        assert_eq!(values(512), [None; 5]);
    }
}
