//! The list of this server's front ends. No other file of the server names one. Another front end
//! needs a directory of its own, and here a number, a field and a variant.

use alloc::sync::Arc;
use linux::{Linux, Processor};
use mach::Machine;
use mach::machine::{Resume, SystemCall};
use unix::devfs::Additions;
use unix::front_end::{CallDescription, FrontEnd, FrontEndNumber, FrontEnds, Next, Programs};
use unix::thread::{System, Thread};

/// The number of Linux' front end, which also serves processes without a program.
const LINUX: FrontEndNumber = FrontEndNumber(0);

/// The devices that front ends have in /dev in addition to those of every Unix.
pub(crate) const DEVICES: Additions = linux::DEVICES;

/// Registers with a new system the file systems and devices that only front ends have.
pub(crate) fn register<M: Machine>(system: &Arc<System<M>>) {
    linux::register(system);
}

/// All front ends of the server.
pub struct Personalities<M: Machine> {
    linux: Linux<M>,
}

/// The state that a front end keeps for a thread.
pub enum Kept<M: Machine> {
    /// A thread of a Linux program.
    Linux(<Linux<M> as FrontEnd<M>>::Kept),
}

impl<M: Machine> Personalities<M> {
    /// Makes all front ends, which describe this processor to programs.
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
