//! /proc/PID/oom_score_adj (proc(5)): how readily a process wants to be ended when memory is short.

use super::System;
use crate::file::{FileObject, Io, Positions};
use crate::process::ExactPid;
use crate::{Capability, Error, NotDone, Result, UserBuffer};
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::any::Any;
use mach::Machine;

/// The file, open.
pub(super) struct AdjustmentFile<M: Machine> {
    system: Weak<System<M>>,
    process: ExactPid,
}

impl<M: Machine> AdjustmentFile<M> {
    pub(super) fn new(system: &Arc<System<M>>, process: ExactPid) -> Arc<AdjustmentFile<M>> {
        Arc::new(AdjustmentFile { system: Arc::downgrade(system), process })
    }

    fn system(&self) -> Result<Arc<System<M>>> {
        self.system.upgrade().ok_or(Error::ENODEV)
    }

    fn text(&self) -> Result<String> {
        let system = self.system()?;
        let adjustment = system
            .processes
            .with(|table| table.exact_process(self.process).map(|process| process.memory_adjustment));
        Ok(alloc::format!("{}\n", adjustment?))
    }

    fn set(&self, text: &[u8], io: &Io<'_>) -> Result<()> {
        let number = core::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
        let (number, privileged) =
            (number.ok_or(Error::EINVAL)?, io.caller.identity.has(Capability::Resource));
        let system = self.system()?;
        system.processes.with(|table| {
            let pid = table.exact_process(self.process)?.pid();
            table.set_memory_adjustment(pid, number, privileged)
        })
    }
}

impl<M: Machine> FileObject for AdjustmentFile<M> {
    fn try_read(&self, io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, NotDone> {
        let text = self.text()?;
        let from = usize::try_from(io.position).unwrap_or(usize::MAX).min(text.len());
        Ok(to.copy_out(&text.as_bytes()[from..])?)
    }

    /// Takes a decimal number in one piece. `EINVAL` for anything else.
    fn try_write(&self, io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, NotDone> {
        let mut bytes = [0; 16];
        let count = from.copy_in(&mut bytes)?;
        self.set(&bytes[..count], io).inspect_err(|_| from.retreat(count))?;
        Ok(count)
    }

    fn positions(&self) -> Positions {
        Positions::Upto(i64::MAX as u64)
    }

    fn label(&self) -> &'static str {
        "oom_score_adj"
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
