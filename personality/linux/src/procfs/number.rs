//! Files of /proc with one number that can be written.

use alloc::string::ToString;
use alloc::sync::{Arc, Weak};
use core::str::FromStr;
use mach::Machine;
use unix::account::{Setting, Settings};
use unix::file::{FileObject, Io, Positions};
use unix::process::ExactPid;
use unix::thread::System;
use unix::{AttemptError, Error, Privilege, Result, UserBuffer};

/// A number that a file shows and sets.
pub(super) trait Number: Send + Sync + 'static {
    /// The type of the number in the file.
    type Value: FromStr + ToString;

    /// The present value of the number in the file.
    fn get(&self) -> Result<Self::Value>;

    /// Sets the number, for a caller that has the file open for writing.
    fn set(&self, value: Self::Value, io: &Io<'_>) -> Result<()>;
}

/// A file with a number, as an open file.
pub(super) struct NumberFile<N>(pub(super) N);

impl<N: Number> FileObject for NumberFile<N> {
    fn try_read(&self, io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let text = self.0.get()?.to_string() + "\n";
        let from = usize::try_from(io.position).unwrap_or(usize::MAX).min(text.len());
        Ok(to.copy_out(&text.as_bytes()[from..])?)
    }

    /// Sets the number from one write with a decimal number. `EINVAL` for any other text.
    fn try_write(&self, io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let mut bytes = [0; 32];
        let count = from.copy_in(&mut bytes)?;
        let number = core::str::from_utf8(&bytes[..count]).ok().and_then(|text| text.trim().parse().ok());
        let set = number.ok_or(Error::EINVAL).and_then(|number| self.0.set(number, io));
        set.inspect_err(|_| from.retreat(count))?;
        Ok(count)
    }

    fn positions(&self) -> Positions {
        Positions::Upto(i64::MAX as u64)
    }

    fn label(&self) -> &'static str {
        "number"
    }
}

/// /proc/PID/oom_score_adj (proc(5)): how readily the OOM killer chooses the process.
pub(super) struct MemoryAdjustment<M: Machine> {
    pub(super) system: Weak<System<M>>,
    pub(super) process: ExactPid,
}

impl<M: Machine> Number for MemoryAdjustment<M> {
    type Value = i16;

    fn get(&self) -> Result<i16> {
        let system = self.system.upgrade().ok_or(Error::ENODEV)?;
        system
            .processes()
            .with(|table| table.exact_process(self.process).map(|process| process.memory_adjustment))
    }

    fn set(&self, value: i16, io: &Io<'_>) -> Result<()> {
        let privileged = io.caller.identity.has(Privilege::Resource);
        let system = self.system.upgrade().ok_or(Error::ENODEV)?;
        system.processes().with(|table| {
            let pid = table.exact_process(self.process)?.pid();
            table.set_memory_adjustment(pid, value, privileged)
        })
    }
}

/// A file of /proc/sys/fs with a limit that all accounts share.
pub(super) struct SettingNumber {
    pub(super) settings: Arc<Settings>,
    pub(super) setting: Setting,
}

impl Number for SettingNumber {
    type Value = u64;

    fn get(&self) -> Result<u64> {
        Ok(self.settings.get(self.setting))
    }

    fn set(&self, value: u64, _io: &Io<'_>) -> Result<()> {
        self.settings.set(self.setting, self.setting.accept(value).ok_or(Error::EINVAL)?);
        Ok(())
    }
}
