//! The local APIC: interrupt acceptance, messages to other processors, and the one-shot timer, in
//! both of its modes (Intel SDM 3A, chapter "Advanced Programmable Interrupt Controller"). Its
//! registers are memory (xAPIC), or model-specific registers where the firmware has turned x2APIC
//! on.
use crate::memory::{PAGE_SIZE, PhysAddr};

const ID: u32 = 0x20;
const TASK_PRIORITY: u32 = 0x80;
const END_OF_INTERRUPT: u32 = 0xb0;
const SPURIOUS: u32 = 0xf0;
const REQUESTS: u32 = 0x200;
const COMMAND: u32 = 0x300;
const COMMAND_DESTINATION: u32 = 0x310;
const TIMER: u32 = 0x320;
const PERFORMANCE: u32 = 0x340;
const LINE_0: u32 = 0x350;
const LINE_1: u32 = 0x360;
const ERROR: u32 = 0x370;
const INITIAL_COUNT: u32 = 0x380;
const CURRENT_COUNT: u32 = 0x390;
const DIVIDE: u32 = 0x3e0;

const ENABLE: u32 = 1 << 8;
const MASKED: u32 = 1 << 16;
const NON_MASKABLE: u32 = 4 << 8;
const DIVIDE_BY_16: u32 = 3;

// Values of the interrupt command register: what is sent.
const RESET: u32 = 5 << 8;
const START: u32 = 6 << 8;
const ASSERT: u32 = 1 << 14;
const SENDING: u32 = 1 << 12;

/// The model-specific register of the local APIC's register at offset 0 (x2APIC).
const X2APIC_REGISTERS: u32 = 0x800;

/// The access to the executing processor's local APIC.
pub trait Access {
    /// Whether the registers are model-specific registers (x2APIC).
    fn is_x2apic(&self) -> bool;

    /// The register at an offset, in memory.
    fn read_memory(&self, offset: u32) -> u32;

    /// Sets the register at an offset, in memory, after everything that was written to memory
    /// before.
    fn write_memory(&self, offset: u32, value: u32);

    /// The value of a model-specific register.
    fn read_msr(&self, number: u32) -> u64;

    /// Sets a model-specific register; what was written to memory before may become visible later.
    fn write_msr(&self, number: u32, value: u64);

    /// Makes everything that was written to memory before visible to all processors before anything
    /// after this happens.
    fn complete_writes(&self);
}

/// The executing processor's local APIC.
pub struct LocalApic<A>(pub A);

impl<A: Access> LocalApic<A> {
    #[inline]
    fn read(&self, register: u32) -> u32 {
        if self.0.is_x2apic() {
            self.0.read_msr(X2APIC_REGISTERS + register / 16) as u32
        } else {
            self.0.read_memory(register)
        }
    }

    #[inline]
    fn write(&self, register: u32, value: u32) {
        if self.0.is_x2apic() {
            self.0.write_msr(X2APIC_REGISTERS + register / 16, u64::from(value));
        } else {
            self.0.write_memory(register, value);
        }
    }

    /// Sends a message to the processor with local APIC id `destination`, which sees all that was
    /// written to memory before.
    #[inline]
    fn send(&self, destination: u32, command: u32) {
        if self.0.is_x2apic() {
            self.0.complete_writes();
            let message = u64::from(destination) << 32 | u64::from(command);
            self.0.write_msr(X2APIC_REGISTERS + COMMAND / 16, message);
        } else {
            self.0.write_memory(COMMAND_DESTINATION, destination << 24);
            self.0.write_memory(COMMAND, command);
            while self.0.read_memory(COMMAND) & SENDING != 0 {
                core::hint::spin_loop();
            }
        }
    }

    /// Resets another processor: it waits for a start-up message then.
    pub fn send_reset(&self, destination: u32) {
        self.send(destination, RESET | ASSERT);
    }

    /// Lets a processor that was reset begin in real mode at the beginning of the page at `page`,
    /// below 1 MiB.
    pub fn send_start(&self, destination: u32, page: PhysAddr) {
        self.send(destination, START | ASSERT | (page.value() / PAGE_SIZE) as u32);
    }

    /// Interrupts another processor.
    #[inline]
    pub fn send_interrupt(&self, destination: u32, vector: u8) {
        self.send(destination, ASSERT | u32::from(vector));
    }

    /// Interrupts another processor, whatever it does.
    pub fn send_non_maskable(&self, destination: u32) {
        self.send(destination, ASSERT | NON_MASKABLE);
    }

    /// Turns the local APIC on: the timer is stopped, the old interrupt controllers' line is
    /// closed.
    pub fn enable(&self, timer_vector: u8, spurious_vector: u8) {
        self.write(TASK_PRIORITY, 0);
        self.write(LINE_0, MASKED);
        self.write(LINE_1, NON_MASKABLE);
        self.write(PERFORMANCE, MASKED);
        self.write(ERROR, MASKED | u32::from(spurious_vector));
        self.write(DIVIDE, DIVIDE_BY_16);
        self.write(TIMER, u32::from(timer_vector));
        self.write(INITIAL_COUNT, 0);
        self.write(SPURIOUS, ENABLE | u32::from(spurious_vector));
        self.end_of_interrupt();
    }

    /// The processor's local APIC id.
    pub fn id(&self) -> u32 {
        if self.0.is_x2apic() { self.read(ID) } else { self.read(ID) >> 24 }
    }

    /// Tells the local APIC that the interrupt in service has been handled (EOI).
    #[inline]
    pub fn end_of_interrupt(&self) {
        self.write(END_OF_INTERRUPT, 0);
    }

    /// Whether an interrupt with a vector of the 32 from `group * 32` on waits to be taken.
    #[inline]
    pub fn is_requested(&self, group: u32) -> bool {
        self.read(REQUESTS + group * 16) != 0
    }

    /// Starts the timer: one interrupt after `count` of its ticks. 0 stops it.
    #[inline]
    pub fn start_timer(&self, count: u32) {
        self.write(INITIAL_COUNT, count);
    }

    /// What is left of the timer's count.
    pub fn timer_count(&self) -> u32 {
        self.read(CURRENT_COUNT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    /// A local APIC: its registers by the numbers of their model-specific ones, and what has been
    /// sent.
    struct Model {
        x2apic: bool,
        registers: RefCell<BTreeMap<u32, u32>>,
        sent: RefCell<Vec<(u32, u32)>>,
        /// Whether what was written to memory last is visible.
        complete: Cell<bool>,
        /// How often the command register will say that it is still sending.
        busy: Cell<u32>,
    }

    /// The registers that there are in both modes, but for that of commands (Intel SDM 3A, "x2APIC
    /// Register Address Space").
    fn exists(number: u32) -> bool {
        const SINGLE: [u32; 10] = [0x02, 0x03, 0x08, 0x0a, 0x0b, 0x0d, 0x0f, 0x28, 0x2f, 0x3e];
        const RANGES: [core::ops::RangeInclusive<u32>; 3] = [0x10..=0x27, 0x32..=0x37, 0x38..=0x39];
        SINGLE.contains(&number) || RANGES.iter().any(|range| range.contains(&number))
    }

    impl Model {
        fn new(x2apic: bool) -> LocalApic<Self> {
            LocalApic(Self {
                x2apic,
                registers: RefCell::default(),
                sent: RefCell::default(),
                complete: Cell::new(false),
                busy: Cell::new(0),
            })
        }

        fn set(&self, number: u32, value: u32) {
            assert!(exists(number), "there is no register {number:#x}");
            self.registers.borrow_mut().insert(number, value);
        }

        fn get(&self, number: u32) -> u32 {
            assert!(exists(number), "there is no register {number:#x}");
            self.registers.borrow().get(&number).copied().unwrap_or(0)
        }

        fn send(&self, destination: u32, command: u32) {
            assert!(self.complete.replace(false), "a message overtakes what was written before");
            assert_eq!(self.busy.get(), 0, "a message while another is being sent");
            self.sent.borrow_mut().push((destination, command));
        }
    }

    impl Access for Model {
        fn is_x2apic(&self) -> bool {
            self.x2apic
        }

        fn read_memory(&self, offset: u32) -> u32 {
            assert!(!self.x2apic && offset.is_multiple_of(16));
            match offset {
                0x20 => self.get(0x02) << 24,
                0x300 if self.busy.get() > 0 => {
                    self.busy.set(self.busy.get() - 1);
                    1 << 12
                }
                0x300 => 0,
                _ => self.get(offset / 16),
            }
        }

        fn write_memory(&self, offset: u32, value: u32) {
            assert!(!self.x2apic && offset.is_multiple_of(16));
            self.complete.set(true);
            match offset {
                0x310 => drop(self.registers.borrow_mut().insert(0x31, value)),
                0x300 => {
                    self.send(self.registers.borrow()[&0x31] >> 24, value);
                    self.busy.set(3);
                }
                _ => self.set(offset / 16, value),
            }
        }

        fn read_msr(&self, number: u32) -> u64 {
            assert!(self.x2apic);
            u64::from(self.get(number - 0x800))
        }

        fn write_msr(&self, number: u32, value: u64) {
            assert!(self.x2apic);
            match number {
                0x830 => self.send((value >> 32) as u32, value as u32),
                _ => self.set(number - 0x800, value as u32),
            }
        }

        fn complete_writes(&self) {
            self.complete.set(true);
        }
    }

    /// The local APIC does what it is asked for in both modes, with the same messages and
    /// registers.
    #[test]
    fn both_modes_do_the_same() {
        let [memory, msr] = [false, true].map(|x2apic| {
            let apic = Model::new(x2apic);
            apic.0.set(0x02, 7);
            apic.enable(32, 255);
            assert_eq!(apic.id(), 7);
            apic.send_reset(1);
            apic.send_start(1, PhysAddr::new(0x9f000));
            apic.send_interrupt(254, 33);
            apic.send_non_maskable(2);
            let sent = [(1, 0x4500), (1, 0x469f), (254, 0x4021), (2, 0x4400)];
            assert_eq!(*apic.0.sent.borrow(), sent);
            apic.start_timer(1000);
            apic.0.set(0x39, 400);
            assert_eq!(apic.timer_count(), 400);
            assert_eq!((0..8).filter(|&group| apic.is_requested(group)).count(), 0);
            apic.0.set(0x21, 1 << 1);
            assert!(apic.is_requested(1) && !apic.is_requested(2));
            let mut registers = apic.0.registers.into_inner();
            registers.remove(&0x31);
            registers
        });
        assert_eq!(memory, msr);
        assert_eq!((msr[&0x08], msr[&0x0f]), (0, 0x1ff), "it accepts interrupts");
        assert_eq!((msr[&0x32], msr[&0x38], msr[&0x3e]), (32, 1000, 3), "its timer runs");
    }
}
