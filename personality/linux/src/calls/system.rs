//! Calls on the system as a whole: names, memory, random numbers, the log, its end.

use crate::call::{Call, Done};
use crate::layout::process::{SystemInformation, to_sysinfo, to_utsname};
use alloc::vec::Vec;
use mach::Machine;
use mach::machine::ExecutionContext;
use unix::process_context::ProcessContext;
use unix::signal::RestartKind;
use unix::sync::Turns;
use unix::thread::End;
use unix::{Error, Privilege};

pub(crate) async fn uname<M: Machine>(call: &Call<'_, M>) -> Done {
    let (host, domain) = call.thread.namespaces().names.get();
    let names = to_utsname([
        b"Linux",
        &host,
        crate::version::RELEASE.as_bytes(),
        crate::version::VERSION.as_bytes(),
        b"x86_64",
        &domain,
    ]);
    call.write(call.arg(0), &names).await?;
    Ok(0)
}

pub(crate) async fn set_name<M: Machine>(call: &Call<'_, M>, domain: bool) -> Done {
    let names = call.thread.namespaces().names.clone();
    if !call.thread.credentials().has_in(names.owner(), Privilege::Administrator) {
        return Err(Error::EPERM.into());
    }
    if call.arg(1) > 64 {
        return Err(Error::EINVAL.into());
    }
    let name = call.memory().read_bytes(call.arg(0), call.arg(1) as usize).await?;
    match domain {
        true => names.set_domain(name),
        false => names.set_host(name),
    }
    Ok(0)
}

pub(crate) async fn sysinfo<M: Machine>(call: &Call<'_, M>) -> Done {
    let system = call.system();
    let memory = system.memory_use();
    let bytes = |pages: u64| pages * 4096;
    let information = SystemInformation {
        uptime: system.environment().monotonic().as_secs(),
        loads: system.with_load(unix::load::Load::averages),
        total: bytes(memory.total()),
        free: bytes(memory.free),
        shared: bytes(memory.memory_files),
        disks: bytes(memory.disks),
        swap_total: bytes(memory.swap.total),
        swap_free: bytes(memory.swap.free),
        processes: u16::try_from(call.table(|table| table.thread_counts().0)).unwrap_or(u16::MAX),
    };
    call.write(call.arg(0), &to_sysinfo(&information)).await?;
    Ok(0)
}

/// After this many pieces of 256 bytes, getrandom(2) lets other tasks run.
const RANDOM_TURN: u32 = 64;

pub(crate) async fn getrandom<M: Machine>(call: &Call<'_, M>) -> Done {
    const NONBLOCK: u32 = 1;
    const RANDOM: u32 = 2;
    const INSECURE: u32 = 4;
    let flags = call.uint(2);
    if flags & !(NONBLOCK | RANDOM | INSECURE) != 0 || flags & (RANDOM | INSECURE) == RANDOM | INSECURE {
        return Err(Error::EINVAL.into());
    }
    let mut buffer = call.buffer(call.arg(0), call.arg(1))?;
    let environment = call.system().environment().clone();
    if let Some(seeding) =
        environment.seeding().filter(|seeding| !seeding.is_seeded() && flags & INSECURE == 0)
    {
        if flags & NONBLOCK != 0 {
            return Err(Error::EAGAIN.into());
        }
        call.wait(RestartKind::RestartSys, seeding.finished()).await?;
    }
    call.transfer(&mut buffer, async |buffer| {
        use unix::{CopyError, UserBuffer};
        let mut bytes = [0; 256];
        let mut turns = Turns::every(RANDOM_TURN);
        while buffer.remaining() > 0 {
            turns.step().await;
            let count = bytes.len().min(buffer.remaining());
            environment.fill_random(&mut bytes[..count]);
            match buffer.copy_out(&bytes[..count]) {
                Ok(_) => {}
                Err(CopyError::NotResident) => buffer.resolve(true).await?,
                Err(CopyError::Fault) if buffer.transferred() > 0 => break,
                Err(CopyError::Fault) => return Err(Error::EFAULT),
            }
        }
        Ok(buffer.transferred())
    })
    .await
}

pub(crate) async fn getcpu<M: Machine>(call: &Call<'_, M>) -> Done {
    let processor = call.thread.machine_thread().processor() as u32;
    call.write_optional(call.arg(0), &processor.to_le_bytes()).await?;
    call.write_optional(call.arg(1), &[0; 4]).await?;
    Ok(0)
}

/// personality(2): Linux, with or without the flag that programs are not placed at random
/// addresses; returns the old one. `EINVAL` for others.
pub(crate) fn personality<M: Machine>(call: &Call<'_, M>) -> Done {
    const NOT_RANDOM: u32 = 0x4_0000;
    let new = match call.uint(0) {
        u32::MAX => None,
        0 => Some(true),
        NOT_RANDOM => Some(false),
        _ => return Err(Error::EINVAL.into()),
    };
    let pid = call.pid();
    let randomised = call.table(|table| {
        let process = table.process_mut(pid)?;
        let old = process.randomises;
        process.randomises = new.unwrap_or(old);
        Ok::<_, Error>(old)
    })?;
    Ok(if randomised { 0 } else { NOT_RANDOM.into() })
}

/// syslog(2): the superuser can read the log, but not consume it, and the level of the console
/// cannot be set.
pub(crate) async fn syslog<M: Machine>(call: &Call<'_, M>) -> Done {
    const READ_ALL: u32 = 3;
    const UNREAD: u32 = 9;
    const SIZE: u32 = 10;
    if !call.has(Privilege::Log) && !call.has(Privilege::Administrator) {
        return Err(Error::EPERM.into());
    }
    let text = call.system().host().kept_log().map_or_else(Vec::new, |log| crate::kmsg::text(log));
    match call.uint(0) {
        READ_ALL => {
            let room = usize::try_from(call.int(2)).map_err(|_| Error::EINVAL)?;
            let last = &text[text.len() - text.len().min(room)..];
            call.write(call.arg(1), last).await?;
            Ok(last.len() as u64)
        }
        UNREAD => Ok(0),
        SIZE => Ok(text.len() as u64),
        0..=10 => Err(Error::EPERM.into()),
        _ => Err(Error::EINVAL.into()),
    }
}

/// vhangup(2): hangs up the controlling terminal of the caller's session. `EPERM` without
/// privilege.
pub(crate) fn vhangup<M: Machine>(call: &Call<'_, M>) -> Done {
    if !call.has(Privilege::Terminal) {
        return Err(Error::EPERM.into());
    }
    if let Some(terminal) = call.thread.context().terminal() {
        terminal.hang_up();
    }
    Ok(0)
}

pub(crate) async fn reboot<M: Machine>(call: &Call<'_, M>) -> Done {
    const MAGIC: u32 = 0xfee1_dead;
    const MAGICS: [u32; 4] = [672_274_793, 85_072_278, 369_367_448, 537_993_216];
    /// The command of reboot(2) that keeps Ctrl-Alt-Del from restarting the machine. The server
    /// does not handle these keys, so there is nothing to do.
    const KEYS_OFF: u32 = 0;
    if !call.has(Privilege::Restart) {
        return Err(Error::EPERM.into());
    }
    if call.uint(0) != MAGIC || !MAGICS.contains(&call.uint(1)) {
        return Err(Error::EINVAL.into());
    }
    let how = match call.uint(2) {
        KEYS_OFF => return Ok(0),
        0x0123_4567 => End::Restart,
        0xcdef_0123 => End::Halt,
        0x4321_fedc => End::PowerOff,
        _ => return Err(Error::EINVAL.into()),
    };
    call.system().end(how).await?;
    Ok(0)
}
