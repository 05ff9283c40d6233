//! The calls on a task's memory.

use alloc::vec::Vec;

use message::{Memory, Status};

use super::PortPersonality;
use super::call::{Answer, Call};
use super::error::{FAILURE, INVALID_ARGUMENT, RESOURCE_SHORTAGE};
use crate::ipc::{Item, pages_around};
use crate::machine::{Machine, PAGE_SIZE, Protection};
use crate::vm::{AttributeValue, Inheritance, MachineAttribute, MapCopy, MapRequest, Placement, VmMap};
use crate::{KernError, KernResult};

/// The rights to memory that a number means.
pub(super) fn protection(number: u32) -> Answer<Protection> {
    let number = u8::try_from(number).ok();
    number.and_then(Protection::from_bits).ok_or(INVALID_ARGUMENT)
}

/// The inheritance that a number means.
pub(super) fn inheritance(number: u32) -> Answer<Inheritance> {
    match number {
        0 => Ok(Inheritance::Share),
        1 => Ok(Inheritance::Copy),
        2 => Ok(Inheritance::None),
        _ => Err(INVALID_ARGUMENT),
    }
}

pub(super) fn number_of(inheritance: Inheritance) -> u32 {
    match inheritance {
        Inheritance::Share => 0,
        Inheritance::Copy => 1,
        Inheritance::None => 2,
    }
}

fn attribute_of(number: u32) -> Answer<MachineAttribute> {
    let all = [MachineAttribute::Cache, MachineAttribute::Migrate, MachineAttribute::Replicate];
    all.into_iter().find(|attribute| *attribute as u32 == number).ok_or(INVALID_ARGUMENT)
}

fn value_of(number: u32) -> Answer<AttributeValue> {
    use AttributeValue::{CacheFlush, CacheSync, DataCacheFlush, Get, InstructionCacheFlush, Off, On};
    let all = [Off, On, Get, CacheFlush, DataCacheFlush, InstructionCacheFlush, CacheSync];
    all.into_iter().find(|value| *value as u32 == number).ok_or(INVALID_ARGUMENT)
}

/// The pages that a range of bytes touches.
pub(super) fn pages(address: u64, size: u64) -> Answer<(u64, u64)> {
    pages_around(address, size).ok_or(Status(KernError::InvalidAddress.code()))
}

/// Where a new range is placed.
fn placement(address: u64, anywhere: bool) -> Placement {
    let start = address & !(PAGE_SIZE - 1);
    if anywhere { Placement::Above(start) } else { Placement::Fixed(start) }
}

/// Reads `bytes.len()` bytes of a copy of pages, from the offset `at` on.
pub(super) async fn read_copy<M: Machine>(copy: &MapCopy<M>, at: usize, bytes: &mut [u8]) -> KernResult {
    copy.read(at as u64, bytes).await
}

impl<M: Machine, P: PortPersonality<M>> Call<'_, M, P> {
    /// Takes memory out of line of the request as bytes: `memory.count` elements of `size` bytes.
    /// There may be at most `most` elements.
    pub(super) async fn input(&mut self, memory: Memory, size: usize, most: usize) -> Answer<Vec<u8>> {
        let count = memory.count as usize;
        if count > most {
            return Err(INVALID_ARGUMENT);
        }
        let length = count * size;
        match self.take(memory.address) {
            Item::Bytes(bytes) if bytes.len() == length => Ok(bytes),
            Item::Empty if length == 0 => Ok(Vec::new()),
            Item::Pages(copy, offset) => {
                self.pay(length)?;
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(length).map_err(|_| RESOURCE_SHORTAGE)?;
                bytes.resize(length, 0);
                read_copy(&copy, offset, &mut bytes).await?;
                Ok(bytes)
            }
            _ => Err(INVALID_ARGUMENT),
        }
    }

    pub(super) async fn allocate_memory(
        &self,
        map: &VmMap<M>,
        address: u64,
        size: u64,
        anywhere: bool,
    ) -> Answer<u64> {
        if size == 0 {
            return Ok(0);
        }
        let address = if anywhere { 0 } else { address };
        Ok(map.allocate(placement(address, anywhere), size).await?)
    }

    pub(super) async fn deallocate_memory(&self, map: &VmMap<M>, address: u64, size: u64) -> Answer {
        if size == 0 {
            return Ok(());
        }
        let (start, size) = pages(address, size)?;
        Ok(map.deallocate(start, size).await?)
    }

    pub(super) async fn protect_memory(
        &self,
        map: &VmMap<M>,
        (address, size): (u64, u64),
        set_maximum: bool,
        new: u32,
    ) -> Answer {
        let new = protection(new)?;
        if size == 0 {
            return Ok(());
        }
        let (start, size) = pages(address, size)?;
        Ok(map.protect(start, size, new, set_maximum).await?)
    }

    pub(super) async fn inherit_memory(&self, map: &VmMap<M>, address: u64, size: u64, new: u32) -> Answer {
        let new = inheritance(new)?;
        if size == 0 {
            return Ok(());
        }
        let (start, size) = pages(address, size)?;
        Ok(map.inherit(start, size, new).await?)
    }

    pub(super) async fn read_memory(&mut self, map: &VmMap<M>, address: u64, size: u64) -> Answer<Memory> {
        let count = u32::try_from(size).map_err(|_| RESOURCE_SHORTAGE)?;
        if size == 0 {
            return Ok(Memory { address: 0, count: 0, deallocate: true });
        }
        let (start, length) = pages(address, size)?;
        let copy = map.read(start, length).await?.into_fresh();
        self.pay(copy.bytes())?;
        let number = self.add(Item::Pages(copy, (address - start) as usize));
        Ok(Memory { address: number, count, deallocate: true })
    }

    pub(super) async fn write_memory(&mut self, map: &VmMap<M>, address: u64, data: Memory) -> Answer {
        let length = u64::from(data.count);
        match self.take(data.address) {
            Item::Pages(copy, 0) if address.is_multiple_of(PAGE_SIZE) && copy.size() == length => {
                map.write(address, copy).await?;
            }
            Item::Pages(copy, offset) => {
                let mut page = [0; PAGE_SIZE as usize];
                let mut done = 0;
                while done < length {
                    let count = (length - done).min(PAGE_SIZE) as usize;
                    read_copy(&copy, offset + done as usize, &mut page[..count]).await?;
                    write_bytes(map, address, done, &page[..count]).await?;
                    done += count as u64;
                }
            }
            Item::Bytes(bytes) => write_bytes(map, address, 0, &bytes).await?,
            Item::Empty if length == 0 => {}
            _ => return Err(INVALID_ARGUMENT),
        }
        Ok(())
    }

    pub(super) async fn copy_memory(&self, map: &VmMap<M>, from: u64, size: u64, to: u64) -> Answer {
        if size == 0 {
            return Ok(());
        }
        if [from, size, to].iter().all(|number| number.is_multiple_of(PAGE_SIZE)) {
            return Ok(map.copy(from, size, to).await?);
        }
        // The source is read as it is now, because the ranges may overlap.
        let (start, length) = pages(from, size)?;
        let copy = map.read(start, length).await?;
        let mut page = [0; PAGE_SIZE as usize];
        let mut done = 0;
        while done < size {
            let count = (size - done).min(PAGE_SIZE) as usize;
            read_copy(&copy, (from - start + done) as usize, &mut page[..count]).await?;
            write_bytes(map, to, done, &page[..count]).await?;
            done += count as u64;
        }
        Ok(())
    }

    /// The results of `vm_region`, except for the name of the memory object.
    pub(super) async fn memory_region(
        &self,
        map: &VmMap<M>,
        address: u64,
    ) -> Answer<(u64, u64, u32, u32, u32, u32, u64, u64)> {
        let region = map.region(address).await?;
        let (_, offset) = region.object.unwrap_or_default();
        Ok((
            region.start,
            region.size,
            u32::from(region.protection.bits()),
            u32::from(region.max_protection.bits()),
            number_of(region.inheritance),
            u32::from(region.shared),
            0,
            offset,
        ))
    }

    pub(super) fn memory_statistics(&self) -> [u32; 13] {
        let statistics = self.kernel.host().vm().statistics();
        let mut words = [0; 13];
        words[0] = PAGE_SIZE as u32;
        words[1..5].copy_from_slice(&[
            statistics.free,
            statistics.active,
            statistics.inactive,
            statistics.wired,
        ]);
        words
    }

    /// Maps what `request` says: `vm_map`. `rights` are the present and the most rights, and the
    /// inheritance.
    pub(super) async fn map_memory(
        &self,
        map: &VmMap<M>,
        request: MapRequest<M>,
        address: u64,
        mask: u64,
        anywhere: bool,
        (current, most, inherited): (u32, u32, u32),
    ) -> Answer<u64> {
        let alignment = mask.checked_add(1).filter(|size| size.is_power_of_two()).ok_or(INVALID_ARGUMENT)?;
        let alignment = alignment.max(PAGE_SIZE);
        let (current, most) = (protection(current)?, protection(most)?);
        if request.size == 0 || !anywhere && !address.is_multiple_of(alignment) {
            return Err(INVALID_ARGUMENT);
        }
        let request = MapRequest {
            alignment,
            protection: current,
            max_protection: most,
            inheritance: inheritance(inherited)?,
            ..request.at(placement(address, anywhere))
        };
        Ok(map.map(&request).await?)
    }

    pub(super) async fn memory_attribute(
        &self,
        map: &VmMap<M>,
        (address, size): (u64, u64),
        attribute: u32,
        value: u32,
    ) -> Answer<u32> {
        let (attribute, value) = (attribute_of(attribute)?, value_of(value)?);
        let (start, size) = pages(address, size)?;
        match map.machine_attribute(start, size, attribute, value).await {
            Ok(value) => Ok(value as i32 as u32),
            Err(KernError::NotSupported) => Err(FAILURE),
            Err(error) => Err(error.into()),
        }
    }
}

/// Writes bytes at `done` bytes after an address.
async fn write_bytes<M: Machine>(map: &VmMap<M>, address: u64, done: u64, bytes: &[u8]) -> Answer {
    let at = address.checked_add(done).ok_or(Status(KernError::InvalidAddress.code()))?;
    map.copyout(at, bytes).await.map_err(|fault| fault.error.into())
}
