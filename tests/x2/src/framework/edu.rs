//! QEMU's device for teaching, `-device edu` (1234:11e8): a PCI device that interrupts when it is
//! told to, by a message once it knows one. Its registers need sigma0 to serve the test.

use super::failure;
use l4::extension::InterruptMessage;
use l4::{port, sigma0};
use x2::Fpage;

/// The ports of PCI configuration mechanism 1: the address of a register, and its value.
const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
const ENABLE: u32 = 1 << 31;
/// Registers of configuration space.
const IDENTITY: u32 = 0;
const COMMAND: u32 = 4;
const BASE_ADDRESS: u32 = 0x10;
const CAPABILITIES: u32 = 0x34;

const EDU: u32 = 0x11e8_1234;
/// Bits of the command register: the device answers to memory accesses, and may write to memory,
/// which messages are.
const MEMORY_AND_MASTER: u32 = 6;
/// The capability for messages, and bits of its first word: messages are enabled; the address has
/// 64 bits.
const MESSAGES: u32 = 5;
const MESSAGES_ON: u32 = 1 << 16;
const WIDE_ADDRESS: u32 = 1 << 23;

/// Registers of the device: the one that raises an interrupt, and the one that clears it.
const RAISE: u64 = 0x60;
const CLEAR: u64 = 0x64;

/// The device. Any thread of the root task's space can use it.
#[derive(Clone, Copy)]
pub(crate) struct Edu {
    /// The device's place in configuration space.
    function: u32,
    /// The offset of the device's capability for messages.
    capability: u32,
    /// The address at which the device's registers are mapped.
    registers: u64,
}

fn read(function: u32, register: u32) -> u32 {
    // SAFETY: reading configuration space has no effect on this machine's devices.
    unsafe {
        port::write32(ADDRESS, ENABLE | function | register);
        port::read32(DATA)
    }
}

fn write(function: u32, register: u32, value: u32) {
    // SAFETY: only registers of this device are written, and the device writes to memory only to
    // interrupt.
    unsafe {
        port::write32(ADDRESS, ENABLE | function | register);
        port::write32(DATA, value);
    }
}

impl Edu {
    /// Finds the device of this kind, which sends no messages yet. The test is skipped if the
    /// machine has none.
    pub(crate) fn find() -> Self {
        let functions = (0..32).map(|device| device << 11);
        let Some(function) = functions.into_iter().find(|&function| read(function, IDENTITY) == EDU) else {
            failure::skip("this machine has no device that interrupts by messages");
        };
        write(function, COMMAND, read(function, COMMAND) | MEMORY_AND_MASTER);
        let mut capability = read(function, CAPABILITIES) & 0xfc;
        while capability != 0 && read(function, capability) & 0xff != MESSAGES {
            capability = read(function, capability) >> 8 & 0xfc;
        }
        assert_ne!(capability, 0, "the device can send messages");
        let registers = u64::from(read(function, BASE_ADDRESS) & !0xf);
        // SAFETY: no Rust object lies in device memory.
        let given = unsafe { sigma0::request(Fpage::memory(registers, 12)) };
        assert_eq!(given, Ok(true), "sigma0 gives the registers at {registers:#x}");
        let device = Self { function, capability, registers };
        write(function, capability, read(function, capability) & !MESSAGES_ON);
        device.set(CLEAR, u32::MAX);
        device
    }

    /// Bus, device and function of the device, in whose name it sends messages.
    pub(crate) fn place(self) -> u16 {
        (self.function >> 8) as u16
    }

    /// Makes the device interrupt by `message`.
    pub(crate) fn use_message(self, message: InterruptMessage) {
        let Self { function, capability, .. } = self;
        let control = read(function, capability);
        write(function, capability, control & !MESSAGES_ON);
        write(function, capability + 4, message.address as u32);
        let data_at = if control & WIDE_ADDRESS == 0 {
            capability + 8
        } else {
            write(function, capability + 8, (message.address >> 32) as u32);
            capability + 12
        };
        write(function, data_at, message.data as u32);
        write(function, capability, control | MESSAGES_ON);
    }

    /// Makes the device interrupt once.
    pub(crate) fn raise(self) {
        self.set(RAISE, 1);
    }

    fn set(self, register: u64, value: u32) {
        // SAFETY: the registers are mapped, and the store changes only the device.
        unsafe { ((self.registers + register) as *mut u32).write_volatile(value) }
    }
}
