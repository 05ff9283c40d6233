//! The files in /proc/PID/fdinfo: what an open file is to the process that has it, and what only
//! its kind knows.

use super::subject::Subject;
use super::{Node, Sight};
use crate::calls::poll::watched_events;
use crate::epoll::Epoll;
use crate::eventfd::EventCounter;
use crate::inotify::Notifier;
use crate::layout::file::{CLOSE_ON_EXEC, to_open_flags};
use crate::pidfd::PidFile;
use crate::signalfd::SignalFile;
use crate::timerfd::TimerFile;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::Write;
use core::time::Duration;
use mach::Machine;
use unix::file::{LockKind, LockOwner, OpenFile};
use unix::process::Pid;
use unix::process_context::{ProcessContext, ProcessId};
use unix::thread::System;
use unix::vfs::DeviceNumber;
use unix::{Error, Result};

impl<M: Machine> Node<M> {
    /// The text about one descriptor. `ENOENT` if it is closed, `EACCES` if the reader may not
    /// inspect the process.
    pub(super) async fn descriptor_text(
        &self,
        subject: Subject,
        descriptor: i32,
        reader: &dyn ProcessContext,
    ) -> Result<String> {
        let system = self.system()?;
        // Take the file first and check the permission afterwards, as `may_inspect` requires:
        // otherwise an exec could come in between.
        let found = subject.find(&system).and_then(|thread| {
            let descriptors = thread.descriptors();
            let file = descriptors.get(descriptor).ok()?;
            let close_on_exec = descriptors.close_on_exec(descriptor).unwrap_or(false);
            Some((file, close_on_exec, descriptors.lock_owner()))
        });
        self.check_descriptors(reader)?;
        let (file, close_on_exec, owner) = found.ok_or(Error::ENOENT)?;
        let offset = file.offset().await;
        let flags = to_open_flags(file.flags(), file.location().is_some());
        let flags = flags | if close_on_exec { CLOSE_ON_EXEC } else { 0 };
        let place = system.vfs().place_of(&file);
        let (mount, number) = (place.mount.id(), place.vnode.number());
        let mut text = format!("pos:\t{offset}\nflags:\t0{flags:o}\nmnt_id:\t{mount}\nino:\t{number}\n");
        let sight = self.sight(&system, reader);
        text.push_str(&lock_lines(&system, &file, owner, &sight));
        text.push_str(&details(&system, &file, &sight).await);
        Ok(text)
    }

    /// Whether the reader may see what descriptors are: `EACCES` unless it may inspect the process.
    pub(super) fn check_descriptors(&self, reader: &dyn ProcessContext) -> Result<()> {
        self.check_inspection(reader).map_err(|error| match error {
            Error::ESRCH => Error::ENOENT,
            _ => Error::EACCES,
        })
    }
}

/// The locks that were made through an open file: its own, and those of a process with the
/// descriptor table `owner`.
fn lock_lines<M: Machine>(
    system: &System<M>,
    file: &Arc<OpenFile>,
    owner: LockOwner,
    sight: &Sight,
) -> String {
    let mut text = String::new();
    let Some(hooks) = file.hooks() else { return text };
    let vnode = system.vfs().place_of(file).vnode;
    let (number, device) = (vnode.number(), vnode.metadata().device);
    for ((lock, is_whole), place) in hooks.locks.made_by(file.id(), owner).into_iter().zip(1..) {
        let how = match lock.owner {
            _ if is_whole => "FLOCK  ADVISORY ",
            LockOwner::Table(_) => "POSIX  ADVISORY ",
            LockOwner::Description(_) => "OFDLCK ADVISORY ",
        };
        let kind = match lock.kind {
            LockKind::Shared => "READ",
            LockKind::Exclusive => "WRITE",
        };
        let process = match lock.owner {
            LockOwner::Description(_) if !is_whole => -1,
            _ => shown_maker(system, lock.by.process, sight),
        };
        let (major, minor) = (device.major, device.minor);
        let _ = write!(
            text,
            "lock:\t{place}: {how} {kind} {process} {major:02x}:{minor:02x}:{number} {} ",
            lock.range.start
        );
        let _ = match lock.range.end {
            u64::MAX => writeln!(text, "EOF"),
            end => writeln!(text, "{}", end - 1),
        };
    }
    text
}

/// The number of the process that made a lock, in the namespace that is shown.
fn shown_maker<M: Machine>(system: &System<M>, process: ProcessId, sight: &Sight) -> i64 {
    Pid::new(process)
        .map_or(0, |id| system.processes().with(|table| table.number_in(&sight.processes, id)).into())
}

/// The lines that only a file of this kind has.
async fn details<M: Machine>(system: &System<M>, file: &Arc<OpenFile>, sight: &Sight) -> String {
    let mut text = String::new();
    if let Some(counter) = file.object_as::<EventCounter>() {
        let _ = write!(text, "eventfd-count: {:16x}\neventfd-id: {}\n", counter.count(), file.id());
    } else if let Some(socket) = file.socket() {
        let _ = writeln!(text, "scm_fds: {}", socket.held_files().len());
    } else if let Some(signals) = file.object_as::<SignalFile<M>>() {
        let _ = writeln!(text, "sigmask:\t{:016x}", signals.mask().bits());
    } else if let Some(timer) = file.object_as::<TimerFile>() {
        text.push_str(&timer_lines(&timer));
    } else if let Some(epoll) = file.object_as::<Epoll>() {
        for (descriptor, watched, settings) in epoll.watched() {
            let (events, data) = (watched_events(&settings), settings.data);
            let offset = watched.offset().await;
            let vnode = system.vfs().place_of(&watched).vnode;
            let (number, device) = (vnode.number(), encoded(vnode.metadata().device));
            let _ = writeln!(
                text,
                "tfd: {descriptor:8} events: {events:8x} data: {data:16x}  pos:{offset} ino:{number:x} \
                 sdev:{device:x}"
            );
        }
    } else if let Some(notifier) = file.object_as::<Notifier>() {
        for (watch, (number, device), events) in notifier.watches() {
            let (device, mask) = (encoded(device), events.bits());
            let _ = writeln!(
                text,
                "inotify wd:{watch:x} ino:{number:x} sdev:{device:x} mask:{mask:x} ignored_mask:0"
            );
        }
    } else if let Some(process) = file.object_as::<PidFile<M>>() {
        text.push_str(&process_lines(system, &process, sight));
    }
    text
}

fn timer_lines(timer: &TimerFile) -> String {
    let status = timer.status();
    let how = u32::from(status.absolute) | u32::from(status.cancels) << 1;
    let shown = |time: Duration| format!("({}, {})", time.as_secs(), time.subsec_nanos());
    format!(
        "clockid: {}\nticks: {}\nsettime flags: 0{how:o}\nit_value: {}\nit_interval: {}\n",
        status.clock as i32,
        status.expirations,
        shown(status.value),
        shown(status.interval)
    )
}

/// The numbers of the process in the namespace that is shown and in those below; -1 if it has
/// ended, 0 if the namespace does not know it.
fn process_lines<M: Machine>(system: &System<M>, file: &PidFile<M>, sight: &Sight) -> String {
    let numbers = system.processes().with(|table| {
        let pid = table.exact_process(file.process()).ok()?.pid();
        Some(table.numbers_from(&sight.processes, pid))
    });
    let Some(numbers) = numbers else { return String::from("Pid:\t-1\nNSpid:\t-1\n") };
    let first = numbers.first().copied().unwrap_or(0);
    let numbers = numbers.iter().fold(String::new(), |line, number| line + &format!("\t{number}"));
    format!("Pid:\t{first}\nNSpid:{numbers}\n")
}

/// The number of a device as the kernel's own files show it.
fn encoded(device: DeviceNumber) -> u32 {
    device.major << 20 | device.minor
}
