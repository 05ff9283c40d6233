//! The front ends that this server has: the one place of the server that names them. Another is a
//! directory of its own, a number, a field, and a variant here.

use alloc::sync::Arc;
use linux::{Linux, Processor};
use mach::Machine;
use mach::machine::{Resume, SystemCall};
use unix::devfs::Additions;
use unix::front_end::{CallDescription, FrontEnd, FrontEndNumber, FrontEnds, Next, Programs};
use unix::thread::{System, Thread};

/// Linux' number, and that of processes without a program.
const LINUX: FrontEndNumber = FrontEndNumber(0);

/// What front ends have in /dev in addition to the devices of every Unix.
pub(crate) const DEVICES: Additions = linux::DEVICES;

/// Has a new system know the file systems and devices that only front ends have.
pub(crate) fn register<M: Machine>(system: &Arc<System<M>>) {
    linux::register(system);
}

/// All front ends.
pub struct Personalities<M: Machine> {
    linux: Linux<M>,
}

/// What is kept for a thread, by the front end that serves it.
pub enum Kept<M: Machine> {
    /// A thread of a Linux program.
    Linux(<Linux<M> as FrontEnd<M>>::Kept),
}

impl<M: Machine> Personalities<M> {
    /// All of them, on a processor of this kind.
    pub fn new(processor: Processor) -> Self {
        Self { linux: Linux::new(processor) }
    }
}

impl<M: Machine> FrontEnd<M> for Personalities<M> {
    type Kept = Kept<M>;

    fn begin(&self, thread: &Arc<Thread<M>>) -> Kept<M> {
        Kept::Linux(self.linux.begin(thread))
    }

    #[inline]
    fn try_call(&self, thread: &Arc<Thread<M>>, kept: &Kept<M>, call: &SystemCall) -> Option<u64> {
        match kept {
            Kept::Linux(kept) => self.linux.try_call(thread, kept, call),
        }
    }

    async fn serve_call(&self, thread: &Arc<Thread<M>>, kept: &Kept<M>, call: SystemCall) -> Next<M> {
        match kept {
            Kept::Linux(kept) => self.linux.serve_call(thread, kept, call).await,
        }
    }

    fn no_call(&self, kept: &Kept<M>) {
        match kept {
            Kept::Linux(kept) => self.linux.no_call(kept),
        }
    }

    async fn return_to_user(&self, thread: &Arc<Thread<M>>, kept: &Kept<M>, resume: Resume) -> Next<M> {
        match kept {
            Kept::Linux(kept) => self.linux.return_to_user(thread, kept, resume).await,
        }
    }

    fn describe(&self, kept: &Kept<M>, call: &SystemCall) -> CallDescription {
        match kept {
            Kept::Linux(kept) => self.linux.describe(kept, call),
        }
    }
}

impl<M: Machine> FrontEnds<M> for Personalities<M> {
    fn programs(&self, start: &[u8]) -> Option<(FrontEndNumber, &dyn Programs)> {
        let linux: &dyn Programs = &self.linux;
        linux.format().recognises(start).then_some((LINUX, linux))
    }
}
