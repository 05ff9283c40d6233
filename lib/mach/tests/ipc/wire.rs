//! Typed messages in the form in which programs write and read them.

use mach::ipc::Name;

pub(crate) const HEADER: usize = 32;
pub(crate) const COMPLEX: u32 = 1 << 31;

/// A message that is being written, item by item.
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn new(remote: (u32, u32), local: (u32, u32), id: i32) -> Self {
        let mut bytes = Vec::with_capacity(256);
        for word in [remote.1 | local.1 << 8, 0, remote.0, 0, local.0, 0, 0, id as u32] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        Self(bytes)
    }

    fn item(&mut self, bits: u32, number: usize, data: &[u8]) {
        self.0[3] |= (COMPLEX >> 24) as u8;
        self.0.extend_from_slice(&bits.to_le_bytes());
        self.0.extend_from_slice(&(number as u32).to_le_bytes());
        self.0.extend_from_slice(data);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
    }

    pub(crate) fn right(&mut self, name: u32, disposition: u32) {
        self.item(disposition | 64 << 8 | 1 << 29, 1, &u64::from(name).to_le_bytes());
    }

    pub(crate) fn rights(&mut self, address: u64, number: usize, disposition: u32) {
        self.item(disposition | 64 << 8, number, &address.to_le_bytes());
    }

    pub(crate) fn memory(&mut self, address: u64, bytes: usize) {
        self.item(9 | 8 << 8, bytes, &address.to_le_bytes());
    }
}

/// A received message, read at offsets.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().unwrap())
    }

    pub(crate) fn name(&self, at: usize) -> Name {
        Name(self.u32(at))
    }
}
