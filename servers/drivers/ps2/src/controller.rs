//! The keyboard controller of a PC (i8042): its start, and bytes to and from the keyboard.

use core::fmt::{Display, Formatter};

/// Access to the controller's registers.
pub trait Ports {
    /// Reads the byte that the controller has received.
    fn read_data(&mut self) -> u8;
    /// Sends a byte to the keyboard, or to the command before it.
    fn write_data(&mut self, byte: u8);
    /// Reads the status register.
    fn status(&mut self) -> u8;
    /// Gives the controller a command.
    fn command(&mut self, command: u8);
}

/// Bits of the status: there is a byte to read, the controller has not taken the last byte that was
/// written, and the byte to read comes from the second port, at which a mouse may be.
const HAS_BYTE: u8 = 1;
const IS_BUSY: u8 = 2;
const IS_FROM_SECOND: u8 = 0x20;
/// The status of a controller that does not exist.
const ABSENT: u8 = 0xff;

/// Commands of the controller.
const READ_CONFIGURATION: u8 = 0x20;
const WRITE_CONFIGURATION: u8 = 0x60;
const DISABLE_SECOND: u8 = 0xa7;
const TEST_CONTROLLER: u8 = 0xaa;
const TEST_FIRST: u8 = 0xab;
const DISABLE_FIRST: u8 = 0xad;
const ENABLE_FIRST: u8 = 0xae;
/// The answers of the two tests, if they were passed.
const CONTROLLER_PASSED: u8 = 0x55;
const FIRST_PASSED: u8 = 0;

/// Bits of the configuration: interrupts of the two ports, their clocks stopped, and scan codes of
/// set 2 translated to those of set 1.
const FIRST_INTERRUPTS: u8 = 1;
const SECOND_INTERRUPTS: u8 = 2;
const FIRST_STOPPED: u8 = 0x10;
const SECOND_STOPPED: u8 = 0x20;
const TRANSLATED: u8 = 0x40;

/// Commands of the keyboard, and its answers.
const RESET: u8 = 0xff;
const CHOOSE_SET: u8 = 0xf0;
const SEND_CODES: u8 = 0xf4;
pub(crate) const ACCEPTED: u8 = 0xfa;
pub(crate) const REFUSED: u8 = 0xfe;
/// What the keyboard sends when it has tested itself.
pub(crate) const KEYBOARD_PASSED: u8 = 0xaa;

/// How often the status is read, about a microsecond each time, while the driver waits for a byte,
/// and until the controller takes one. A keyboard may take most of a second for its own test.
const BYTE_READS: u32 = 1_000_000;
const TAKE_READS: u32 = 100_000;
/// How many bytes can be left from before the start.
const MOST_OLD_BYTES: usize = 64;
/// How often a byte that the keyboard refuses is sent.
const ATTEMPTS: usize = 3;

/// Why there is no keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no controller at the ports.
    Controller,
    /// The controller's own test has failed.
    Test,
    /// The controller says that its first port does not work.
    Port,
    /// No keyboard at the first port has answered.
    Keyboard,
}

impl Display for Missing {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Missing::Controller => "there is no controller",
            Missing::Test => "the controller has failed its test",
            Missing::Port => "the controller's first port does not work",
            Missing::Keyboard => "no keyboard is plugged in",
        })
    }
}

/// The set of codes that the keys send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The codes of the first PC, to which some controllers always translate.
    One,
    /// What keyboards send themselves.
    Two,
}

/// A controller with a keyboard at its first port. The second port is off.
#[derive(Debug)]
pub struct Controller<P> {
    pub(crate) ports: P,
}

impl<P: Ports> Controller<P> {
    /// Starts the controller and the keyboard. Returns which codes come. The interrupt of the first
    /// port is on afterwards. If there is no keyboard, this takes up to some seconds.
    ///
    /// # Errors
    /// The reason why there is no keyboard.
    pub fn start(ports: P) -> Result<(Controller<P>, Set), Missing> {
        let mut controller = Controller { ports };
        if controller.ports.status() == ABSENT {
            return Err(Missing::Controller);
        }
        controller.command(DISABLE_FIRST)?;
        controller.command(DISABLE_SECOND)?;
        controller.discard();
        controller.command(TEST_CONTROLLER)?;
        if controller.byte().ok_or(Missing::Controller)? != CONTROLLER_PASSED {
            return Err(Missing::Test);
        }
        let quiet = SECOND_STOPPED | FIRST_STOPPED;
        controller.configure(|old| old & !(FIRST_INTERRUPTS | SECOND_INTERRUPTS | TRANSLATED) | quiet)?;
        controller.command(TEST_FIRST)?;
        if controller.byte() != Some(FIRST_PASSED) {
            return Err(Missing::Port);
        }
        controller.command(ENABLE_FIRST)?;
        controller.discard();
        if !controller.ask(RESET) || controller.byte() != Some(KEYBOARD_PASSED) {
            return Err(Missing::Keyboard);
        }
        // A keyboard that knows only one set refuses: it is set 2.
        if controller.ask(CHOOSE_SET) {
            controller.ask(2);
        }
        controller.ask(SEND_CODES);
        let configuration = controller.configure(|old| old & !FIRST_STOPPED | FIRST_INTERRUPTS)?;
        let set = if configuration & TRANSLATED != 0 { Set::One } else { Set::Two };
        Ok((controller, set))
    }

    /// The next byte of the keyboard, if there is one.
    pub fn read(&mut self) -> Option<u8> {
        // Bytes of the second port come only from before it was switched off.
        for _ in 0..MOST_OLD_BYTES {
            let status = self.ports.status();
            if status == ABSENT || status & HAS_BYTE == 0 {
                return None;
            }
            let byte = self.ports.read_data();
            if status & IS_FROM_SECOND == 0 {
                return Some(byte);
            }
        }
        None
    }

    /// Sends a byte to the keyboard, which answers later.
    pub fn send(&mut self, byte: u8) {
        // A controller that takes no byte any more has failed; the lights are not worth an end.
        if self.wait_until_taken().is_ok() {
            self.ports.write_data(byte);
        }
    }

    /// Sends a byte to the keyboard. Returns whether it was accepted. Codes of keys that were on
    /// their way are discarded.
    fn ask(&mut self, byte: u8) -> bool {
        for _ in 0..ATTEMPTS {
            self.send(byte);
            let answer = (0..MOST_OLD_BYTES)
                .map_while(|_| self.byte())
                .find(|answer| [ACCEPTED, REFUSED].contains(answer));
            if answer != Some(REFUSED) {
                return answer.is_some();
            }
        }
        false
    }

    /// Changes the configuration. Returns what it is afterwards.
    fn configure(&mut self, change: impl FnOnce(u8) -> u8) -> Result<u8, Missing> {
        self.command(READ_CONFIGURATION)?;
        let old = self.byte().ok_or(Missing::Controller)?;
        self.command(WRITE_CONFIGURATION)?;
        self.wait_until_taken()?;
        self.ports.write_data(change(old));
        self.command(READ_CONFIGURATION)?;
        self.byte().ok_or(Missing::Controller)
    }

    fn command(&mut self, command: u8) -> Result<(), Missing> {
        self.wait_until_taken()?;
        self.ports.command(command);
        Ok(())
    }

    fn wait_until_taken(&mut self) -> Result<(), Missing> {
        let is_taken = (0..TAKE_READS).any(|_| self.ports.status() & IS_BUSY == 0);
        if is_taken { Ok(()) } else { Err(Missing::Controller) }
    }

    /// Waits for a byte, for a limited time.
    fn byte(&mut self) -> Option<u8> {
        (0..BYTE_READS).find_map(|_| self.read())
    }

    /// Discards what has come before the start.
    fn discard(&mut self) {
        for _ in 0..MOST_OLD_BYTES {
            if self.read().is_none() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A controller and a keyboard.
    #[derive(Default)]
    struct Model {
        is_absent: bool,
        has_keyboard: bool,
        always_translates: bool,
        is_broken: bool,
        configuration: u8,
        /// Bytes to read, and whether each comes from the second port.
        bytes: VecDeque<(u8, bool)>,
        command: Option<u8>,
        to_keyboard: Vec<u8>,
        refusals: usize,
    }

    impl Ports for &mut Model {
        fn read_data(&mut self) -> u8 {
            self.bytes.pop_front().map_or(0, |(byte, _)| byte)
        }

        fn write_data(&mut self, byte: u8) {
            match self.command.take() {
                Some(WRITE_CONFIGURATION) => {
                    let kept = if self.always_translates { TRANSLATED } else { 0 };
                    self.configuration = byte | kept;
                }
                Some(command) => panic!("command {command:#x} has no data"),
                None => {
                    assert_eq!(self.configuration & FIRST_STOPPED, 0, "the keyboard hears nothing");
                    self.to_keyboard.push(byte);
                    if !self.has_keyboard {
                        return;
                    }
                    if self.refusals > 0 {
                        self.refusals -= 1;
                        self.bytes.push_back((REFUSED, false));
                        return;
                    }
                    self.bytes.push_back((ACCEPTED, false));
                    if byte == RESET {
                        self.bytes.push_back((KEYBOARD_PASSED, false));
                    }
                }
            }
        }

        fn status(&mut self) -> u8 {
            match self.bytes.front() {
                _ if self.is_absent => ABSENT,
                Some(&(_, is_from_second)) => HAS_BYTE | if is_from_second { IS_FROM_SECOND } else { 0 },
                None => 0,
            }
        }

        fn command(&mut self, command: u8) {
            match command {
                READ_CONFIGURATION => self.bytes.push_back((self.configuration, false)),
                WRITE_CONFIGURATION => self.command = Some(command),
                TEST_CONTROLLER => {
                    let answer = if self.is_broken { 0xfc } else { CONTROLLER_PASSED };
                    self.bytes.push_back((answer, false));
                }
                TEST_FIRST => self.bytes.push_back((FIRST_PASSED, false)),
                ENABLE_FIRST => self.configuration &= !FIRST_STOPPED,
                DISABLE_FIRST => self.configuration |= FIRST_STOPPED,
                DISABLE_SECOND => self.configuration |= SECOND_STOPPED,
                other => panic!("unknown command {other:#x}"),
            }
        }
    }

    fn model() -> Model {
        Model { has_keyboard: true, configuration: TRANSLATED | SECOND_INTERRUPTS, ..Model::default() }
    }

    #[test]
    fn a_keyboard_is_started_and_its_old_bytes_are_forgotten() {
        let mut model = model();
        model.bytes.extend([(0x1c, false), (8, true), (9, true)]);
        let (mut controller, set) = Controller::start(&mut model).expect("there is one");
        assert_eq!((controller.read(), set), (None, Set::Two));
        controller.ports.bytes.extend([(7, true), (0x1c, false), (7, true)]);
        assert_eq!([controller.read(), controller.read()], [Some(0x1c), None]);
        assert_eq!(model.configuration, FIRST_INTERRUPTS | SECOND_STOPPED);
        assert_eq!(model.to_keyboard, [RESET, CHOOSE_SET, 2, SEND_CODES]);
    }

    #[test]
    fn a_controller_that_always_translates_is_noticed() {
        let mut model = Model { always_translates: true, ..model() };
        assert_eq!(Controller::start(&mut model).map(|(_, set)| set).ok(), Some(Set::One));
    }

    #[test]
    fn what_a_keyboard_refuses_is_sent_again_a_few_times() {
        let mut refusing = Model { refusals: 2, ..model() };
        assert!(Controller::start(&mut refusing).is_ok());
        assert_eq!(refusing.to_keyboard, [RESET, RESET, RESET, CHOOSE_SET, 2, SEND_CODES]);
        let mut stubborn = Model { refusals: 100, ..model() };
        assert_eq!(Controller::start(&mut stubborn).map(drop).err(), Some(Missing::Keyboard));
    }

    #[test]
    fn what_is_missing_is_said() {
        let missing = |mut model: Model| Controller::start(&mut model).map(drop).err();
        assert_eq!(missing(Model { is_absent: true, ..model() }), Some(Missing::Controller));
        assert_eq!(missing(Model { is_broken: true, ..model() }), Some(Missing::Test));
        assert_eq!(missing(Model { has_keyboard: false, ..model() }), Some(Missing::Keyboard));
    }
}
