//! The calls on what is particular to the processors of PCs: the interface `mach_i386`. Programs of
//! 64 bits have no segments and no ports for input and output of their own.

use mach_interfaces::mach_i386::Server;
use message::{Array, Data};

use super::PortPersonality;
use super::call::{Answer, Call};
use super::error::{FAILURE, INVALID_ARGUMENT};
use super::state::extended_size;
use crate::machine::Machine;

impl<M: Machine, P: PortPersonality<M>> Server for Call<'_, M, P> {
    async fn i386_set_ldt(
        &mut self,
        target_thread: u64,
        _first_selector: u32,
        _desc_list: Data<u32, 512>,
    ) -> Answer {
        self.thread(target_thread)?;
        Err(FAILURE)
    }

    async fn i386_get_ldt(
        &mut self,
        target_thread: u64,
        _first_selector: u32,
        _selector_count: u32,
    ) -> Answer<Data<u32, 512>> {
        // A thread's local table has no descriptors.
        self.thread(target_thread)?;
        Array::new(&[]).map(Data::Inline).ok_or(FAILURE)
    }

    async fn i386_io_perm_create(&mut self, _master_port: u64, _from: u16, _to: u16) -> Answer<u64> {
        Err(FAILURE)
    }

    async fn i386_io_perm_modify(&mut self, target_task: u64, _io_perm: u64, _enable: u32) -> Answer {
        self.task(target_task)?;
        Err(FAILURE)
    }

    async fn i386_set_gdt(&mut self, target_thread: u64, _selector: u32, _desc: [u32; 2]) -> Answer<u32> {
        self.thread(target_thread)?;
        Err(FAILURE)
    }

    async fn i386_get_gdt(&mut self, target_thread: u64, _selector: u32) -> Answer<[u32; 2]> {
        // No selector of the global table is the thread's own.
        self.thread(target_thread)?;
        Err(INVALID_ARGUMENT)
    }

    async fn i386_get_xstate_size(&mut self, host: u64) -> Answer<u64> {
        self.host(host)?;
        Ok(extended_size(self.kernel.host().machine().extended_state_size()) as u64)
    }
}
