//! The lights of a keyboard, which are set by a command and a byte, each of which the keyboard
//! accepts or refuses.

use crate::controller::{Controller, Ports};
use input::event::{CAPS_LOCK_LIGHT, NUM_LOCK_LIGHT, SCROLL_LOCK_LIGHT};

/// The command that sets the lights, and the bits of the byte after it.
const SET_LIGHTS: u8 = 0xed;
const SCROLL_LOCK: u8 = 1;
const NUM_LOCK: u8 = 2;
const CAPS_LOCK: u8 = 4;

/// How often a byte that the keyboard refuses is sent.
const ATTEMPTS: u32 = 3;

/// What the keyboard has to answer next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Command,
    Byte,
}

/// The lights of a keyboard.
#[derive(Debug)]
pub struct Lights {
    wanted: u8,
    step: Step,
    attempts: u32,
}

impl Default for Lights {
    fn default() -> Lights {
        Lights::new()
    }
}

impl Lights {
    /// Lights that are off.
    pub const fn new() -> Lights {
        Lights { wanted: 0, step: Step::Nothing, attempts: 0 }
    }

    /// Turns the lights in `lights` on, and the others off: bits of [`input::event`].
    pub fn show<P: Ports>(&mut self, controller: &mut Controller<P>, lights: u32) {
        let bit = |light: u32, bit: u8| if lights & light != 0 { bit } else { 0 };
        self.wanted = bit(SCROLL_LOCK_LIGHT, SCROLL_LOCK)
            | bit(NUM_LOCK_LIGHT, NUM_LOCK)
            | bit(CAPS_LOCK_LIGHT, CAPS_LOCK);
        self.show_again(controller);
    }

    /// Shows the same lights on a keyboard that has forgotten them.
    pub fn show_again<P: Ports>(&mut self, controller: &mut Controller<P>) {
        // A command that was not answered yet is given up: the keyboard takes this one instead.
        (self.step, self.attempts) = (Step::Command, 0);
        controller.send(SET_LIGHTS);
    }

    /// The keyboard has accepted a byte.
    pub fn accepted<P: Ports>(&mut self, controller: &mut Controller<P>) {
        self.attempts = 0;
        self.step = match self.step {
            Step::Command => {
                controller.send(self.wanted);
                Step::Byte
            }
            Step::Byte | Step::Nothing => Step::Nothing,
        };
    }

    /// The keyboard has refused a byte, which is sent again a few times. A keyboard without lights
    /// refuses always.
    pub fn refused<P: Ports>(&mut self, controller: &mut Controller<P>) {
        self.attempts += 1;
        match self.step {
            _ if self.attempts >= ATTEMPTS => self.step = Step::Nothing,
            Step::Command => controller.send(SET_LIGHTS),
            Step::Byte => controller.send(self.wanted),
            Step::Nothing => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A keyboard that only listens.
    #[derive(Default)]
    struct Sent(Vec<u8>);

    impl Ports for Sent {
        fn read_data(&mut self) -> u8 {
            0
        }

        fn write_data(&mut self, byte: u8) {
            self.0.push(byte);
        }

        fn status(&mut self) -> u8 {
            0
        }

        fn command(&mut self, _: u8) {}
    }

    #[test]
    fn the_lights_follow_the_command_when_it_is_accepted() {
        let mut controller = Controller { ports: Sent::default() };
        let mut lights = Lights::new();
        lights.show(&mut controller, CAPS_LOCK_LIGHT | NUM_LOCK_LIGHT);
        assert_eq!(controller.ports.0, [SET_LIGHTS]);
        (0..3).for_each(|_| lights.accepted(&mut controller));
        assert_eq!(controller.ports.0, [SET_LIGHTS, CAPS_LOCK | NUM_LOCK]);
        lights.show_again(&mut controller);
        lights.accepted(&mut controller);
        assert_eq!(controller.ports.0[2..], [SET_LIGHTS, CAPS_LOCK | NUM_LOCK]);
    }

    #[test]
    fn a_refused_byte_is_sent_again_a_few_times() {
        let mut controller = Controller { ports: Sent::default() };
        let mut lights = Lights::new();
        lights.show(&mut controller, SCROLL_LOCK_LIGHT);
        (0..10).for_each(|_| lights.refused(&mut controller));
        assert_eq!(controller.ports.0, [SET_LIGHTS; 3]);
        controller.ports.0.clear();
        lights.show(&mut controller, SCROLL_LOCK_LIGHT);
        lights.accepted(&mut controller);
        (0..10).for_each(|_| lights.refused(&mut controller));
        assert_eq!(controller.ports.0, [SET_LIGHTS, SCROLL_LOCK, SCROLL_LOCK, SCROLL_LOCK]);
    }
}
