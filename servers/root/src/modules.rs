//! The boot modules that servers are made from.

/// A boot module in physical memory, which root has at its physical addresses.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// Its physical address.
    pub start: u64,
    /// What it contains.
    pub content: &'static [u8],
}

impl Module {
    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.content.len() as u64
    }
}
