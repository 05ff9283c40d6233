//! Futex words in a program's memory.

use super::{Key, Words};
use mach::Machine;
use unix::memory::Memory;
use unix::{Error, Result};

/// Access to the futex words of an address space.
pub(crate) struct MemoryWords<'a, M: Machine>(pub(crate) &'a Memory<M>);

impl<M: Machine> Words for MemoryWords<'_, M> {
    async fn key(&self, address: u64, shared: bool) -> Result<Key> {
        let private = Key::Private { space: self.0.map_id(), address };
        if !shared {
            return Ok(private);
        }
        let (object, offset) = self.0.map().memory_key(address).await.map_err(|_| Error::EFAULT)?;
        let is_own = object == self.0.map_id();
        Ok(if is_own { private } else { Key::Shared { object, offset } })
    }

    async fn load(&self, address: u64) -> Result<u32> {
        self.0.map().load_u32(address).await.map_err(|_| Error::EFAULT)
    }

    async fn exchange(&self, address: u64, current: u32, new: u32) -> Result<Result<u32, u32>> {
        self.0.map().compare_exchange_u32(address, current, new).await.map_err(|_| Error::EFAULT)
    }

    async fn load_u64(&self, address: u64) -> Result<u64> {
        Ok(u64::from_le_bytes(self.0.read(address).await?))
    }
}
