//! How a thread of a test, in any space, tells the runner that the test has ended.

use super::runner;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use l4::ipc::{self, Message};
use l4::{kip, start, utcb};

/// The text of the failure, or the reason to skip, in memory that all spaces of the program share.
static TEXT: [AtomicU8; 400] = [const { AtomicU8::new(0) }; 400];
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// Whether the outcome of the test is known. A later panic is often a consequence, of the first one
/// or of the deletion of the test's threads.
static HAS_ENDED: AtomicBool = AtomicBool::new(false);

struct Writer;

impl Write for Writer {
    fn write_str(&mut self, string: &str) -> fmt::Result {
        for byte in string.bytes() {
            let index = LENGTH.load(Ordering::Relaxed);
            let Some(place) = TEXT.get(index) else { return Ok(()) };
            place.store(if byte == b'\n' { b' ' } else { byte }, Ordering::Relaxed);
            LENGTH.store(index + 1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The text last written, byte by byte.
pub(crate) fn text() -> impl Iterator<Item = u8> {
    (0..LENGTH.load(Ordering::Relaxed)).map(|index| TEXT[index].load(Ordering::Relaxed))
}

/// Replaces the text.
pub(crate) fn set_text(arguments: fmt::Arguments<'_>) {
    LENGTH.store(0, Ordering::Relaxed);
    // Writing to the buffer cannot fail.
    let _ = Writer.write_fmt(arguments);
}

/// Prepares for the next test.
pub(crate) fn begin() {
    HAS_ENDED.store(false, Ordering::Relaxed);
}

/// Records that the test has ended: its text does not change any more.
pub(crate) fn has_ended() {
    HAS_ENDED.store(true, Ordering::Relaxed);
}

/// Skips the test, for this reason.
pub(crate) fn skip(reason: &str) -> ! {
    set_text(format_args!("{reason}"));
    end(runner::SKIPPED)
}

/// Ends the test with this label. The runner deletes the thread later.
pub(crate) fn end(label: u64) -> ! {
    // The runner receives from all threads; an error means that the test has already ended.
    let _ = ipc::send(kip().root(), Message::new(label));
    start::halt()
}

/// Any panic ends the test; one of the runner itself ends the run.
pub(crate) fn on_panic(info: &core::panic::PanicInfo<'_>) -> ! {
    if utcb::my_global_id() == kip().root() {
        l4::println!("Bail out! {info}");
        start::halt()
    }
    if !HAS_ENDED.swap(true, Ordering::Relaxed) {
        set_text(format_args!("{info}"));
    }
    end(runner::FAILED)
}
