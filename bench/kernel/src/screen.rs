//! The screen in text mode, as a BIOS leaves it: 25 rows of 80 characters. Where there is no such
//! screen (after UEFI) nothing of this is seen, and the report is on the serial port alone.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::Row;
use l4::sigma0;
use x2::Fpage;

const ADDRESS: u64 = 0xb8000;
const ROWS: usize = 25;
const COLUMNS: usize = 80;
/// Light grey on black.
const COLOUR: u16 = 0x0700;

static PRESENT: AtomicBool = AtomicBool::new(false);

/// A place on the screen where text goes; what does not fit into the row is lost.
struct Place {
    row: usize,
    column: usize,
    end: usize,
}

impl Write for Place {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.row < ROWS && self.column < self.end && PRESENT.load(Ordering::Relaxed) {
                let cell = (ADDRESS as usize + 2 * (self.row * COLUMNS + self.column)) as *mut u16;
                // SAFETY: within the screen's memory, which sigma0 has given to this program alone.
                unsafe { cell.write_volatile(COLOUR | u16::from(byte)) };
                self.column += 1;
            }
        }
        Ok(())
    }
}

fn print(row: usize, column: usize, end: usize, text: fmt::Arguments<'_>) {
    // A place never fails.
    let _ = Place { row, column, end }.write_fmt(text);
}

/// Gets the screen's memory and clears it.
pub(crate) fn clear() {
    // SAFETY: the memory is a device's.
    let given = unsafe { sigma0::request(Fpage::memory(ADDRESS, 12)) };
    PRESENT.store(given == Ok(true), Ordering::Relaxed);
    for row in 0..ROWS {
        print(row, 0, COLUMNS, format_args!("{:80}", ""));
    }
}

/// Says what is being measured.
pub(crate) fn progress(count: usize, test: &str) {
    print(0, 0, COLUMNS, format_args!("Macadamia: {count:3} measured, {test:54}"));
}

/// The report, as much of it as there is room for: operations without a parameter, and the others
/// at the smallest.
pub(crate) fn show(rows: &[Row], khz: u64, reliable: bool) {
    let verdict = if reliable {
        "the clocks agree; all is on the serial port"
    } else {
        "THE CLOCKS DISAGREE: figures mean nothing"
    };
    print(0, 0, COLUMNS, format_args!("Median cycles at {khz} kHz; {verdict} {:40}", ""));
    let mut shown = 0;
    for (index, row) in rows.iter().enumerate() {
        // Tests that are compared take turns at each parameter.
        if rows[..index].iter().all(|before| before.test != row.test) {
            let (line, half) = (1 + shown % (ROWS - 1), shown / (ROWS - 1) * (COLUMNS / 2));
            let end = half + COLUMNS / 2 - 1;
            if half < COLUMNS {
                print(line, half, end, format_args!("{:<31.31}{:>8}", row.test, row.median));
            }
            shown += 1;
        }
    }
}
