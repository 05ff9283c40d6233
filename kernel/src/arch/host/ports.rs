//! The model's permission bitmap: what the processor believes of one space's ports, for tests of
//! what it must forget.
use std::cell::RefCell;
use std::collections::HashMap;

use crate::memory::PhysAddr;

thread_local! {
    /// The root table of the space, and its open ports by word.
    static BITMAP: RefCell<(u64, HashMap<usize, u64>)> = RefCell::new((0, HashMap::new()));
}

/// Lets the space use the ports that are 1 in `open`, of the 64 from 64 * `word` on.
pub fn load(root: PhysAddr, word: usize, open: u64) {
    BITMAP.with_borrow_mut(|(owner, words)| {
        if *owner != root.value() {
            *owner = root.value();
            words.clear();
        }
        words.insert(word, open);
    });
}

/// Forgets the cached I/O permissions of the space.
pub fn forget(root: PhysAddr) {
    BITMAP.with_borrow_mut(|(owner, words)| {
        if *owner == root.value() {
            *owner = 0;
            words.clear();
        }
    });
}

/// Whether the space can use `port` now.
pub fn is_open(root: PhysAddr, port: u16) -> bool {
    BITMAP.with_borrow(|(owner, words)| {
        *owner == root.value()
            && words.get(&usize::from(port / 64)).is_some_and(|open| open >> (port % 64) & 1 != 0)
    })
}
