//! The implementation of [`Machine`] by system calls, sigma0 and I/O instructions.

use crate::boot_modules;
use crate::console;
use core::fmt;
use core::ops::Range;
use l4::direct::Direct;
use l4::ipc::{self, Message};
use l4::thread::{self, Result, ThreadControl};
use l4::{extension, kip, port, sigma0, space, utcb};
use root::machine::{Machine, MachineEnd};
use root::requests::Answer;
use root::step::{self, Step};
use x2::control::UNCHANGED;
use x2::extension::{MapItem, MapOperation, SpaceOption};
use x2::{Fpage, IpcError, Rights, ThreadId, Time};

/// Bytes of free heap below which root refuses requests: more than one step of any request needs.
const HEADROOM: usize = 64 << 10;
/// The I/O port of QEMU's debug-exit device.
const DEBUG_EXIT: u16 = 0xf4;
/// The PM1a control register, at the port where the firmware of QEMU's machines puts it, and the
/// value that switches the machine off (sleep type 0, enable).
const POWER_CONTROL: u16 = 0x604;
const POWER_OFF: u16 = 1 << 13;
/// The chipset's reset register, and the value that resets the machine fully.
const RESET_CONTROL: u16 = 0xcf9;
const RESET: u8 = 6;
/// The keyboard controller's command register, and the command that pulses the reset line.
const KEYBOARD: u16 = 0x64;
const KEYBOARD_RESET: u8 = 0xfe;
/// The two ports of PCI's configuration mechanism 1: the address of a register, and its value.
const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
const ENABLE: u32 = 1 << 31;

/// The machine on which root runs.
#[derive(Clone, Copy)]
pub(crate) struct L4;

impl Machine for L4 {
    fn caller(&self) -> ThreadId {
        utcb::my_global_id()
    }

    fn processor(&self) -> u32 {
        utcb::processor_number() as u32
    }

    fn processors(&self) -> u32 {
        kip().processor_info().processors
    }

    fn now(&self) -> u64 {
        thread::system_clock()
    }

    fn message_interrupts(&self) -> Range<u32> {
        kip().message_interrupts()
    }

    fn has_headroom(&self) -> bool {
        let mut room = alloc::vec::Vec::<u8>::new();
        let there_is = room.try_reserve_exact(HEADROOM).is_ok();
        // Without `black_box` the compiler would remove the allocation.
        core::hint::black_box(&mut room);
        there_is
    }

    fn report(&mut self, line: fmt::Arguments<'_>) {
        console::report(line);
    }

    fn thread_control(&mut self, thread: ThreadId, arguments: ThreadControl) -> Result<()> {
        thread::control(thread, arguments)
    }

    fn set_areas(&mut self, space: ThreadId, kernel_interface: Fpage, utcbs: Fpage) -> Result<()> {
        space::control(space, 0, kernel_interface, utcbs, ThreadId::ANY).map(drop)
    }

    fn space_options(&mut self, space: ThreadId, option: SpaceOption, values: [u64; 2]) -> Result<[u64; 2]> {
        extension::space_options(space, option, values)
    }

    fn set_exception_handler(&mut self, thread: ThreadId, handler: ThreadId) -> Result<()> {
        extension::set_handlers(thread, Some(handler), None)
    }

    fn schedule(&mut self, thread: ThreadId, processor: Option<u64>, priority: u8) -> Result<()> {
        let processor = processor.unwrap_or(UNCHANGED);
        thread::schedule(thread, UNCHANGED, processor, priority.into(), UNCHANGED).map(drop)
    }

    fn start(
        &mut self,
        thread: ThreadId,
        ip: u64,
        sp: u64,
        timeout: Time,
    ) -> core::result::Result<(), IpcError> {
        ipc::send_timeout(thread, Message::with_words(0, &[ip, sp]), timeout)
    }

    fn reply(&mut self, to: ThreadId, asked: ThreadId, answer: Answer) {
        let mut registers = Direct::default();
        let mut tag = answer.write(&mut registers);
        if asked != self.caller() {
            utcb::set_virtual_sender(asked);
            tag = tag.with_propagated(true);
        }
        let _ = registers.reply(to, tag);
    }

    fn perform(&mut self, step: &Step) -> step::Result {
        match *step {
            Step::Fill { start, size, content } => {
                self.write_memory(start..start + size, content);
                Ok(())
            }
            Step::Map { thread, run, rights } => {
                let target = Fpage::memory(run.address, run.size_log2).with_rights(rights);
                map_control(thread, MapItem::new(MapOperation::Map, target, run.count, run.source))
            }
            Step::Unmap { thread, run } => {
                let target = Fpage::memory(run.address, run.size_log2).with_rights(Rights::ALL);
                map_control(thread, MapItem::new(MapOperation::Unmap, target, run.count, 0))
            }
            Step::End(threads) => threads.into_iter().flatten().try_for_each(thread::delete),
            Step::Pause => {
                ipc::sleep(Time::period(100));
                Ok(())
            }
        }
    }

    fn write_memory(&mut self, memory: Range<u64>, bytes: &[u8]) {
        let size = (memory.end - memory.start) as usize;
        let rest = size.checked_sub(bytes.len()).expect("the bytes fit into the memory");
        let start = memory.start as *mut u8;
        // SAFETY: sigma0 has given root this memory, it is mapped here, no other space has it, and
        // there are no references to it. Both parts lie within it.
        unsafe {
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
            core::ptr::write_bytes(start.add(bytes.len()), 0, rest);
        }
    }

    fn request_memory(&mut self, start: u64, size: u64) -> bool {
        boot_modules::map(start, size).is_some()
    }

    fn request_ports(&mut self, ports: Fpage) -> bool {
        sigma0::request_ports(ports) == Ok(true)
    }

    fn read_configuration(&self, place: u32, register: u8) -> u32 {
        // SAFETY: reading configuration space has no effect on the devices of this machine, and no
        // other code uses the two ports.
        unsafe {
            port::write32(ADDRESS, ENABLE | place | u32::from(register));
            port::read32(DATA)
        }
    }

    fn write_configuration(&mut self, place: u32, register: u8, value: u32) {
        // SAFETY: `root::pci` never lets a device access memory other than that of its driver.
        unsafe {
            port::write32(ADDRESS, ENABLE | place | u32::from(register));
            port::write32(DATA, value);
        }
    }

    fn write_register(&mut self, address: u64, value: u32) {
        // SAFETY: the register is a device's, which `request_memory` has mapped here, and no other
        // code writes to it.
        unsafe { (address as *mut u32).write_volatile(value) }
    }

    fn read_register(&self, address: u64) -> u32 {
        // SAFETY: the register is a device's, which `request_memory` has mapped here. Root reads
        // only registers of IOMMUs, and reading them has no effect.
        unsafe { (address as *const u32).read_volatile() }
    }

    fn read_word(&self, address: u64) -> u64 {
        // SAFETY: sigma0 has given root this memory, it is mapped here, no other space has it, and
        // there are no references to it.
        unsafe { (address as *const u64).read_volatile() }
    }

    fn write_word(&mut self, address: u64, value: u64) {
        // SAFETY: as for `read_word`. `root::iommu` lets devices reach memory of their drivers
        // only.
        unsafe { (address as *mut u64).write_volatile(value) }
    }

    fn write_back(&mut self, address: u64, size: u64) {
        const LINE: u64 = 64;
        for line in (address & !(LINE - 1)..address + size).step_by(LINE as usize) {
            // SAFETY: the memory is mapped here; writing a line back changes nothing that programs
            // see.
            unsafe { core::arch::x86_64::_mm_clflush(line as *const u8) }
        }
        // SAFETY: a fence changes nothing that programs see.
        unsafe { core::arch::x86_64::_mm_mfence() }
    }

    fn leave_screen(&mut self) {
        l4::console::leave_screen();
    }

    fn end(&mut self, how: MachineEnd) {
        match how {
            // SAFETY: the system was asked to end, and ends here. sigma0 gives root every port.
            MachineEnd::PowerOff { status } => unsafe {
                port::write32(DEBUG_EXIT, status.into());
                port::write16(POWER_CONTROL, POWER_OFF);
            },
            // SAFETY: the system was asked to end, and ends here. sigma0 gives root every port.
            MachineEnd::Reset => unsafe {
                port::write8(RESET_CONTROL, RESET);
                port::write8(KEYBOARD, KEYBOARD_RESET);
            },
        }
    }
}

fn map_control(thread: ThreadId, item: MapItem) -> step::Result {
    extension::map_control(thread, &mut [item]).map_err(|(_, error)| error)
}
