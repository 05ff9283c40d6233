//! The calls for debuggers: the interface `mach_debug`.

use mach_interfaces::mach_debug::Server;
use message::{Array, Data, Element, Memory};

use super::call::{Answer, Call};
use super::error::{FAILURE, INVALID_ARGUMENT};
use super::memory::number_of;
use super::{Object, PortPersonality};
use crate::ipc::Name;
use crate::machine::Machine;

/// A table without entries.
fn nothing<T: Element, const N: usize>() -> Answer<Data<T, N>> {
    Array::new(&[]).map(Data::Inline).ok_or(FAILURE)
}

impl<M: Machine, P: PortPersonality<M>> Server for Call<'_, M, P> {
    async fn mach_port_get_srights(&mut self, task: u64, name: u32) -> Answer<u32> {
        Ok(self.space(task)?.send_rights(Name(name))?)
    }

    async fn host_ipc_marequest_info(&mut self, host: u64, _room: usize) -> Answer<(u32, Data<u32, 512>)> {
        // Requests are kept with the names and messages, not in a table.
        self.host(host)?;
        Ok((0, nothing()?))
    }

    async fn mach_port_dnrequest_info(&mut self, task: u64, name: u32) -> Answer<(u32, u32)> {
        let (total, used) = self.space(task)?.dead_name_requests(Name(name))?;
        Ok((total as u32, used as u32))
    }

    async fn host_stack_usage(&mut self, host: u64) -> Answer<(u64, u32, u64, u64, u64, u64)> {
        // Threads have no stacks in the library: a call that waits is a future.
        self.host(host)?;
        Ok((0, 0, 0, 0, 0, 0))
    }

    async fn processor_set_stack_usage(&mut self, pset: u64) -> Answer<(u32, u64, u64, u64, u64)> {
        self.set_name(pset)?;
        Ok((0, 0, 0, 0, 0))
    }

    async fn host_virtual_physical_table_info(&mut self, host: u64, _room: usize) -> Answer<Data<u32, 512>> {
        // The machine below has no such table.
        self.host(host)?;
        nothing()
    }

    async fn mach_port_kernel_object(&mut self, task: u64, name: u32) -> Answer<(u32, u64)> {
        let object = self.space(task)?.kernel_object(Name(name))?;
        let object = object.and_then(Object::<M, P>::of);
        Ok(object.map_or((0, 0), |object| object.identity()))
    }

    async fn mach_vm_region_info(&mut self, task: u64, address: u64) -> Answer<([u64; 8], u64)> {
        let region = self.task(task)?.map().region(address).await?;
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let (object, offset) = region.object.unwrap_or_default();
        let rights = pair(u32::from(region.protection.bits()), u32::from(region.max_protection.bits()));
        let wired = u32::from(region.wired);
        let info = [
            region.start,
            region.start + region.size,
            rights,
            pair(number_of(region.inheritance), wired),
            pair(wired, 0),
            object,
            offset,
            pair(0, u32::from(region.shared)),
        ];
        Ok((info, 0))
    }

    async fn mach_vm_object_info(&mut self, _object: u64) -> Answer<([u64; 12], u64, u64)> {
        // No port names a memory object yet.
        Err(INVALID_ARGUMENT)
    }

    async fn mach_vm_object_pages(&mut self, _object: u64, _room: usize) -> Answer<Data<u64, 256>> {
        Err(INVALID_ARGUMENT)
    }

    async fn host_slab_info(&mut self, host: u64, _room: usize) -> Answer<Data<u64, 255>> {
        // The library's memory comes from the heap of its server, which has no caches.
        self.host(host)?;
        nothing()
    }

    async fn host_load_symbol_table(
        &mut self,
        host: u64,
        _task: u64,
        _name: Array<u8, 32>,
        _symtab: Memory,
    ) -> Answer {
        self.host_control(host)?;
        Err(FAILURE)
    }

    async fn mach_vm_object_pages_phys(&mut self, _object: u64, _room: usize) -> Answer<Data<u64, 256>> {
        Err(INVALID_ARGUMENT)
    }
}
