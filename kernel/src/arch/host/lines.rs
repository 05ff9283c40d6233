//! The interrupt lines of the model: each interrupts one processor, once, when a device asserts it
//! and it is not masked, or when it is unmasked while a device asserts it.
use std::cell::Cell;

use super::cpu_local::{cpu_local, local};

/// The most interrupt lines of a model.
const MOST: usize = 64;

/// One line of the interrupt controller.
#[derive(Clone, Copy)]
struct Line {
    /// The processor that the line interrupts.
    destination: u32,
    /// Whether the line is not masked.
    open: bool,
    /// Whether a device asserts the line.
    asserted: bool,
}

thread_local! {
    static LINES: [Cell<Line>; MOST] = const { [const { Cell::new(Line { destination: 0, open: false, asserted: false }) }; MOST] };
}

fn change(line: u32, how: impl FnOnce(&mut Line)) {
    let changed = LINES.with(|lines| {
        let cell = &lines[line as usize];
        let mut changed = cell.get();
        how(&mut changed);
        cell.set(changed);
        changed
    });
    if changed.open && changed.asserted {
        raise_line(line, changed.destination);
    }
}

/// A new controller.
pub(super) fn reset() {
    (0..MOST as u32)
        .for_each(|line| change(line, |line| *line = Line { destination: 0, open: false, asserted: false }));
}

/// Masks a line.
pub fn mask_interrupt(line: u32) {
    change(line, |line| line.open = false);
}

/// Lets a line interrupt.
pub fn unmask_interrupt(line: u32) {
    change(line, |line| line.open = true);
}

/// Lets a line, which is masked, interrupt `processor` from now on.
pub fn direct_interrupt(line: u32, processor: u32) {
    change(line, |line| line.destination = processor);
}

/// Interrupts `processor` as the line does.
pub fn raise_line(line: u32, processor: u32) {
    let raised = &local(processor).lines;
    raised.set(raised.get() | 1 << line);
}

/// A device asserts the line, or does so no more.
pub fn assert_line(line: u32, asserted: bool) {
    change(line, |line| line.asserted = asserted);
}

/// Which processor the line interrupts; `None` while it is masked.
pub fn line_destination(line: u32) -> Option<u32> {
    let line = LINES.with(|lines| lines[line as usize].get());
    line.open.then_some(line.destination)
}

/// The next line that interrupts the executing processor: masked from now on.
pub fn take_line() -> Option<u32> {
    let raised = &cpu_local().lines;
    let line = raised.get().trailing_zeros();
    raised.set(raised.get() & raised.get().wrapping_sub(1));
    (line < u64::BITS).then(|| {
        mask_interrupt(line);
        line
    })
}
