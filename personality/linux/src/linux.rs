//! [`Linux`]: the state that all threads of Linux programs share.

use crate::aio::Contexts;
use crate::futex::Futexes;
use crate::names::name;
use crate::timerfd::ClockChanges;
use alloc::sync::Arc;
use core::sync::atomic::AtomicU32;
use mach::Machine;
use unix::sync::SpinLock;
use unix::thread::Thread;

/// The description of the processor that programs get.
#[derive(Clone, Copy, Debug)]
pub struct Processor {
    /// CPUID leaf 1, EDX (AT_HWCAP).
    pub features: u64,
    /// More features (AT_HWCAP2); bit 1 is FSGSBASE.
    pub more_features: u64,
    /// Bytes of the extended state that signal frames hold, in XSAVE's standard format.
    pub extended_size: usize,
    /// Address at which every program finds a shared object of the system's (AT_SYSINFO_EHDR), if
    /// there is one.
    pub shared_object: Option<u64>,
}

/// The Linux front end of a system.
pub struct Linux<M: Machine> {
    pub(crate) processor: Processor,
    /// A bit for the number of each unknown call that was logged; the last bit is for all larger
    /// numbers.
    logged: SpinLock<[u64; 8]>,
    /// The contexts of asynchronous I/O.
    pub(crate) aio: Arc<Contexts>,
    /// The times at which the clock of the day was set.
    pub(crate) clock_changes: Arc<ClockChanges>,
    /// The threads that wait for futexes.
    pub(crate) futexes: Futexes,
    /// How many calls may still be tried without a look at the server's memory.
    pub(crate) unwatched_calls: AtomicU32,
    machine: core::marker::PhantomData<fn(M)>,
}

impl<M: Machine> Linux<M> {
    /// Makes the Linux front end, for this processor.
    pub fn new(processor: Processor) -> Linux<M> {
        Linux {
            processor,
            logged: SpinLock::new([0; 8]),
            aio: Arc::default(),
            clock_changes: Arc::default(),
            futexes: Futexes::new(),
            unwatched_calls: AtomicU32::new(0),
            machine: core::marker::PhantomData,
        }
    }

    /// Logs an unknown call, once for each number.
    pub(crate) fn log_unknown(&self, thread: &Thread<M>, number: u64) {
        let bit = number.min(511);
        let first = {
            let mut logged = self.logged.lock();
            let word = &mut logged[(bit / 64) as usize];
            let first = *word & (1 << (bit % 64)) == 0;
            *word |= 1 << (bit % 64);
            first
        };
        if first {
            let name = name(number).unwrap_or("unknown");
            let pid = thread.pid();
            let host = &thread.system().host();
            host.log(format_args!("process {pid}: system call {number} ({name}) is not available"));
        }
    }
}
