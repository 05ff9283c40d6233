//! The I/O APICs: one redirection entry per interrupt line. Lines are ACPI's global system
//! interrupts.
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};

use super::paging;
use crate::boot::acpi::{self, MAX_IO_APICS, Tables};
use crate::boot_cell::BootCell;
use crate::memory::{PAGE_SIZE, PhysAddr, PhysRange};
use crate::sync::SpinLock;

const VERSION: u32 = 1;
const REDIRECTION: u32 = 0x10;
const MASKED: u32 = 1 << 16;
const LEVEL: u32 = 1 << 15;
const ACTIVE_LOW: u32 = 1 << 13;

#[derive(Clone, Copy)]
struct Controller {
    id: u8,
    first_line: u32,
    lines: u32,
}

impl Controller {
    fn range(&self) -> Range<u32> {
        self.first_line..self.first_line + self.lines
    }
}

/// The register windows; index and data belong together, hence the lock.
struct Windows([u64; MAX_IO_APICS]);

static CONTROLLERS: BootCell<[Controller; MAX_IO_APICS]> =
    BootCell::new([Controller { id: 0, first_line: 0, lines: 0 }; MAX_IO_APICS]);
static WINDOWS: SpinLock<Windows> = SpinLock::new(Windows([0; MAX_IO_APICS]));
static LINES: AtomicU32 = AtomicU32::new(0);

impl Windows {
    fn select(&self, controller: usize, register: u32) -> *mut u32 {
        let window = self.0[controller] as *mut u32;
        // SAFETY: the window is mapped for ever, and the lock keeps others from selecting
        // meanwhile.
        unsafe { window.write_volatile(register) }
        window.wrapping_byte_add(0x10)
    }

    fn read(&self, controller: usize, register: u32) -> u32 {
        // SAFETY: as in `select`.
        unsafe { self.select(controller, register).read_volatile() }
    }

    fn write(&self, controller: usize, register: u32, value: u32) {
        // SAFETY: as in `select`; the values are those that this module means.
        unsafe { self.select(controller, register).write_volatile(value) }
    }
}

/// Maps all controllers, masks every line, and directs them to `destination` with vectors from
/// `first_vector` on, one per line, as long as vectors below `end_vector` last. Calls `reserve`
/// with the memory of each.
pub(super) fn init(
    tables: &Tables,
    destination: u32,
    first_vector: u8,
    end_vector: u8,
    mut reserve: impl FnMut(PhysRange),
) {
    let mut windows = WINDOWS.lock();
    // SAFETY: boot only, and no other reference is in use.
    let controllers = unsafe { CONTROLLERS.get_mut() };
    let most = u32::from(end_vector - first_vector);
    for (index, acpi::IoApic { id, address, first_line }) in tables.io_apics().iter().copied().enumerate() {
        windows.0[index] = paging::map_device(address, PAGE_SIZE) as u64;
        let page = PhysAddr::new(address.value());
        reserve(PhysRange::new(page, page.offset(PAGE_SIZE)));
        let pins = (windows.read(index, VERSION) >> 16 & 0xff) + 1;
        let lines = pins.min(most.saturating_sub(first_line));
        controllers[index] = Controller { id, first_line, lines };
        for pin in 0..pins {
            windows.write(index, REDIRECTION + 2 * pin, MASKED);
        }
        for pin in 0..lines {
            let line = first_line + pin;
            let signal = tables.signal(line);
            let low = MASKED
                | if signal.level { LEVEL } else { 0 }
                | if signal.active_low { ACTIVE_LOW } else { 0 }
                | (u32::from(first_vector) + line);
            windows.write(index, REDIRECTION + 2 * pin + 1, destination << 24);
            windows.write(index, REDIRECTION + 2 * pin, low);
        }
        LINES.fetch_max(first_line + lines, Ordering::Relaxed);
    }
}

/// How many interrupt lines there are. Their numbers are below this number.
pub(super) fn lines() -> u32 {
    LINES.load(Ordering::Relaxed)
}

fn find(line: u32) -> Option<(usize, u32)> {
    let index = CONTROLLERS.get().iter().position(|controller| controller.range().contains(&line))?;
    Some((index, REDIRECTION + 2 * (line - CONTROLLERS.get()[index].first_line)))
}

/// Keeps the line from interrupting. Lines that no controller has are ignored.
pub(super) fn mask(line: u32) {
    if let Some((index, register)) = find(line) {
        let windows = WINDOWS.lock();
        windows.write(index, register, windows.read(index, register) | MASKED);
    }
}

/// Lets the line interrupt. Lines that no controller has are ignored.
pub(super) fn unmask(line: u32) {
    if let Some((index, register)) = find(line) {
        let windows = WINDOWS.lock();
        windows.write(index, register, windows.read(index, register) & !MASKED);
    }
}

/// Sets the upper half of the line's entry, which says what is interrupted. The line is masked.
/// Lines that no controller has are ignored.
pub(super) fn direct(line: u32, upper_half: u32) {
    if let Some((index, register)) = find(line) {
        WINDOWS.lock().write(index, register + 1, upper_half);
    }
}

/// The vector of a line that a controller has, and whether it is triggered by its level.
pub(super) fn signal(line: u32) -> (u8, bool) {
    let lower_half = find(line).map_or(0, |(index, register)| WINDOWS.lock().read(index, register));
    (lower_half as u8, lower_half & LEVEL != 0)
}

/// The lines of the controller with this id.
pub(super) fn lines_of(id: u8) -> Option<Range<u32>> {
    controllers().find(|controller| controller.id == id).map(Controller::range)
}

/// The first line of each controller.
pub(super) fn first_lines() -> impl Iterator<Item = u32> {
    controllers().map(|controller| controller.first_line)
}

/// The controllers that have lines.
fn controllers() -> impl Iterator<Item = &'static Controller> {
    CONTROLLERS.get().iter().filter(|controller| controller.lines > 0)
}
