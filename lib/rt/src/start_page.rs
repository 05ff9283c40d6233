//! The page that root puts into each server's space, read-only: the server's name and arguments.
//!
//! Two words, the length of each in bytes; then the name, and behind it the arguments, both UTF-8.

use alloc::vec::Vec;

/// Where the page lies.
pub const ADDRESS: u64 = 0x7ffc_0000_0000;

/// Where the kernel interface page lies in a server's space.
pub const KIP: u64 = 0x7fff_8000_0000;

const SIZE: usize = 4096;
const HEADER: usize = 16;

/// The content of the page. `None`: they do not fit.
pub fn encode(name: &str, arguments: &str) -> Option<Vec<u8>> {
    let mut page = Vec::new();
    for text in [name, arguments] {
        page.extend_from_slice(&(text.len() as u64).to_le_bytes());
    }
    page.extend_from_slice(name.as_bytes());
    page.extend_from_slice(arguments.as_bytes());
    (page.len() <= SIZE).then_some(page)
}

/// Name and arguments in a page that [`encode`] made. `None`: it is no such page.
pub fn decode(page: &[u8]) -> Option<(&str, &str)> {
    let length = |at: usize| {
        let word = u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?);
        usize::try_from(word).ok()
    };
    let name_end = HEADER.checked_add(length(0)?)?;
    let end = name_end.checked_add(length(8)?)?;
    let text = |range| core::str::from_utf8(page.get(range)?).ok();
    Some((text(HEADER..name_end)?, text(name_end..end)?))
}

/// This server's name and arguments. For programs that root has started only: others have no such page.
#[allow(unsafe_code, reason = "the page is root's, not a Rust object")]
pub fn read() -> Option<(&'static str, &'static str)> {
    // SAFETY: root maps the page before the program starts, never unmaps or changes it while the program lives.
    decode(unsafe { core::slice::from_raw_parts(ADDRESS as *const u8, SIZE) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_arguments_arrive() {
        let page = encode("console", "speed=115200 ü").unwrap();
        assert_eq!(decode(&page), Some(("console", "speed=115200 ü")));
        assert_eq!(encode("", "").as_deref().and_then(decode), Some(("", "")));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let long = "x".repeat(SIZE - HEADER);
        assert!(encode(&long, "").is_some() && encode(&long, "y").is_none());
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[0xff; SIZE]), None);
    }
}
