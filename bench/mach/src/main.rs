//! What the Mach library costs on L4, in instructions: programs, kernel, machine layer and library
//! together.
//!
//! A result over a number of pages, rounds or entries is the whole cost at that number, to be read
//! by its fit: the cost of one more. Clearing and copying of pages are inside the intervals (512
//! instructions a page by the processor's string instructions, as the emulator counts).
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::format;
use alloc::sync::Arc;
use core::arch::x86_64::_rdtsc;
use core::fmt::Write;

use l4::mark;
use mach::machine::{
    Attempt, ExecutionContext, NonblockingHandler, PAGE_SIZE, Protection, Resume, SystemCall,
};
use mach::thread::PriorityRange;
use mach::vm::{MapRequest, Placement, Settings, Vm};
use mach::{Host, KernError, KernResult, Task};
use mach_l4::{Configuration, L4Machine, SpaceLayout};
use mach_tests::code::{self, command};
use mach_tests::servant::{self, Outcome, Servant, TOP};
use rt::executor::YieldNow;
use rt::root::{self, Console};

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(256 << 10, grow = grow_heap);

const HERE: u64 = 0x4000_0000;
/// Rounds of operations whose cost does not depend on anything.
const ROUNDS: [u64; 3] = [32, COUNTED, 128];
/// The number of rounds at which the plugin counts.
const COUNTED: u64 = 64;

fn run() -> ! {
    root::report_panics();
    let configuration = Configuration {
        workers: 1,
        processors: 1,
        frames: Some(96 << 20),
        heap: Some(48 << 20),
        grow_heap,
        layout: SpaceLayout::default(),
    };
    let machine = L4Machine::start(&configuration).unwrap_or_else(|error| panic!("{error}"));
    // One page is mapped at a fault, as in the systems that are compared.
    let settings =
        Settings { fault_around: 1, cluster: 8, free_target: 64, free_reserve: 16, large_pages: false };
    let vm = Vm::with_settings(machine.clone(), settings).expect("memory for the table of frames");
    let host = Host::new(vm, PriorityRange::default(), 10_000);
    let bench = Bench { machine: machine.clone(), host };
    machine.spawn(0, bench.run()).expect("memory for a task");
    machine.serve(0, &mut |_bits| {})
}

struct Bench {
    machine: L4Machine,
    host: Arc<Host<L4Machine>>,
}

fn now() -> u64 {
    // SAFETY: every program may read the time-stamp counter.
    unsafe { _rdtsc() }
}

fn say(line: core::fmt::Arguments<'_>) {
    // If the console does not work, there is no place to report that.
    let _ = Console.write_str(&format!("{line}\n"));
}

fn report(test: &str, parameter: u64, counter: &str, value: u64) {
    say(format_args!(
        "{{\"test\":\"{test}\",\"parameter\":{parameter},\"counter\":\"{counter}\",\"value\":{value}}}"
    ));
}

/// Begins a measurement of `operations` operations: returns the time, and for one number of
/// operations sets a mark for the plugin that counts.
fn begin(operations: u64) -> u64 {
    if operations == COUNTED {
        mark::begin();
    }
    now()
}

/// Ends the measurement of `operations` operations of `test` that began at `since`.
fn end(test: &str, operations: u64, since: u64) {
    let cost = now() - since;
    if operations == COUNTED {
        mark::end();
        say(format_args!("{{\"region\":\"{test}\",\"operations\":{operations}}}"));
    }
    report(test, operations, "instructions", cost);
}

/// The servant's calls for memory, answered where nothing need be waited for.
struct MemoryCalls(Arc<servant::Map>);

impl NonblockingHandler for MemoryCalls {
    fn fault(&self, address: u64, access: Protection) -> bool {
        NonblockingHandler::fault(&*self.0, address, access)
    }

    fn call(&self, call: &SystemCall) -> Attempt {
        let result = match call.number {
            code::ALLOCATE => self.0.try_allocate(Placement::Above(HERE), PAGE_SIZE),
            code::DEALLOCATE => {
                self.0.try_deallocate(call.arguments[0], PAGE_SIZE).map(|result| result.map(|()| 0))
            }
            _ => None,
        };
        result.and_then(Result::ok).map_or(Attempt::Event, Attempt::Return)
    }
}

/// An outcome that must be a result.
fn done(outcome: Outcome) -> KernResult {
    if matches!(outcome, Outcome::Done(_)) { Ok(()) } else { Err(KernError::Failure) }
}

impl Bench {
    async fn run(self) {
        say(format_args!("1..1"));
        let result = self.measure().await;
        if let Err(error) = &result {
            say(format_args!("# {error:?}"));
        }
        let not = if result.is_ok() { "" } else { "not " };
        say(format_args!("{not}ok 1 - BMAC0001 every operation succeeded"));
    }

    async fn measure(&self) -> KernResult {
        self.system_call().await?;
        self.zero_fill().await?;
        self.copy_on_write().await?;
        self.allocate_touch_deallocate().await?;
        self.tasks().await?;
        self.threads().await?;
        self.fork().await?;
        self.look_up().await
    }

    async fn task(&self) -> KernResult<Arc<Task<L4Machine>>> {
        let task = self.host.create_task(PAGE_SIZE, TOP).await?;
        servant::load(task.map()).await?;
        Ok(task)
    }

    /// A task with a thread whose faults are answered without its task where they need not wait.
    async fn servant(&self) -> KernResult<Servant> {
        let servant = Servant::start(&self.task().await?).await?;
        servant.user.set_handler(servant.map().clone());
        Ok(servant)
    }

    /// The end of a task, and of its space at root.
    async fn end(&self, task: &Task<L4Machine>) {
        task.terminate().await;
        YieldNow::default().await;
    }

    fn region(pages: u64) -> MapRequest<L4Machine> {
        MapRequest::anonymous(pages * PAGE_SIZE).at(Placement::Fixed(HERE))
    }

    /// A foreign system call that does nothing, answered by the thread's task.
    async fn system_call(&self) -> KernResult {
        let servant = self.servant().await?;
        for rounds in ROUNDS {
            let start = begin(rounds);
            let mut outcome = servant.command(command::CALL_LOOP, |state| state.rbx = rounds).await;
            while let Outcome::Call(call) = outcome {
                outcome = servant.serve(Some(Resume::Return(call.number))).await;
            }
            end("system-call", rounds, start);
            done(outcome)?;
        }
        self.end(&servant.task).await;
        Ok(())
    }

    /// First touches of pages; and touches of pages that are in memory but not mapped.
    async fn zero_fill(&self) -> KernResult {
        let servant = self.servant().await?;
        for pages in ROUNDS {
            let map = servant.map();
            map.map(&Self::region(pages)).await?;
            // The first page of each run is not measured: it brings the entry's object, page table
            // and page index.
            let start = begin(pages);
            done(servant.fill(HERE, pages, 1).await)?;
            end("zero-fill-fault", pages, start);
            let space = map.space().ok_or(KernError::Terminated)?;
            let (kernel, reserved) = (self.machine.kernel_memory(&space)?, self.machine.reserved_memory());
            report("kernel-memory-of-mapped-pages", pages, "bytes", kernel);
            report("server-memory-of-mapped-pages", pages, "bytes", reserved as u64);
            map.protect(HERE, pages * PAGE_SIZE, Protection::NONE, false).await?;
            map.protect(HERE, pages * PAGE_SIZE, Protection::DEFAULT, false).await?;
            let start = begin(pages);
            done(servant.check(HERE, pages, 1).await)?;
            end("fault-on-resident-page", pages, start);
            let start = begin(pages);
            map.deallocate(HERE, pages * PAGE_SIZE).await?;
            end("deallocate", pages, start);
        }
        self.end(&servant.task).await;
        Ok(())
    }

    /// Writes to pages shared with a copy.
    async fn copy_on_write(&self) -> KernResult {
        for pages in ROUNDS {
            let parent = self.servant().await?;
            parent.map().map(&Self::region(pages)).await?;
            done(parent.fill(HERE, pages, 1).await)?;
            let child = Servant::start(&parent.task.create_task(true).await?).await?;
            child.user.set_handler(child.map().clone());
            let start = begin(pages);
            done(child.fill(HERE, pages, 2).await)?;
            end("copy-on-write-fault", pages, start);
            self.end(&child.task).await;
            self.end(&parent.task).await;
        }
        Ok(())
    }

    /// A program that asks for a page, writes to it and gives it back, by system calls: answered at
    /// once, or by the thread's task.
    async fn allocate_touch_deallocate(&self) -> KernResult {
        let servant = self.servant().await?;
        self.allocation_loop(&servant, "allocate-touch-deallocate-by-task").await?;
        servant.user.set_handler(Arc::new(MemoryCalls(servant.map().clone())));
        self.allocation_loop(&servant, "allocate-touch-deallocate").await?;
        self.end(&servant.task).await;
        Ok(())
    }

    async fn allocation_loop(&self, servant: &Servant, test: &str) -> KernResult {
        let map = servant.map();
        for rounds in ROUNDS {
            let start = begin(rounds);
            let mut outcome = servant.command(command::ALLOCATE_LOOP, |state| state.rbx = rounds).await;
            while let Outcome::Call(call) = outcome {
                let result = match call.number {
                    code::ALLOCATE => map.allocate(Placement::Above(HERE), PAGE_SIZE).await?,
                    _ => {
                        map.deallocate(call.arguments[0], PAGE_SIZE).await?;
                        0
                    }
                };
                outcome = servant.serve(Some(Resume::Return(result))).await;
            }
            end(test, rounds, start);
            done(outcome)?;
        }
        Ok(())
    }

    async fn tasks(&self) -> KernResult {
        let parent = self.servant().await?;
        for rounds in ROUNDS {
            let start = begin(rounds);
            for _ in 0..rounds {
                let child = parent.task.create_task(true).await?;
                self.end(&child).await;
            }
            end("task-create-terminate", rounds, start);
        }
        self.end(&parent.task).await;
        Ok(())
    }

    async fn threads(&self) -> KernResult {
        let servant = self.servant().await?;
        for rounds in ROUNDS {
            let start = begin(rounds);
            for _ in 0..rounds {
                let thread = servant.task.create_thread().await?;
                thread.terminate();
            }
            end("thread-create-terminate", rounds, start);
        }
        self.end(&servant.task).await;
        Ok(())
    }

    /// Fork of a region with this number of pages in memory, all mapped and dirty, and the child's
    /// end.
    async fn fork(&self) -> KernResult {
        for pages in [100, 1000, 10_000] {
            let parent = self.servant().await?;
            parent.map().map(&Self::region(pages)).await?;
            done(parent.fill(HERE, pages, 1).await)?;
            let start = begin(pages);
            let child = parent.task.create_task(true).await?;
            end("fork-of-pages", pages, start);
            let start = begin(pages);
            self.end(&child).await;
            end("end-of-forked-child", pages, start);
            let start = begin(pages);
            self.end(&parent.task).await;
            end("end-of-task-with-pages", pages, start);
        }
        Ok(())
    }

    /// Faults on resident pages of a map with a number of entries, never twice in the same entry.
    /// The result is the average of one fault.
    async fn look_up(&self) -> KernResult {
        const FAULTS: u64 = 256;
        for entries in [16, 256, 4096, 65_536] {
            let task = self.task().await?;
            let map = task.map();
            let before = self.machine.reserved_memory();
            for entry in 0..entries {
                // Entries of different rights do not join.
                let protection = if entry % 2 == 0 { Protection::DEFAULT } else { Protection::READ };
                let request = MapRequest::anonymous(PAGE_SIZE)
                    .at(Placement::Fixed(HERE + entry * PAGE_SIZE))
                    .protection(protection);
                map.map(&request).await?;
            }
            let bytes = (self.machine.reserved_memory() - before) as u64 / entries;
            report("server-memory-of-an-entry", entries, "bytes", bytes);
            let place = |number: u64| HERE + (number * 2_654_435_761 % entries) * PAGE_SIZE;
            for number in 0..FAULTS {
                map.fault(place(number), Protection::READ).await?;
            }
            let start = now();
            for number in 0..FAULTS {
                map.fault(place(number), Protection::READ).await?;
            }
            report("fault-among-entries", entries, "instructions", (now() - start) / FAULTS);
            self.end(&task).await;
        }
        Ok(())
    }
}
