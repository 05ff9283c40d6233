//! Threads of the simulated machine. They execute no instructions: a test says what each thread
//! does in its program ([`Simulated::set_program`]).

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::task::{Poll, Waker};

use super::Simulated;
use crate::machine::{
    Attempt, Breakpoints, Event, ExecutionContext, NonblockingHandler, Resume, SystemCall, ThreadState, Times,
};
use crate::{KernError, KernResult};

/// The size of a thread's extended state in bytes.
pub const EXTENDED_SIZE: usize = 832;

/// The program of a thread, as a function of how the thread is resumed. The result is the event
/// with which the thread stops, or `None`: it computes.
pub(super) type Program = Arc<dyn Fn(&SimulatedThread, Resume) -> Option<Event> + Send + Sync>;

/// A thread of a [`Simulated`] machine.
#[derive(Clone)]
pub struct SimulatedThread(Arc<Handle>);

/// Ends the thread with the last reference to it.
struct Handle {
    machine: Simulated,
    number: usize,
    space: usize,
}

impl Drop for Handle {
    fn drop(&mut self) {
        end(&self.machine, self.number);
    }
}

pub(super) struct ThreadRecord {
    state: ThreadState,
    extended: Vec<u8>,
    breakpoints: Breakpoints,
    stopped: bool,
    computes: bool,
    /// Whether the thread's handler is serving a call.
    tried: bool,
    recalled: bool,
    event: Option<Event>,
    /// The system call with which the thread was held.
    held: Option<SystemCall>,
    handler: Option<Arc<dyn NonblockingHandler>>,
    waker: Option<Waker>,
    priority: u8,
    slice: u32,
    processor: usize,
    time: u64,
}

/// The mask of the simulated processors, a bit for each.
const PROCESSORS: u64 = 3;

impl Simulated {
    /// Sets what all threads do in their programs. Before it is called, they compute.
    pub fn set_program(
        &self,
        program: impl Fn(&SimulatedThread, Resume) -> Option<Event> + Send + Sync + 'static,
    ) {
        self.state.lock().program = Some(Arc::new(program));
    }

    /// Charges processor time to a thread.
    pub fn use_time(&self, thread: &SimulatedThread, microseconds: u64) {
        thread.record(|record| record.time += microseconds).expect("a live thread");
    }

    /// Priority, time slice and processor that a thread was given, and whether it may run.
    pub fn schedule_of(&self, thread: &SimulatedThread) -> (u8, u32, usize, bool) {
        let schedule =
            |record: &mut ThreadRecord| (record.priority, record.slice, record.processor, !record.stopped);
        thread.record(schedule).expect("a live thread")
    }

    /// Sets the registers of a thread as its own instructions would, wherever the thread is.
    pub fn set_registers(&self, thread: &SimulatedThread, registers: &ThreadState) {
        // A thread that has ended has no registers.
        let _ = thread.record(|record| record.state = *registers);
    }

    /// Makes a thread in an address space.
    pub(super) fn make_thread(&self, space: usize) -> KernResult<SimulatedThread> {
        let mut state = self.state.lock();
        if !state.pmaps.contains_key(&space) {
            return Err(KernError::Terminated);
        }
        let number = state.next_thread;
        state.next_thread += 1;
        let record = ThreadRecord {
            state: ThreadState::default(),
            extended: alloc::vec![0; EXTENDED_SIZE],
            breakpoints: Breakpoints::default(),
            stopped: false,
            computes: false,
            tried: false,
            recalled: false,
            event: None,
            held: None,
            handler: None,
            waker: None,
            priority: 0,
            slice: 0,
            processor: 0,
            time: 0,
        };
        state.threads.insert(number, record);
        Ok(SimulatedThread(Arc::new(Handle { machine: self.clone(), number, space })))
    }
}

/// The extended state that an image means.
fn extended(image: &[u8]) -> Vec<u8> {
    let mut whole = image.to_vec();
    whole.resize(EXTENDED_SIZE, 0);
    whole
}

fn end(machine: &Simulated, number: usize) {
    let ended = machine.state.lock().threads.remove(&number);
    if let Some(waker) = ended.and_then(|record| record.waker) {
        waker.wake();
    }
}

impl SimulatedThread {
    /// The thread's number among all threads of the machine, from 0 on.
    pub fn number(&self) -> usize {
        self.0.number
    }

    /// The address space that the thread is in, as [`Machine::space`](crate::Machine::space) names
    /// it.
    pub fn space(&self) -> usize {
        self.0.space
    }

    fn record<T>(&self, with: impl FnOnce(&mut ThreadRecord) -> T) -> KernResult<T> {
        self.0.machine.state.lock().threads.get_mut(&self.0.number).map(with).ok_or(KernError::Terminated)
    }

    /// Calls `with` with the record of a thread, if its registers can be read now.
    fn at_rest<T>(&self, with: impl FnOnce(&mut ThreadRecord) -> T) -> KernResult<T> {
        self.record(|record| match record.computes && !record.stopped {
            true => Err(KernError::InvalidArgument),
            false => Ok(with(record)),
        })?
    }

    /// Lets the thread's handler serve an event, or delivers the event to the thread's server.
    fn comes(&self, event: Event) {
        if let Event::SystemCall(call) = event {
            let handler = self.record(|record| {
                (record.computes, record.tried) = (true, true);
                record.handler.clone()
            });
            let attempt = handler.ok().flatten().map_or(Attempt::Event, |handler| handler.call(&call));
            // The thread may have ended.
            let _ = self.record(|record| record.tried = false);
            match attempt {
                Attempt::Event => {}
                Attempt::Return(value) => {
                    // The thread may have ended.
                    let _ = self.record(|record| record.computes = false);
                    return self.answer(Resume::Return(value));
                }
                Attempt::Held => return,
            }
        }
        self.delivered(event);
    }

    fn delivered(&self, event: Event) {
        let waker = self.record(|record| {
            if let Event::SystemCall(SystemCall { number: rax, arguments: [rdi, rsi, rdx, r10, r8, r9] }) =
                event
            {
                record.state = ThreadState { rax, rdi, rsi, rdx, r10, r8, r9, ..record.state };
            }
            record.computes = false;
            record.event = Some(event);
            record.waker.take()
        });
        if let Ok(Some(waker)) = waker {
            waker.wake();
        }
    }
}

impl ExecutionContext for SimulatedThread {
    fn answer(&self, resume: Resume) {
        let recalled = self.record(|record| {
            if record.computes {
                return None;
            }
            if let Resume::Registers(state) = &resume {
                record.state = **state;
            }
            (record.event, record.held) = (None, None);
            Some(core::mem::take(&mut record.recalled))
        });
        let Ok(Some(recalled)) = recalled else { return };
        if recalled {
            return self.comes(Event::Recalled);
        }
        let program = self.0.machine.state.lock().program.clone();
        match program.and_then(|program| program(self, resume)) {
            Some(Event::Ended) => self.end(),
            Some(event) => self.comes(event),
            None => {
                // The thread may have ended.
                let _ = self.record(|record| record.computes = true);
            }
        }
    }

    fn next_event(&self) -> impl Future<Output = Event> + Send {
        poll_fn(|context| {
            let event = self.record(|record| {
                let event = record.event.take();
                if event.is_none() {
                    record.waker = Some(context.waker().clone());
                }
                event
            });
            match event {
                Ok(Some(event)) => Poll::Ready(event),
                Ok(None) => Poll::Pending,
                Err(_) => Poll::Ready(Event::Ended),
            }
        })
    }

    fn hold(&self, call: &SystemCall) -> bool {
        let held = self.record(|record| {
            record.computes = false;
            record.held = Some(*call);
        });
        held.is_ok()
    }

    fn surrender(&self) {
        if let Ok(Some(call)) = self.record(|record| record.held.take()) {
            self.delivered(Event::SystemCall(call));
        }
    }

    fn set_handler(&self, handler: Arc<dyn NonblockingHandler>) {
        // If the thread has ended, it has no events. The old handler is dropped without the lock.
        let _old = self.record(|record| record.handler.replace(handler));
    }

    fn recall(&self) -> KernResult {
        let comes = self.record(|record| {
            let comes = record.computes && !record.tried;
            record.recalled |= !comes;
            comes
        })?;
        if comes {
            self.comes(Event::Recalled);
        }
        Ok(())
    }

    fn stop(&self) -> KernResult {
        self.record(|record| record.stopped = true)
    }

    fn unstop(&self) -> KernResult {
        self.record(|record| record.stopped = false)
    }

    fn end(&self) {
        end(&self.0.machine, self.0.number);
    }

    fn state(&self) -> KernResult<ThreadState> {
        self.at_rest(|record| record.state)
    }

    fn set_state(&self, state: &ThreadState) -> KernResult {
        self.at_rest(|record| record.state = *state)
    }

    fn extended_state(&self) -> KernResult<Vec<u8>> {
        self.at_rest(|record| record.extended.clone())
    }

    fn set_extended_state(&self, image: &[u8]) -> KernResult {
        self.at_rest(|record| record.extended = extended(image))
    }

    fn set_breakpoints(&self, breakpoints: &Breakpoints) -> KernResult {
        self.at_rest(|record| record.breakpoints = *breakpoints)
    }

    /// The simulated machine executes no instructions: what a thread reaches first of its
    /// breakpoints is the first of them.
    fn debug_status(&self) -> KernResult<u64> {
        self.at_rest(|record| {
            (0..4)
                .find(|index| record.breakpoints.control >> (2 * index) & 3 != 0)
                .map_or(0, |index| 1 << index)
        })
    }

    fn begin_handler(&self) -> KernResult<(ThreadState, Vec<u8>)> {
        self.at_rest(|record| (record.state, core::mem::replace(&mut record.extended, extended(&[]))))
    }

    fn end_handler(&self, state: &ThreadState, image: &[u8]) -> KernResult {
        self.at_rest(|record| (record.state, record.extended) = (*state, extended(image)))
    }

    fn times(&self) -> Times {
        Times { program: self.record(|record| record.time).unwrap_or(0), server: 0 }
    }

    fn set_priority(&self, priority: u8, slice: u32) -> KernResult {
        self.record(|record| (record.priority, record.slice) = (priority, slice))
    }

    fn processor(&self) -> usize {
        self.record(|record| record.processor).unwrap_or(0)
    }

    fn affinity(&self) -> u64 {
        1 << self.processor()
    }

    fn set_affinity(&self, mask: u64) -> KernResult {
        match mask & PROCESSORS {
            0 => Err(KernError::InvalidArgument),
            mask => self.record(|record| record.processor = mask.trailing_zeros() as usize),
        }
    }
}
