//! The unit between devices and memory of QEMU's machine `q35` (`-device intel-iommu`), as far as
//! it remaps interrupts. Its registers need sigma0 to serve the test.

use super::failure;
use l4::{extension, sigma0};
use x2::Fpage;
use x2::extension::TableRequest;

/// Where the machine has the registers.
const REGISTERS: u64 = 0xfed9_0000;
const COMMAND: u64 = 0x18;
const STATUS: u64 = 0x1c;
const TABLE: u64 = 0xb8;
/// Bits of the command register, and of the status register that answers.
const REMAP: u32 = 1 << 25;
const SET_TABLE: u32 = 1 << 24;
/// The I/O APIC, in the name of a function that is none.
pub(crate) const IO_APIC: TableRequest = TableRequest::Lines { io_apic: 0, source: 0xff00 };

fn read(register: u64) -> u32 {
    // SAFETY: the registers are mapped, and reading them has no effect.
    unsafe { ((REGISTERS + register) as *const u32).read_volatile() }
}

fn write(register: u64, value: u32) {
    // SAFETY: the registers are mapped. The unit reads the kernel's table, and writes nothing.
    unsafe { ((REGISTERS + register) as *mut u32).write_volatile(value) }
}

fn command(command: u32) {
    write(COMMAND, command);
    while read(STATUS) & command != command {}
}

/// Has the unit use the kernel's table of interrupts from now on. It keeps nothing that it has read
/// of that. The test is skipped if the kernel has no table.
pub(crate) fn remap() {
    let Ok([table, 0]) = extension::interrupt_table(IO_APIC) else {
        failure::skip("the kernel has no table of interrupts");
    };
    // SAFETY: no Rust object lies in device memory.
    let given = unsafe { sigma0::request(Fpage::memory(REGISTERS, 12)) };
    assert_eq!(given, Ok(true), "sigma0 gives the registers");
    if read(STATUS) & REMAP == 0 {
        write(TABLE, table as u32);
        write(TABLE + 4, (table >> 32) as u32);
        command(SET_TABLE);
        command(REMAP);
        extension::interrupt_table(TableRequest::Use).expect("each I/O APIC has a source");
    }
}
