//! The controller's registers (3.1).

use crate::Failure;

/// Access to the registers. Offsets are in bytes.
pub trait Registers {
    /// Reads a register of 32 bits at a multiple of 4.
    fn read(&mut self, offset: u32) -> u32;
    /// Writes a register of 32 bits at a multiple of 4.
    fn write(&mut self, offset: u32, value: u32);
}

const CAPABILITIES: u32 = 0;
const CONFIGURATION: u32 = 0x14;
const STATUS: u32 = 0x1c;
const QUEUE_SIZES: u32 = 0x24;
const COMMANDS: u32 = 0x28;
const COMPLETIONS: u32 = 0x30;
const DOORBELLS: u32 = 0x1000;

const ENABLE: u32 = 1;
/// Entries of 64 bytes for commands and of 16 for completions; pages of 4096 bytes; the NVM command
/// set.
const SETTINGS: u32 = 4 << 20 | 6 << 16;
const READY: u32 = 1;
const FATAL: u32 = 2;

/// How long the controller may take for what it is to do is told in units of half a second; it is
/// asked after each wait of a millisecond.
const WAITS: u32 = 500;

/// How many bytes of registers this driver reaches: those of the controller, and the doorbells of
/// the admin queues and of one pair of I/O queues at any stride.
pub const REGISTERS: u64 = 0x2000;

/// A controller.
#[derive(Debug)]
pub struct Controller<R> {
    registers: R,
    /// The distance of two doorbells in bytes.
    stride: u32,
    /// How often it is asked whether it is ready.
    patience: u32,
    /// The most entries of a queue.
    entries: u32,
}

impl<R: Registers> Controller<R> {
    /// The controller with these registers.
    ///
    /// # Errors
    /// `Unknown`: there is none, or it cannot use pages of 4096 bytes or lacks the NVM
    /// command set, or its doorbells are too far away.
    pub fn new(mut registers: R) -> Result<Controller<R>, Failure> {
        let low = registers.read(CAPABILITIES);
        let high = registers.read(CAPABILITIES + 4);
        let stride = 4u32 << (high & 0xf);
        let has_commands = high >> 5 & 1 != 0;
        let has_pages = high >> 16 & 0xf == 0;
        let last = u64::from(DOORBELLS) + 4 * u64::from(stride);
        if low == u32::MAX || !has_commands || !has_pages || last > REGISTERS {
            return Err(Failure::Unknown);
        }
        let patience = (low >> 24).max(1) * WAITS;
        Ok(Controller { registers, stride, patience, entries: (low & 0xffff) + 1 })
    }

    /// Stops the controller: all its queues are gone, and it uses no memory. `wait` waits for a
    /// millisecond.
    ///
    /// # Errors
    /// `Late`: it does not stop.
    pub fn stop(&mut self, wait: impl FnMut()) -> Result<(), Failure> {
        let configuration = self.registers.read(CONFIGURATION);
        self.registers.write(CONFIGURATION, configuration & !ENABLE);
        self.until(false, wait)
    }

    /// Starts the controller, which is stopped, with admin queues of `size` entries each at these
    /// addresses.
    ///
    /// # Errors
    /// `Unknown`: its queues cannot be so long. `Late`: it does not become ready. `Fatal`: it
    /// fails.
    pub fn start(
        &mut self,
        size: u16,
        commands: u64,
        completions: u64,
        wait: impl FnMut(),
    ) -> Result<(), Failure> {
        if u32::from(size) > self.entries {
            return Err(Failure::Unknown);
        }
        let less = u32::from(size) - 1;
        self.registers.write(QUEUE_SIZES, less << 16 | less);
        for (register, address) in [(COMMANDS, commands), (COMPLETIONS, completions)] {
            self.registers.write(register, address as u32);
            self.registers.write(register + 4, (address >> 32) as u32);
        }
        self.registers.write(CONFIGURATION, SETTINGS | ENABLE);
        self.until(true, wait)
    }

    fn until(&mut self, is_ready: bool, mut wait: impl FnMut()) -> Result<(), Failure> {
        for _ in 0..=self.patience {
            let status = self.registers.read(STATUS);
            if is_ready && status & FATAL != 0 {
                return Err(Failure::Fatal);
            }
            if (status & READY != 0) == is_ready {
                return Ok(());
            }
            wait();
        }
        Err(Failure::Late)
    }

    /// Tells the controller that the commands of queue `number` reach to this entry.
    pub fn set_tail(&mut self, number: u16, tail: u16) {
        let doorbell = DOORBELLS + 2 * u32::from(number) * self.stride;
        self.registers.write(doorbell, tail.into());
    }

    /// Tells the controller that the completions of queue `number` before this entry were taken.
    pub fn set_head(&mut self, number: u16, head: u16) {
        let doorbell = DOORBELLS + (2 * u32::from(number) + 1) * self.stride;
        self.registers.write(doorbell, head.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A controller that becomes ready, and stops, some reads later.
    struct Model {
        registers: BTreeMap<u32, u32>,
        delay: u32,
        fails: bool,
    }

    impl Registers for &mut Model {
        fn read(&mut self, offset: u32) -> u32 {
            if offset == STATUS {
                let enabled = self.registers.get(&CONFIGURATION).is_some_and(|value| value & ENABLE != 0);
                let ready = self.registers.entry(STATUS).or_default();
                if (*ready & READY != 0) != enabled {
                    if self.delay > 0 {
                        self.delay -= 1;
                    } else {
                        *ready = u32::from(enabled);
                    }
                }
                return *ready | if self.fails && enabled { FATAL } else { 0 };
            }
            self.registers.get(&offset).copied().unwrap_or(0)
        }

        fn write(&mut self, offset: u32, value: u32) {
            self.registers.insert(offset, value);
        }
    }

    fn model(delay: u32) -> Model {
        // Queues of 2048 entries, half a second, the NVM command set.
        let registers = BTreeMap::from([(0, 0x0100_07ff), (4, 1 << 5)]);
        Model { registers, delay, fails: false }
    }

    #[test]
    fn a_controller_is_started_and_stopped() {
        let mut model = model(3);
        let mut waits = 0;
        let mut controller = Controller::new(&mut model).unwrap();
        controller.start(16, 0x1_2345_6000, 0x7000, || waits += 1).unwrap();
        controller.set_tail(1, 5);
        controller.set_head(1, 6);
        controller.stop(|| waits += 1).unwrap();
        assert_eq!(waits, 3);
        let read = |offset| model.registers[&offset];
        assert_eq!((read(0x24), read(0x28), read(0x2c), read(0x30)), (0xf_000f, 0x2345_6000, 1, 0x7000));
        assert_eq!((read(0x1008), read(0x100c), read(0x14)), (5, 6, 0x46_0000));
    }

    #[test]
    fn one_that_does_not_start_is_given_up() {
        let mut late = model(501);
        let mut controller = Controller::new(&mut late).unwrap();
        assert_eq!(controller.start(2, 0, 0, || ()), Err(Failure::Late));
        let mut failed = model(0);
        failed.fails = true;
        let mut controller = Controller::new(&mut failed).unwrap();
        assert_eq!(controller.start(2, 0, 0, || ()), Err(Failure::Fatal));
        assert_eq!(controller.start(2049, 0, 0, || ()), Err(Failure::Unknown));
    }

    #[test]
    fn other_controllers_are_refused() {
        for (low, high) in [(0x7ff, 0), (0x7ff, 1 << 5 | 1 << 16), (0x7ff, 1 << 5 | 10), (u32::MAX, u32::MAX)]
        {
            let mut other = model(0);
            other.registers.extend([(0, low), (4, high)]);
            assert_eq!(Controller::new(&mut other).err(), Some(Failure::Unknown), "{high:#x}");
        }
    }
}
