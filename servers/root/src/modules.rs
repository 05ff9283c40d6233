//! The type of boot modules, which contain the programs and files of servers.

/// A boot module. Root has it mapped at its physical addresses.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// The physical address of the module.
    pub start: u64,
    /// The bytes of the module.
    pub content: &'static [u8],
}

impl Module {
    /// How many bytes the module has.
    pub fn size(&self) -> u64 {
        self.content.len() as u64
    }
}
