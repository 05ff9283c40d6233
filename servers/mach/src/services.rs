//! What native programs need of the server, on L4.

use alloc::string::String;
use core::fmt::{self, Write};
use core::future::Future;

use mach::KernResult;
use mach_l4::{L4Machine, UserThread};
use native_mach::Services;
use rt::root::Console;

/// The services of the server on the L4 machine.
pub(crate) struct L4Services {
    machine: L4Machine,
}

impl L4Services {
    pub(crate) fn new(machine: L4Machine) -> L4Services {
        L4Services { machine }
    }
}

impl Services<L4Machine> for L4Services {
    fn spawn(&self, thread: &UserThread, task: impl Future<Output = ()> + Send + 'static) -> KernResult {
        let task = self.machine.spawn(self.machine.current_worker(), task)?;
        thread.set_task(task.assignment());
        Ok(())
    }

    async fn print(&self, text: &[u8]) {
        // Root's console takes text only. If it does not work, there is no place to report that.
        let _ = Console.write_str(&String::from_utf8_lossy(text));
    }

    fn log(&self, line: fmt::Arguments<'_>) {
        crate::say(line);
    }

    fn ended(&self, clean: bool) {
        crate::end(if clean { 0 } else { crate::NOT_CLEAN })
    }
}
