//! The page that root puts into each server's space, read-only: the server's name and arguments,
//! and root's threads.
//!
//! It begins with three words: the length of the name in bytes, the length of the arguments, and
//! the number of root's threads. The id of root's thread for each processor follows, then the name
//! and the arguments, both UTF-8.

use alloc::vec::Vec;
use l4::x2::ThreadId;

/// The address of the start page in a server's space.
pub const ADDRESS: u64 = 0x7ffc_0000_0000;

/// The address of the kernel interface page in a server's space.
pub const KIP: u64 = 0x7fff_8000_0000;

const SIZE: usize = 4096;
const HEADER: usize = 24;

/// The content of a start page. `None`: the name, the arguments and the ids of root's threads do
/// not fit.
pub fn encode(name: &str, arguments: &str, roots: &[ThreadId]) -> Option<Vec<u8>> {
    let mut page = Vec::new();
    for length in [name.len(), arguments.len(), roots.len()] {
        page.extend_from_slice(&(length as u64).to_le_bytes());
    }
    for root in roots {
        page.extend_from_slice(&root.raw().to_le_bytes());
    }
    page.extend_from_slice(name.as_bytes());
    page.extend_from_slice(arguments.as_bytes());
    (page.len() <= SIZE).then_some(page)
}

fn word(page: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(page.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// The name and the arguments in a page that [`encode`] has made. `None`: the page is malformed.
pub fn decode(page: &[u8]) -> Option<(&str, &str)> {
    let length = |at: usize| usize::try_from(word(page, at)?).ok();
    let name_begin = length(16)?.checked_mul(8)?.checked_add(HEADER)?;
    let name_end = name_begin.checked_add(length(0)?)?;
    let end = name_end.checked_add(length(8)?)?;
    let text = |range| core::str::from_utf8(page.get(range)?).ok();
    Some((text(name_begin..name_end)?, text(name_end..end)?))
}

/// Root's thread for a processor, in a page that [`encode`] has made.
fn root_in(page: &[u8], processor: usize) -> Option<ThreadId> {
    let count = usize::try_from(word(page, 16)?).ok()?;
    if processor < count { word(page, HEADER + 8 * processor).map(ThreadId::from_raw) } else { None }
}

/// This server's name and arguments. May only be called in programs that root has started: others
/// have no such page.
pub fn read() -> Option<(&'static str, &'static str)> {
    decode(page())
}

/// The thread of root's that serves the processor on which the caller runs now; if there is none,
/// the caller's pager. All of root's threads serve all requests; a message to this one stays on the
/// caller's processor.
pub fn root() -> ThreadId {
    root_in(page(), l4::utcb::processor_number() as usize).unwrap_or_else(l4::utcb::pager)
}

#[allow(unsafe_code, reason = "the page is root's, not a Rust object")]
fn page() -> &'static [u8] {
    // SAFETY: root maps the page before the program starts, and never unmaps or changes it while
    // the program exists.
    unsafe { core::slice::from_raw_parts(ADDRESS as *const u8, SIZE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_arguments_are_read_from_the_page_as_they_were_written() {
        let page = encode("console", "speed=115200 ü", &[]).unwrap();
        assert_eq!(decode(&page), Some(("console", "speed=115200 ü")));
        assert_eq!(encode("", "", &[]).as_deref().and_then(decode), Some(("", "")));
    }

    #[test]
    fn each_processor_has_a_thread_of_roots_or_none() {
        let roots = [3, 5].map(ThreadId::interrupt);
        let page = encode("a", "b", &roots).unwrap();
        assert_eq!(decode(&page), Some(("a", "b")));
        assert_eq!([0, 1, 2].map(|number| root_in(&page, number)), [Some(roots[0]), Some(roots[1]), None]);
        assert_eq!(root_in(&page, usize::MAX), None);
    }

    #[test]
    fn a_text_that_does_not_fit_and_a_damaged_page_are_refused() {
        let long = "x".repeat(SIZE - HEADER);
        assert!(encode(&long, "", &[]).is_some() && encode(&long, "y", &[]).is_none());
        assert!(encode(&long, "", &[ThreadId::NIL]).is_none());
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[0xff; SIZE]), None);
        assert_eq!(root_in(&[0xff; SIZE], SIZE), None);
    }
}
