//! The calls on tasks, threads and memory: the interface `mach`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach_interfaces::mach::Server;
use message::{Array, Memory};

use super::call::{Answer, Call};
use super::error::{FAILURE, INVALID_ARGUMENT, INVALID_CAPABILITY};
use super::info::Words;
use super::pager_calls::{Supply, lock_request};
use super::ports::{REGISTERED, Which, is_send_or_null};
use super::{PortPersonality, state};
use crate::ipc::{Item, Right};
use crate::machine::{ExecutionContext, Machine, Times};
use crate::task::Task;
use crate::thread::{Policy, Thread, ThreadInfo};
use crate::vm::{MapRequest, PageAnswer, VmMap};

/// The most addresses of emulated calls that a task can have.
const MOST_VECTORS: usize = 4096;

impl<M: Machine, P: PortPersonality<M>> Call<'_, M, P> {
    fn map(&self, number: u64) -> Answer<Arc<VmMap<M>>> {
        Ok(self.task(number)?.map().clone())
    }

    /// Takes a send right, or no right, out of the request.
    fn send_right(&mut self, number: u64) -> Answer<Right<M>> {
        match self.right(number) {
            right if is_send_or_null(&right) => Ok(right),
            _ => Err(INVALID_CAPABILITY),
        }
    }

    async fn task_words(&self, task: &Arc<Task<M, P>>, flavor: u32, room: usize) -> Answer<Array<u32, 1024>> {
        const BASIC: u32 = 1;
        const EVENTS: u32 = 2;
        const TIMES: u32 = 3;
        /// The words without the times with nanoseconds, which callers of the first form leave out.
        const BASIC_LEAST: usize = 18;
        const TIMES_LEAST: usize = 8;
        let mut words = Words::new();
        match flavor {
            BASIC => {
                let info = task.info().await?;
                let (lowest, highest) = task.map().bounds();
                let resident = task.map().resident_pages(lowest, highest).await * crate::machine::PAGE_SIZE;
                let (ended, created) = (info.ended_time, P::task_ports(task).created);
                words.word(info.suspend_count).word(u32::from(info.base));
                words.long(info.virtual_size).long(resident);
                words.time(ended).time(0).time(created).time64(ended).time64(0).time64(created);
                words.answer(room, BASIC_LEAST)
            }
            EVENTS => {
                // The library counts no events.
                (0..7).for_each(|_| {
                    words.long(0);
                });
                words.answer(room, 14)
            }
            TIMES => {
                let Times { program, server } = times(task);
                words.time(program).time(server).time64(program).time64(server);
                words.answer(room, TIMES_LEAST)
            }
            _ => Err(INVALID_ARGUMENT),
        }
    }

    fn thread_words(&self, thread: &Thread<M, P>, flavor: u32, room: usize) -> Answer<Array<u32, 1024>> {
        const BASIC: u32 = 1;
        const SCHEDULING: u32 = 2;
        const BASIC_LEAST: usize = 19;
        let info = thread.info()?;
        let mut words = Words::new();
        match flavor {
            BASIC => {
                let Times { program, server } = thread.machine_thread().times();
                let created = P::thread_ports(thread).created;
                words.time(program).time(server).word(u32::from(info.usage) * 10);
                words.word(u32::from(info.base)).word(u32::from(info.level)).word(run_state(&info));
                words.word(0).word(info.suspend_count).word(0);
                words.time(created).time64(program).time64(server).time64(created);
                words.answer(room, BASIC_LEAST)
            }
            SCHEDULING => {
                let (policy, data) = match info.policy {
                    Policy::TimeSharing => (1, 0),
                    Policy::FixedPriority { slice } => (2, slice / 1000),
                };
                words.word(policy).word(data).word(u32::from(info.base));
                words.word(u32::from(info.most_urgent)).word(u32::from(info.level));
                // No depression of the priority is in effect.
                words.word(u32::MAX).word(info.processor as u32);
                words.answer(room, 6)
            }
            _ => Err(INVALID_ARGUMENT),
        }
    }
}

/// The processor time of a task's living threads.
fn times<M: Machine, P: PortPersonality<M>>(task: &Task<M, P>) -> Times {
    let mut sum = Times::default();
    for thread in task.threads() {
        let Times { program, server } = thread.machine_thread().times();
        (sum.program, sum.server) = (sum.program + program, sum.server + server);
    }
    sum
}

/// The number of a thread's state: running, or stopped.
fn run_state(info: &ThreadInfo) -> u32 {
    if info.runnable { 1 } else { 2 }
}

impl<M: Machine, P: PortPersonality<M>> Server for Call<'_, M, P> {
    async fn task_create(&mut self, target_task: u64, inherit_memory: u32) -> Answer<u64> {
        let parent = self.task(target_task)?;
        let task = self.kernel.create_task(&parent, inherit_memory != 0).await?;
        let right = P::task_ports(&task).port();
        Ok(self.give(right))
    }

    async fn task_terminate(&mut self, target_task: u64) -> Answer {
        let task = self.task(target_task)?;
        task.terminate().await;
        Ok(())
    }

    async fn task_get_emulation_vector(&mut self, task: u64) -> Answer<(u32, Memory)> {
        let task = self.task(task)?;
        let (first, entries) = P::task_ports(&task).emulation();
        self.pay(entries.len() * 8)?;
        let bytes = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        Ok((first as u32, self.give_bytes(bytes, entries.len())))
    }

    async fn task_set_emulation_vector(
        &mut self,
        task: u64,
        vector_start: u32,
        emulation_vector: Memory,
    ) -> Answer {
        let task = self.task(task)?;
        let bytes = self.input(emulation_vector, 8, MOST_VECTORS).await?;
        let (entries, _) = bytes.as_chunks::<8>();
        let entries: Vec<u64> = entries.iter().map(|entry| u64::from_le_bytes(*entry)).collect();
        Ok(P::task_ports(&task).set_emulation(vector_start as i32, &entries, MOST_VECTORS)?)
    }

    async fn task_threads(&mut self, target_task: u64) -> Answer<Memory> {
        let threads = self.task(target_task)?.threads();
        self.give_rights(threads.iter().map(|thread| P::thread_ports(thread).port()).collect())
    }

    async fn task_info(
        &mut self,
        target_task: u64,
        flavor: u32,
        task_info_out_room: usize,
    ) -> Answer<Array<u32, 1024>> {
        let task = self.task(target_task)?;
        self.task_words(&task, flavor, task_info_out_room).await
    }

    async fn thread_terminate(&mut self, target_thread: u64) -> Answer {
        self.thread(target_thread)?.terminate();
        Ok(())
    }

    async fn thread_get_state(
        &mut self,
        target_thread: u64,
        flavor: u32,
        old_state_room: usize,
    ) -> Answer<Array<u32, 1024>> {
        let thread = self.thread(target_thread)?;
        state::get(&thread, flavor, old_state_room).await
    }

    async fn thread_set_state(
        &mut self,
        target_thread: u64,
        flavor: u32,
        new_state: Array<u32, 1024>,
    ) -> Answer {
        let thread = self.thread(target_thread)?;
        state::set(&thread, flavor, &new_state).await
    }

    async fn thread_info(
        &mut self,
        target_thread: u64,
        flavor: u32,
        thread_info_out_room: usize,
    ) -> Answer<Array<u32, 1024>> {
        let thread = self.thread(target_thread)?;
        self.thread_words(&thread, flavor, thread_info_out_room)
    }

    async fn vm_allocate(&mut self, target_task: u64, address: u64, size: u64, anywhere: u32) -> Answer<u64> {
        let map = self.map(target_task)?;
        self.allocate_memory(&map, address, size, anywhere != 0).await
    }

    async fn vm_deallocate(&mut self, target_task: u64, address: u64, size: u64) -> Answer {
        let map = self.map(target_task)?;
        self.deallocate_memory(&map, address, size).await
    }

    async fn vm_protect(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
        set_maximum: u32,
        new_protection: u32,
    ) -> Answer {
        let map = self.map(target_task)?;
        self.protect_memory(&map, (address, size), set_maximum != 0, new_protection).await
    }

    async fn vm_inherit(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
        new_inheritance: u32,
    ) -> Answer {
        let map = self.map(target_task)?;
        self.inherit_memory(&map, address, size, new_inheritance).await
    }

    async fn vm_read(&mut self, target_task: u64, address: u64, size: u64) -> Answer<Memory> {
        let map = self.map(target_task)?;
        self.read_memory(&map, address, size).await
    }

    async fn vm_write(&mut self, target_task: u64, address: u64, data: Memory) -> Answer {
        let map = self.map(target_task)?;
        self.write_memory(&map, address, data).await
    }

    async fn vm_copy(
        &mut self,
        target_task: u64,
        source_address: u64,
        size: u64,
        dest_address: u64,
    ) -> Answer {
        let map = self.map(target_task)?;
        self.copy_memory(&map, source_address, size, dest_address).await
    }

    async fn vm_region(
        &mut self,
        target_task: u64,
        address: u64,
    ) -> Answer<(u64, u64, u32, u32, u32, u32, u64, u64)> {
        let map = self.map(target_task)?;
        self.memory_region(&map, address).await
    }

    async fn vm_statistics(&mut self, target_task: u64) -> Answer<[u32; 13]> {
        self.task(target_task)?;
        Ok(self.memory_statistics())
    }

    async fn mach_ports_register(&mut self, target_task: u64, init_port_set: Memory) -> Answer {
        let task = self.task(target_task)?;
        let rights = match self.take(init_port_set.address) {
            Item::Rights(rights) => rights,
            Item::Empty => Vec::new(),
            _ => return Err(INVALID_ARGUMENT),
        };
        if rights.len() > REGISTERED {
            return Err(INVALID_ARGUMENT);
        }
        if !rights.iter().all(is_send_or_null) {
            return Err(INVALID_CAPABILITY);
        }
        let mut all: [Right<M>; REGISTERED] = Default::default();
        all.iter_mut().zip(rights).for_each(|(place, right)| *place = right);
        P::task_ports(&task).register(all);
        Ok(())
    }

    async fn mach_ports_lookup(&mut self, target_task: u64) -> Answer<Memory> {
        let task = self.task(target_task)?;
        self.give_rights(Vec::from(P::task_ports(&task).registered()))
    }

    async fn memory_object_data_provided(
        &mut self,
        control: u64,
        offset: u64,
        data: Memory,
        lock_value: u32,
    ) -> Answer {
        self.supply(Supply { control, offset, data, lock_value, precious: false, reply_to: 0 }).await
    }

    async fn memory_object_data_unavailable(&mut self, control: u64, offset: u64, size: u64) -> Answer {
        self.without_data(control, offset, size, PageAnswer::Zeros)
    }

    async fn memory_object_get_attributes(&mut self, control: u64) -> Answer<(u32, u32, u32)> {
        let (ready, may_cache, strategy) = self.memory_control(control)?.attributes();
        Ok((ready.into(), may_cache.into(), strategy))
    }

    async fn vm_set_default_memory_manager(&mut self, host_priv: u64, _manager: u64) -> Answer<u64> {
        self.host_control(host_priv)?;
        Err(FAILURE)
    }

    async fn memory_object_lock_request(
        &mut self,
        control: u64,
        offset: u64,
        size: u64,
        should_return: u32,
        should_flush: u32,
        lock_value: u32,
        reply_to: u64,
        _reply_to_type: u32,
    ) -> Answer {
        let request = lock_request(should_return, should_flush != 0, lock_value)?;
        self.lock_memory(control, offset, size, request, reply_to).await
    }

    async fn task_suspend(&mut self, target_task: u64) -> Answer {
        Ok(self.task(target_task)?.suspend()?)
    }

    async fn task_resume(&mut self, target_task: u64) -> Answer {
        Ok(self.task(target_task)?.resume()?)
    }

    async fn task_get_special_port(&mut self, task: u64, which_port: u32) -> Answer<u64> {
        let task = self.task(task)?;
        let right = P::task_ports(&task).special(Which::of(which_port)?);
        Ok(self.give(right))
    }

    async fn task_set_special_port(&mut self, task: u64, which_port: u32, special_port: u64) -> Answer {
        let task = self.task(task)?;
        let which = Which::of(which_port)?;
        let right = self.send_right(special_port)?;
        P::task_ports(&task).set_special(which, right);
        Ok(())
    }

    async fn thread_create(&mut self, parent_task: u64) -> Answer<u64> {
        let task = self.task(parent_task)?;
        let thread = self.kernel.create_thread(&task).await?;
        let right = P::thread_ports(&thread).port();
        Ok(self.give(right))
    }

    async fn thread_suspend(&mut self, target_thread: u64) -> Answer {
        Ok(self.thread(target_thread)?.suspend()?)
    }

    async fn thread_resume(&mut self, target_thread: u64) -> Answer {
        Ok(self.thread(target_thread)?.resume()?)
    }

    async fn thread_abort(&mut self, target_thread: u64) -> Answer {
        let thread = self.thread(target_thread)?;
        P::interrupt(&thread);
        Ok(())
    }

    async fn thread_get_special_port(&mut self, thread: u64, which_port: u32) -> Answer<u64> {
        let thread = self.thread(thread)?;
        let right = P::thread_ports(&thread).special(thread_port(which_port)?);
        Ok(self.give(right))
    }

    async fn thread_set_special_port(&mut self, thread: u64, which_port: u32, special_port: u64) -> Answer {
        let thread = self.thread(thread)?;
        let which = thread_port(which_port)?;
        let right = self.send_right(special_port)?;
        P::thread_ports(&thread).set_special(which, right);
        Ok(())
    }

    async fn task_set_emulation(
        &mut self,
        target_port: u64,
        routine_entry_pt: u64,
        routine_number: u32,
    ) -> Answer {
        let task = self.task(target_port)?;
        let (number, entry) = (routine_number as i32, [routine_entry_pt]);
        Ok(P::task_ports(&task).set_emulation(number, &entry, MOST_VECTORS)?)
    }

    async fn task_ras_control(
        &mut self,
        target_task: u64,
        _basepc: u64,
        _boundspc: u64,
        _flavor: u32,
    ) -> Answer {
        self.task(target_task)?;
        Err(FAILURE)
    }

    async fn vm_map(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
        mask: u64,
        anywhere: u32,
        memory_object: u64,
        offset: u64,
        copy: u32,
        cur_protection: u32,
        max_protection: u32,
        inheritance: u32,
    ) -> Answer<u64> {
        let map = self.map(target_task)?;
        let object = match memory_object {
            0 => None,
            object => Some((self.mapped_object(target_task, object, offset, size).await?, offset)),
        };
        let request = MapRequest { object, copy: copy != 0, ..MapRequest::anonymous(size) };
        let rights = (cur_protection, max_protection, inheritance);
        self.map_memory(&map, request, address, mask, anywhere != 0, rights).await
    }

    async fn memory_object_data_error(
        &mut self,
        control: u64,
        offset: u64,
        size: u64,
        _error_value: u32,
    ) -> Answer {
        self.without_data(control, offset, size, PageAnswer::Failed)
    }

    async fn memory_object_destroy(&mut self, control: u64, _reason: u32) -> Answer {
        self.memory_control(control)?.destroy();
        Ok(())
    }

    async fn memory_object_data_supply(
        &mut self,
        control: u64,
        offset: u64,
        data: Memory,
        lock_value: u32,
        precious: u32,
        reply_to: u64,
        _reply_to_type: u32,
    ) -> Answer {
        let precious = precious != 0;
        self.supply(Supply { control, offset, data, lock_value, precious, reply_to }).await
    }

    async fn memory_object_ready(&mut self, control: u64, may_cache: u32, copy_strategy: u32) -> Answer {
        self.memory_control(control)?.set_attributes(true, may_cache != 0, copy_strategy);
        Ok(())
    }

    async fn memory_object_set_attributes(
        &mut self,
        control: u64,
        object_ready: u32,
        may_cache: u32,
        copy_strategy: u32,
    ) -> Answer {
        self.memory_control(control)?.set_attributes(object_ready != 0, may_cache != 0, copy_strategy);
        Ok(())
    }

    async fn memory_object_set_cluster_size(&mut self, control: u64, cluster_size: u64) -> Answer {
        self.set_cluster(control, cluster_size)
    }

    async fn memory_object_change_attributes(
        &mut self,
        control: u64,
        may_cache: u32,
        copy_strategy: u32,
        reply_to: u64,
        _reply_to_type: u32,
    ) -> Answer {
        self.change_attributes(control, may_cache, copy_strategy, reply_to).await
    }

    async fn vm_machine_attribute(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
        attribute: u32,
        value: u32,
    ) -> Answer<u32> {
        let map = self.map(target_task)?;
        self.memory_attribute(&map, (address, size), attribute, value).await
    }
}

/// The special port of a thread that a number means.
fn thread_port(number: u32) -> Answer<Which> {
    match Which::of(number)? {
        Which::Bootstrap => Err(INVALID_ARGUMENT),
        which => Ok(which),
    }
}
