//! Access to a program's memory for debuggers: reads and writes that the program's own rights do
//! not restrict, as far as the memory is private to the program.

use super::{Memory, PAGE, map_error, protection};
use crate::{Error, Result};
use mach::Machine;
use mach::machine::Protection;

impl<M: Machine> Memory<M> {
    /// Reads a program's memory, even where the program may not read it. Returns how many bytes
    /// could be read, at least one. `EIO` if there are none.
    pub async fn peek(&self, address: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let at = address.wrapping_add(done as u64);
            let count = (buffer.len() - done).min((PAGE - at % PAGE) as usize);
            let part = &mut buffer[done..done + count];
            if self.copy_in(at, part).await.is_err() {
                let whole = async || self.map.copyin(at, part).await.is_ok();
                if !self.with_rights(at, Protection::READ, whole).await? {
                    break;
                }
            }
            done += count;
        }
        if done == 0 && !buffer.is_empty() { Err(Error::EIO) } else { Ok(done) }
    }

    /// Writes a program's memory, even where the program may not write it: such a page is first
    /// copied for the program alone, so that neither a file nor another program changes. Returns
    /// how many bytes could be written, at least one. `EIO` if there are none.
    pub async fn poke(&self, address: u64, bytes: &[u8]) -> Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address.wrapping_add(done as u64);
            let count = (bytes.len() - done).min((PAGE - at % PAGE) as usize);
            let part = &bytes[done..done + count];
            if self.copy_out(at, part).await.is_err() {
                let whole = async || self.map.copyout(at, part).await.is_ok();
                if !self.with_rights(at, Protection::WRITE, whole).await? {
                    break;
                }
            }
            done += count;
        }
        if done == 0 && !bytes.is_empty() { Err(Error::EIO) } else { Ok(done) }
    }

    /// Does an access to the page at `address`, which gets `access` in addition to its own rights
    /// for that time. False if the access fails, or the page is not private or not mapped.
    async fn with_rights(
        &self,
        address: u64,
        access: Protection,
        work: impl AsyncFnOnce() -> bool,
    ) -> Result<bool> {
        // No other thread changes the region meanwhile.
        let regions = self.regions.lock().await;
        let Some(region) = regions.at(address).filter(|region| !region.shared) else { return Ok(false) };
        let (page, own) = (address & !(PAGE - 1), protection(region.rights));
        let more = own | access | Protection::READ;
        if more == own {
            return Ok(false);
        }
        self.map.protect(page, PAGE, more, false).await.map_err(map_error)?;
        let done = work().await;
        self.map.protect(page, PAGE, own, false).await.map_err(map_error)?;
        Ok(done)
    }
}
