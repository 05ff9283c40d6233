//! Machine attributes of memory: `vm_machine_attribute`.

use super::{VmMap, page_range};
use crate::machine::Machine;
use crate::{KernError, KernResult};

/// An attribute of memory, with Mach's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MachineAttribute {
    /// Whether the memory is cached.
    Cache = 1,
    /// Whether a page may move between memory nodes.
    Migrate = 2,
    /// Whether a page may be copied to several memory nodes.
    Replicate = 4,
}

/// An operation on an attribute, with Mach's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum AttributeValue {
    /// Switch the attribute off.
    Off = 0,
    /// Switch the attribute on.
    On = 1,
    /// Return the attribute's value.
    Get = 2,
    /// Write the caches back and empty them.
    CacheFlush = 6,
    /// Empty the data cache.
    DataCacheFlush = 7,
    /// Empty the instruction cache.
    InstructionCacheFlush = 8,
    /// Make the caches consistent after instructions have been written.
    CacheSync = 9,
}

impl<M: Machine> VmMap<M> {
    /// Gets or sets an attribute of mapped memory. Returns its value after the call.
    ///
    /// Caches are coherent on x86-64, so flushing them does nothing. Memory is always cached
    /// (device memory as its object says), and there is one memory node.
    ///
    /// # Errors
    /// `InvalidArgument`, `InvalidAddress`: the range. `NotSupported`: a change that the machine
    /// cannot make.
    pub async fn machine_attribute(
        &self,
        start: u64,
        size: u64,
        attribute: MachineAttribute,
        value: AttributeValue,
    ) -> KernResult<AttributeValue> {
        let (start, end) = page_range(start, size)?;
        if !Self::is_mapped(&*self.look().await?, start, end) {
            return Err(KernError::InvalidAddress);
        }
        match (attribute, value) {
            (MachineAttribute::Cache, AttributeValue::Off) => Err(KernError::NotSupported),
            (MachineAttribute::Cache, _) => Ok(AttributeValue::On),
            (_, AttributeValue::Get | AttributeValue::Off) => Ok(AttributeValue::Off),
            _ => Err(KernError::NotSupported),
        }
    }
}
