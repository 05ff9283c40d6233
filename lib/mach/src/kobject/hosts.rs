//! The calls on the host, processors and processor sets, and on scheduling: the interface
//! `mach_host`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach_interfaces::mach_host::Server;
use message::{Array, Memory};

use super::PortPersonality;
use super::call::{Answer, Call};
use super::error::{FAILURE, INVALID_ARGUMENT, RESOURCE_SHORTAGE};
use super::info::Words;
use super::memory::{pages, protection};
use crate::machine::{Machine, PAGE_SIZE, Protection};
use crate::processor_set::ProcessorSet;
use crate::task::Task;
use crate::thread::{LEVELS, Policy, Thread};

/// The type of the processors: those of PCs from the Pentium Pro on.
const PROCESSOR_TYPE: u32 = 19;
const PROCESSOR_SUBTYPE: u32 = 1;
/// The scale of load averages.
const LOAD_SCALE: u64 = 1000;
/// The numbers of scheduling policies.
const TIME_SHARING: u32 = 1;
const FIXED_PRIORITY: u32 = 2;
/// The name and the version of the system.
const VERSION: &str = concat!("Macadamia ", env!("CARGO_PKG_VERSION"), ": Mach 3");

type Set<M> = Arc<ProcessorSet<M>>;

/// A level of priority that a number means.
fn level(number: u32) -> Answer<u8> {
    u8::try_from(number).ok().filter(|&level| level < LEVELS).ok_or(INVALID_ARGUMENT)
}

/// Two words as a time in seconds and microseconds, in microseconds.
fn microseconds([seconds, rest]: [u64; 2]) -> Answer<u64> {
    let rest = u64::from(rest as u32);
    let total = seconds.checked_mul(1_000_000).and_then(|whole| whole.checked_add(rest));
    total.filter(|_| rest < 1_000_000).ok_or(INVALID_ARGUMENT)
}

/// Two words as a difference of times in seconds and microseconds, in microseconds.
fn difference([seconds, rest]: [u64; 2]) -> Answer<i64> {
    let rest = i64::from(rest as u32 as i32);
    let total = (seconds as i64).checked_mul(1_000_000).and_then(|whole| whole.checked_add(rest));
    total.ok_or(INVALID_ARGUMENT)
}

impl<M: Machine, P: PortPersonality<M>> Call<'_, M, P> {
    /// The tasks of a processor set.
    fn tasks_of(&self, set: &Set<M>) -> Vec<Arc<Task<M, P>>> {
        let mut tasks = self.kernel.host().tasks();
        tasks.retain(|task| Arc::ptr_eq(&task.processor_set(), set));
        tasks
    }

    fn threads_of(&self, set: &Set<M>) -> Vec<Arc<Thread<M, P>>> {
        let mut threads: Vec<_> = self.kernel.host().tasks().iter().flat_map(|task| task.threads()).collect();
        threads.retain(|thread| Arc::ptr_eq(&thread.processor_set(), set));
        threads
    }

    /// The load of processors by threads and what is left of the processors, scaled. The load is
    /// the part of a processor that each thread has used lately.
    fn load(threads: &[Arc<Thread<M, P>>], processors: usize) -> (u32, u32) {
        let usage = threads.iter().filter_map(|thread| thread.info().ok());
        let load = usage.map(|info| u64::from(info.usage)).sum::<u64>() * LOAD_SCALE / 100;
        let processors = processors as u64;
        let factor = match load.checked_sub(processors * LOAD_SCALE) {
            None => processors * LOAD_SCALE - load,
            Some(_) => processors * LOAD_SCALE * LOAD_SCALE / (load + LOAD_SCALE),
        };
        (load as u32, factor as u32)
    }

    fn now(&self) -> u64 {
        self.kernel.host().machine().now()
    }

    fn adjust(&self, by: i64) -> i64 {
        let now = self.now();
        self.kernel.clock.lock().adjust(now, by)
    }

    fn host_words(&self, flavor: u32, room: usize) -> Answer<Array<u32, 1024>> {
        const BASIC: u32 = 1;
        const SLOTS: u32 = 2;
        const SCHEDULING: u32 = 3;
        const LOAD: u32 = 4;
        let host = self.kernel.host();
        let processors = host.machine().processors();
        let mut words = Words::new();
        let least = match flavor {
            BASIC => {
                let pages = host.vm().statistics();
                let pages = [pages.free, pages.active, pages.inactive, pages.wired].map(u64::from);
                words.word(processors as u32).word(processors as u32);
                words.long(pages.iter().sum::<u64>() * PAGE_SIZE);
                words.word(PROCESSOR_TYPE).word(PROCESSOR_SUBTYPE);
                6
            }
            SLOTS => {
                (0..processors as u32).for_each(|slot| {
                    words.word(slot);
                });
                processors
            }
            SCHEDULING => {
                words.word(1).word((host.time_slice() / 1000).max(1));
                2
            }
            LOAD => {
                let threads: Vec<_> = host.tasks().iter().flat_map(|task| task.threads()).collect();
                let (load, factor) = Self::load(&threads, processors);
                for word in [load, load, load, factor, factor, factor] {
                    words.word(word);
                }
                6
            }
            _ => return Err(INVALID_ARGUMENT),
        };
        words.answer(room, least)
    }

    fn set_words(&self, set: &Set<M>, flavor: u32, room: usize) -> Answer<Array<u32, 1024>> {
        const BASIC: u32 = 1;
        const SCHEDULING: u32 = 2;
        let mut words = Words::new();
        let least = match flavor {
            BASIC => {
                let (processors, threads) = (set.processors().len(), self.threads_of(set));
                let (load, factor) = Self::load(&threads, processors);
                words.word(processors as u32).word(self.tasks_of(set).len() as u32);
                words.word(threads.len() as u32).word(load).word(factor);
                5
            }
            SCHEDULING => {
                let fixed = if set.allows_fixed_priority() { 1 << (FIXED_PRIORITY - 1) } else { 0 };
                words.word(1 << (TIME_SHARING - 1) | fixed).word(u32::from(set.most_urgent()));
                2
            }
            _ => return Err(INVALID_ARGUMENT),
        };
        words.answer(room, least)
    }
}

impl<M: Machine, P: PortPersonality<M>> Server for Call<'_, M, P> {
    async fn host_processors(&mut self, host_priv: u64) -> Answer<Memory> {
        self.host_control(host_priv)?;
        let rights = self.kernel.processor_rights();
        self.give_rights(rights)
    }

    async fn processor_start(&mut self, processor: u64) -> Answer {
        self.processor(processor)?;
        Err(FAILURE)
    }

    async fn processor_exit(&mut self, processor: u64) -> Answer {
        self.processor(processor)?;
        Err(FAILURE)
    }

    async fn processor_set_default(&mut self, host: u64) -> Answer<u64> {
        self.host(host)?;
        let right = self.kernel.set_name(self.kernel.host().default_set());
        Ok(self.give(right))
    }

    async fn processor_set_create(&mut self, host: u64) -> Answer<(u64, u64)> {
        self.host_control(host)?;
        let set = self.kernel.create_set()?;
        let (control, name) = (self.kernel.set_control(&set), self.kernel.set_name(&set));
        Ok((self.give(control), self.give(name)))
    }

    async fn processor_set_destroy(&mut self, set: u64) -> Answer {
        let set = self.set(set)?;
        Ok(self.kernel.destroy_set(&set)?)
    }

    async fn processor_assign(&mut self, processor: u64, new_set: u64, _wait: u32) -> Answer {
        let (processor, set) = (self.processor(processor)?, self.set(new_set)?);
        Ok(self.kernel.host().assign_processor(processor, &set)?)
    }

    async fn processor_get_assignment(&mut self, processor: u64) -> Answer<u64> {
        let processor = self.processor(processor)?;
        let sets = self.kernel.host().processor_sets();
        let set = sets.iter().find(|set| set.processors().contains(&processor)).ok_or(FAILURE)?;
        let right = self.kernel.set_name(set);
        Ok(self.give(right))
    }

    async fn thread_assign(&mut self, thread: u64, new_set: u64) -> Answer {
        let (thread, set) = (self.thread(thread)?, self.set(new_set)?);
        Ok(thread.assign(&set)?)
    }

    async fn thread_assign_default(&mut self, thread: u64) -> Answer {
        let thread = self.thread(thread)?;
        Ok(thread.assign(self.kernel.host().default_set())?)
    }

    async fn thread_get_assignment(&mut self, thread: u64) -> Answer<u64> {
        let set = self.thread(thread)?.processor_set();
        let right = self.kernel.set_name(&set);
        Ok(self.give(right))
    }

    async fn task_assign(&mut self, task: u64, new_set: u64, assign_threads: u32) -> Answer {
        let (task, set) = (self.task(task)?, self.set(new_set)?);
        Ok(task.assign(&set, assign_threads != 0)?)
    }

    async fn task_assign_default(&mut self, task: u64, assign_threads: u32) -> Answer {
        let task = self.task(task)?;
        Ok(task.assign(self.kernel.host().default_set(), assign_threads != 0)?)
    }

    async fn task_get_assignment(&mut self, task: u64) -> Answer<u64> {
        let set = self.task(task)?.processor_set();
        let right = self.kernel.set_name(&set);
        Ok(self.give(right))
    }

    async fn thread_priority(&mut self, thread: u64, priority: u32, set_max: u32) -> Answer {
        Ok(self.thread(thread)?.set_base(level(priority)?, set_max != 0)?)
    }

    async fn thread_max_priority(&mut self, thread: u64, processor_set: u64, max_priority: u32) -> Answer {
        let (thread, set) = (self.thread(thread)?, self.set(processor_set)?);
        if !Arc::ptr_eq(&thread.processor_set(), &set) {
            return Err(FAILURE);
        }
        Ok(thread.set_most_urgent(level(max_priority)?)?)
    }

    async fn task_priority(&mut self, task: u64, priority: u32, change_threads: u32) -> Answer {
        let (task, base) = (self.task(task)?, level(priority)?);
        task.set_base_level(base).map_err(|_| FAILURE)?;
        if change_threads != 0 {
            for thread in task.threads() {
                thread.set_base(base, false)?;
            }
        }
        Ok(())
    }

    async fn processor_set_max_priority(
        &mut self,
        processor_set: u64,
        max_priority: u32,
        change_threads: u32,
    ) -> Answer {
        let (set, most) = (self.set(processor_set)?, level(max_priority)?);
        set.set_most_urgent(most)?;
        if change_threads != 0 {
            for thread in self.threads_of(&set) {
                // A thread that has ended meanwhile has no priority.
                let _ = thread.set_most_urgent(most);
            }
        }
        Ok(())
    }

    async fn thread_policy(&mut self, thread: u64, policy: u32, data: u32) -> Answer {
        let thread = self.thread(thread)?;
        let policy = match policy {
            TIME_SHARING => Policy::TimeSharing,
            FIXED_PRIORITY => {
                Policy::FixedPriority { slice: data.checked_mul(1000).ok_or(INVALID_ARGUMENT)? }
            }
            _ => return Err(INVALID_ARGUMENT),
        };
        Ok(thread.choose_policy(policy)?)
    }

    async fn processor_set_policy_enable(&mut self, processor_set: u64, policy: u32) -> Answer {
        let set = self.set(processor_set)?;
        match policy {
            TIME_SHARING => Ok(()),
            FIXED_PRIORITY => {
                set.allow_fixed_priority(true);
                Ok(())
            }
            _ => Err(INVALID_ARGUMENT),
        }
    }

    async fn processor_set_policy_disable(
        &mut self,
        processor_set: u64,
        policy: u32,
        change_threads: u32,
    ) -> Answer {
        let set = self.set(processor_set)?;
        // Time sharing is what threads have that may have nothing else.
        if policy != FIXED_PRIORITY {
            return Err(INVALID_ARGUMENT);
        }
        set.allow_fixed_priority(false);
        if change_threads != 0 {
            for thread in self.threads_of(&set) {
                // A thread that has ended meanwhile has no policy.
                let _ = thread.choose_policy(Policy::TimeSharing);
            }
        }
        Ok(())
    }

    async fn processor_set_tasks(&mut self, processor_set: u64) -> Answer<Memory> {
        let set = self.set(processor_set)?;
        let rights = self.tasks_of(&set).iter().map(|task| P::task_ports(task).port()).collect();
        self.give_rights(rights)
    }

    async fn processor_set_threads(&mut self, processor_set: u64) -> Answer<Memory> {
        let set = self.set(processor_set)?;
        let rights = self.threads_of(&set).iter().map(|thread| P::thread_ports(thread).port()).collect();
        self.give_rights(rights)
    }

    async fn host_processor_sets(&mut self, host: u64) -> Answer<Memory> {
        self.host(host)?;
        let sets = self.kernel.host().processor_sets();
        let rights = sets.iter().map(|set| self.kernel.set_name(set)).collect();
        self.give_rights(rights)
    }

    async fn host_processor_set_priv(&mut self, host_priv: u64, set_name: u64) -> Answer<u64> {
        self.host_control(host_priv)?;
        let set = self.set_name(set_name)?;
        let right = self.kernel.set_control(&set);
        Ok(self.give(right))
    }

    async fn thread_depress_abort(&mut self, thread: u64) -> Answer {
        // The library depresses no priority: a thread that gives way has done so when it goes on.
        self.thread(thread)?;
        Ok(())
    }

    async fn host_set_time(&mut self, host_priv: u64, new_time: [u64; 2]) -> Answer {
        self.host_control(host_priv)?;
        let (time, now) = (microseconds(new_time)?, self.now());
        self.kernel.clock.lock().set(now, time);
        Ok(())
    }

    async fn host_adjust_time(&mut self, host_priv: u64, new_adjustment: [u64; 2]) -> Answer<[u64; 2]> {
        self.host_control(host_priv)?;
        let left = self.adjust(difference(new_adjustment)?);
        Ok([(left / 1_000_000) as u64, (left % 1_000_000) as u64 & u64::from(u32::MAX)])
    }

    async fn host_get_time(&mut self, host: u64) -> Answer<[u64; 2]> {
        self.host(host)?;
        let time = self.kernel.time_of_day();
        Ok([time / 1_000_000, time % 1_000_000])
    }

    async fn host_reboot(&mut self, host_priv: u64, options: u32) -> Answer {
        self.host_control(host_priv)?;
        Ok(self.kernel.environment()?.reboot(options)?)
    }

    async fn vm_wire(&mut self, host: u64, task: u64, address: u64, size: u64, access: u32) -> Answer {
        self.host_control(host)?;
        let (task, access) = (self.task(task)?, protection(access)?);
        if size == 0 {
            return Ok(());
        }
        let (start, size) = pages(address, size)?;
        let done = match access {
            Protection::NONE => task.map().unwire(start, size).await,
            _ => task.map().wire(start, size).await,
        };
        Ok(done?)
    }

    async fn thread_wire(&mut self, host_priv: u64, thread: u64, wired: u32) -> Answer {
        self.host_control(host_priv)?;
        self.thread(thread)?.task().map().set_privileged(wired != 0);
        Ok(())
    }

    async fn host_info(
        &mut self,
        host: u64,
        flavor: u32,
        host_info_out_room: usize,
    ) -> Answer<Array<u32, 1024>> {
        self.host(host)?;
        self.host_words(flavor, host_info_out_room)
    }

    async fn processor_info(
        &mut self,
        processor: u64,
        flavor: u32,
        processor_info_out_room: usize,
    ) -> Answer<(u64, Array<u32, 1024>)> {
        const BASIC: u32 = 1;
        let processor = self.processor_name(processor)?;
        if flavor != BASIC {
            return Err(INVALID_ARGUMENT);
        }
        let mut words = Words::new();
        words.word(PROCESSOR_TYPE).word(PROCESSOR_SUBTYPE).word(1).word(processor as u32);
        words.word(u32::from(processor == 0));
        let words = words.answer(processor_info_out_room, 5)?;
        let host = self.kernel.host_right();
        Ok((self.give(host), words))
    }

    async fn processor_set_info(
        &mut self,
        set_name: u64,
        flavor: u32,
        info_out_room: usize,
    ) -> Answer<(u64, Array<u32, 1024>)> {
        let set = self.set_name(set_name)?;
        let words = self.set_words(&set, flavor, info_out_room)?;
        let host = self.kernel.host_right();
        Ok((self.give(host), words))
    }

    async fn processor_control(&mut self, processor: u64, _command: Array<u32, 1024>) -> Answer {
        self.processor(processor)?;
        Err(FAILURE)
    }

    async fn host_get_time64(&mut self, host: u64) -> Answer<[u64; 2]> {
        self.host(host)?;
        let time = self.kernel.time_of_day();
        Ok([time / 1_000_000, time % 1_000_000 * 1000])
    }

    async fn host_set_time64(&mut self, host_priv: u64, [seconds, nanoseconds]: [u64; 2]) -> Answer {
        self.host_control(host_priv)?;
        if nanoseconds >= 1_000_000_000 {
            return Err(INVALID_ARGUMENT);
        }
        let (time, now) = (microseconds([seconds, nanoseconds / 1000])?, self.now());
        self.kernel.clock.lock().set(now, time);
        Ok(())
    }

    async fn host_adjust_time64(
        &mut self,
        host_priv: u64,
        [seconds, nanoseconds]: [u64; 2],
    ) -> Answer<[u64; 2]> {
        self.host_control(host_priv)?;
        let rest = i32::try_from(nanoseconds as i64 / 1000).map_err(|_| INVALID_ARGUMENT)?;
        let left = self.adjust(difference([seconds, rest as u64])?);
        Ok([(left / 1_000_000) as u64, (left % 1_000_000 * 1000) as u64])
    }

    async fn host_get_kernel_version(&mut self, host: u64) -> Answer<Array<u8, 512>> {
        self.host(host)?;
        Array::new(VERSION.as_bytes()).ok_or(RESOURCE_SHORTAGE)
    }

    async fn host_get_uptime64(&mut self, host: u64) -> Answer<[u64; 2]> {
        self.host(host)?;
        let now = self.now();
        Ok([now / 1_000_000, now % 1_000_000 * 1000])
    }

    async fn processor_set_processors(&mut self, set_name: u64) -> Answer<Memory> {
        let set = self.set_name(set_name)?;
        let rights =
            set.processors().iter().map(|&processor| self.kernel.processor_name(processor)).collect();
        self.give_rights(rights)
    }

    async fn task_max_priority(
        &mut self,
        host: u64,
        task: u64,
        max_priority: u32,
        set_priority: u32,
        change_threads: u32,
    ) -> Answer {
        self.host(host)?;
        let raise = self.host_control(host).is_ok();
        let (task, most) = (self.task(task)?, level(max_priority)?);
        task.set_most_urgent(most, raise)?;
        if set_priority != 0 {
            task.set_base_level(most).map_err(|_| FAILURE)?;
        }
        if change_threads != 0 {
            for thread in task.threads() {
                thread.set_most_urgent(most)?;
                if set_priority != 0 {
                    thread.set_base(most, false)?;
                }
            }
        }
        Ok(())
    }
}

const _: () = assert!(VERSION.len() < 512);
