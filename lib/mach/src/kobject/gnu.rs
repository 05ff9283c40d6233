//! The calls that GNU Mach has in addition: the interface `gnumach`.

use mach_interfaces::gnumach::Server;
use message::{Array, Data, Status};

use super::PortPersonality;
use super::call::{Answer, Call};
use super::error::{FAILURE, INVALID_ARGUMENT, INVALID_CAPABILITY, RESOURCE_SHORTAGE};
use super::gsync::Place;
use super::memory::pages;
use super::object_cache::MOST;
use crate::KernError;
use crate::ipc::{Ended, Name, PortRight, Right};
use crate::machine::{Machine, Protection};
use crate::vm::VmMap;

/// The word is shared memory, which other tasks may have at other addresses.
const SHARED: u32 = 1;
/// Two words are compared.
const TWO_WORDS: u32 = 2;
/// The wait has a time-out.
const TIMED: u32 = 4;
/// All callers are woken or moved, not only the first.
const ALL: u32 = 8;
/// The word is set before callers are woken.
const STORE: u32 = 16;

/// The present mappings of `vm_wire_all`; the future ones.
const PRESENT: u32 = 1;
const FUTURE: u32 = 2;

const NO_ACCESS: Status = Status(8);
const TIMED_OUT: Status = Status(27);
const INTERRUPTED: Status = Status(28);
const INVALID_ADDRESS: Status = Status(1);

/// The place of a word in a task's memory. The word must be mapped.
async fn place<M: Machine>(map: &VmMap<M>, address: u64, flags: u32) -> Answer<Place> {
    let size = if flags & TWO_WORDS != 0 { 8 } else { 4 };
    if !address.is_multiple_of(size) {
        return Err(INVALID_ADDRESS);
    }
    if flags & SHARED != 0 {
        return map.memory_key(address).await.map_err(|_| INVALID_ADDRESS);
    }
    map.load_u32(address).await.map_err(|_| INVALID_ADDRESS)?;
    Ok((map.id(), address))
}

/// Sets a word atomically.
async fn store<M: Machine>(map: &VmMap<M>, address: u64, value: u32) -> Answer {
    let mut current = map.load_u32(address).await?;
    while let Err(other) = map.compare_exchange_u32(address, current, value).await? {
        current = other;
    }
    Ok(())
}

impl<M: Machine, P: PortPersonality<M>> Server for Call<'_, M, P> {
    async fn vm_cache_statistics(&mut self, target_task: u64) -> Answer<[u32; 11]> {
        self.task(target_task)?;
        let statistics = self.kernel.host().vm().statistics();
        let mut words = [0; 11];
        (words[0], words[1]) = (MOST as u32, self.kernel.object_cache.unused() as u32);
        (words[2], words[3]) = (statistics.active, statistics.inactive);
        Ok(words)
    }

    async fn thread_terminate_release(
        &mut self,
        thread: u64,
        task: u64,
        thread_name: u32,
        reply_port: u32,
        address: u64,
        size: u64,
    ) -> Answer {
        let (thread, task) = (self.thread(thread)?, self.task(task)?);
        let space = P::task_ports(&task).space();
        // The caller is about to end, and nothing can be done about names that it has wrong.
        if Name(thread_name).is_valid() {
            let _ = space.deallocate(Name(thread_name));
        }
        if Name(reply_port).is_valid() {
            let _ = space.modify_references(Name(reply_port), PortRight::Receive, -1);
        }
        if size > 0 {
            let (start, size) = pages(address, size)?;
            let _ = task.map().deallocate(start, size).await;
        }
        thread.terminate();
        Ok(())
    }

    async fn task_set_name(&mut self, task: u64, name: Array<u8, 64>) -> Answer {
        let task = self.task(task)?;
        P::task_ports(&task).set_name(&name);
        Ok(())
    }

    async fn register_new_task_notification(&mut self, host_priv: u64, notification: u64) -> Answer {
        self.host_control(host_priv)?;
        let right = self.right(notification);
        if !matches!(right, Right::Send(_)) {
            return Err(INVALID_CAPABILITY);
        }
        let before = {
            let mut port = self.kernel.new_tasks.lock();
            if let Right::Send(known) = &*port
                && known.copy().is_some()
            {
                return Err(NO_ACCESS);
            }
            core::mem::replace(&mut *port, right)
        };
        drop(before);
        Ok(())
    }

    async fn gsync_wait(
        &mut self,
        task: u64,
        addr: u64,
        val1: u32,
        val2: u32,
        msec: u32,
        flags: u32,
    ) -> Answer {
        let map = self.task(task)?.map().clone();
        let place = place(&map, addr, flags).await?;
        let kernel = self.kernel.clone();
        let waiter = kernel.waiters.add(place);
        let first = map.load_u32(addr).await.map_err(|_| INVALID_ADDRESS)?;
        let second = match flags & TWO_WORDS {
            0 => val2,
            _ => map.load_u32(addr + 4).await.map_err(|_| INVALID_ADDRESS)?,
        };
        if (first, second) != (val1, val2) {
            return Err(INVALID_ARGUMENT);
        }
        let machine = kernel.host().machine();
        let until = (flags & TIMED != 0).then(|| machine.now() + u64::from(msec) * 1000);
        match self.interruption.wait(machine, until, waiter.woken()).await {
            Ok(()) => Ok(()),
            Err(Ended::TimedOut) => Err(TIMED_OUT),
            Err(Ended::Interrupted) => Err(INTERRUPTED),
        }
    }

    async fn gsync_wake(&mut self, task: u64, addr: u64, val: u32, flags: u32) -> Answer {
        let map = self.task(task)?.map().clone();
        let place = place(&map, addr, flags & !TWO_WORDS).await?;
        if flags & STORE != 0 {
            store(&map, addr, val).await?;
        }
        self.kernel.waiters.wake(place, flags & ALL != 0);
        Ok(())
    }

    async fn gsync_requeue(
        &mut self,
        task: u64,
        src_addr: u64,
        dst_addr: u64,
        wake_one: u32,
        flags: u32,
    ) -> Answer {
        let map = self.task(task)?.map().clone();
        let from = place(&map, src_addr, flags & !TWO_WORDS).await?;
        let to = place(&map, dst_addr, flags & !TWO_WORDS).await?;
        if wake_one != 0 {
            self.kernel.waiters.wake(from, false);
        }
        self.kernel.waiters.requeue(from, to, flags & ALL != 0);
        Ok(())
    }

    async fn vm_wire_all(&mut self, host: u64, task: u64, flags: u32) -> Answer {
        self.host_control(host)?;
        let task = self.task(task)?;
        if flags & !(PRESENT | FUTURE) != 0 {
            return Err(INVALID_ARGUMENT);
        }
        if flags & FUTURE != 0 {
            return Err(FAILURE);
        }
        let map = task.map();
        let (mut at, end) = map.bounds();
        while at < end {
            let region = match map.region(at).await {
                Ok(region) => region,
                Err(KernError::NoSpace) => break,
                Err(error) => return Err(error.into()),
            };
            match flags {
                0 if region.wired > 0 => map.unwire(region.start, region.size).await?,
                PRESENT if region.protection != Protection::NONE => {
                    map.wire(region.start, region.size).await?
                }
                _ => {}
            }
            at = region.start + region.size;
        }
        Ok(())
    }

    async fn vm_object_sync(
        &mut self,
        object: u64,
        offset: u64,
        size: u64,
        should_flush: u32,
        should_return: u32,
        _should_iosync: u32,
    ) -> Answer {
        self.sync_memory(object, offset, size, should_flush != 0, should_return != 0).await
    }

    async fn vm_msync(&mut self, target_task: u64, address: u64, size: u64, sync_flags: u32) -> Answer {
        const ASYNCHRONOUS: u32 = 1;
        const SYNCHRONOUS: u32 = 2;
        let map = self.task(target_task)?.map().clone();
        if sync_flags & (ASYNCHRONOUS | SYNCHRONOUS) == ASYNCHRONOUS | SYNCHRONOUS {
            return Err(INVALID_ARGUMENT);
        }
        if size == 0 {
            return Ok(());
        }
        let (mut at, size) = pages(address, size)?;
        let end = at + size;
        while at < end {
            let region = map.region(at).await?;
            if region.start > at {
                return Err(INVALID_ADDRESS);
            }
            let until = end.min(region.start + region.size);
            if region.shared {
                let (object, offset) = map.shared_object(at).await?;
                object.clean(offset, offset + (until - at)).await?;
            }
            at = until;
        }
        Ok(())
    }

    async fn vm_allocate_contiguous(
        &mut self,
        host_priv: u64,
        target_task: u64,
        _size: u64,
        _pmin: u64,
        _pmax: u64,
        _palign: u64,
    ) -> Answer<(u64, u64)> {
        self.host_control(host_priv)?;
        self.task(target_task)?;
        Err(FAILURE)
    }

    async fn task_set_essential(&mut self, task: u64, _essential: u32) -> Answer {
        // The mark tells a kernel that it may panic when the task ends, which this library never
        // does.
        self.task(task)?;
        Ok(())
    }

    async fn vm_pages_phys(
        &mut self,
        host_priv: u64,
        target_task: u64,
        _vaddr: u64,
        _size: u64,
    ) -> Answer<Data<u64, 256>> {
        self.host_control(host_priv)?;
        self.task(target_task)?;
        Err(FAILURE)
    }

    async fn thread_set_name(&mut self, thread: u64, name: Array<u8, 64>) -> Answer {
        let thread = self.thread(thread)?;
        P::thread_ports(&thread).set_name(&name);
        Ok(())
    }

    async fn thread_get_name(&mut self, thread: u64) -> Answer<Array<u8, 64>> {
        let thread = self.thread(thread)?;
        Array::new(&P::thread_ports(&thread).name()).ok_or(RESOURCE_SHORTAGE)
    }

    async fn vm_set_size_limit(
        &mut self,
        _host_port: u64,
        map: u64,
        _current_limit: u64,
        _max_limit: u64,
    ) -> Answer {
        self.task(map)?;
        Err(FAILURE)
    }

    async fn vm_get_size_limit(&mut self, map: u64) -> Answer<(u64, u64)> {
        let (lowest, highest) = self.task(map)?.map().bounds();
        Ok((highest - lowest, highest - lowest))
    }
}
