//! The system call ioctl(2): requests to all files, to terminals, and to pseudoterminals.

use super::console;
use super::descriptor::{change_signals, file, insert, owner_number, set_owner};
use super::disk;
use super::fiemap::{self, FIEMAP};
use super::interface;
use super::rtc;
use crate::call::{Call, Done};
use crate::layout::Fields;
use crate::layout::file::{CLOSE_ON_EXEC, open_flags, to_device};
use crate::layout::terminal::{termios, to_termios, to_window, window};
use crate::nsfs;
use crate::socket::Socket;
use alloc::sync::Arc;
use mach::Machine;
use unix::file::OpenFile;
use unix::hardware_clock::ClockFile;
use unix::process_context::FileSignal;
use unix::signal::RestartKind;
use unix::thread::Namespace;
use unix::tty::{Flow, Flush, PtyMaster, SetWhen, Terminal};
use unix::vfs::{FileType, OpenFlags};
use unix::{Error, Privilege, Result};

const TCGETS: u32 = 0x5401;
const TCSETS: u32 = 0x5402;
const TCSETSW: u32 = 0x5403;
const TCSETSF: u32 = 0x5404;
const TCSBRK: u32 = 0x5409;
const TCXONC: u32 = 0x540a;
const TCFLSH: u32 = 0x540b;
const TIOCEXCL: u32 = 0x540c;
const TIOCNXCL: u32 = 0x540d;
const TIOCSCTTY: u32 = 0x540e;
const TIOCGPGRP: u32 = 0x540f;
const TIOCSPGRP: u32 = 0x5410;
const TIOCOUTQ: u32 = 0x5411;
const TIOCGWINSZ: u32 = 0x5413;
const TIOCSWINSZ: u32 = 0x5414;
const FIONREAD: u32 = 0x541b;
const TIOCPKT: u32 = 0x5420;
const FIONBIO: u32 = 0x5421;
const TIOCNOTTY: u32 = 0x5422;
const TIOCSETD: u32 = 0x5423;
const TIOCGETD: u32 = 0x5424;
const TCSBRKP: u32 = 0x5425;
const TIOCGSID: u32 = 0x5429;
const TIOCVHANGUP: u32 = 0x5437;
const TIOCGPTPEER: u32 = 0x5441;
const FIONCLEX: u32 = 0x5450;
const FIOCLEX: u32 = 0x5451;
const FIOASYNC: u32 = 0x5452;
const FIOSETOWN: u32 = 0x8901;
const SIOCSPGRP: u32 = 0x8902;
const FIOGETOWN: u32 = 0x8903;
const SIOCGPGRP: u32 = 0x8904;
const FICLONE: u32 = 0x4004_9409;
const FICLONERANGE: u32 = 0x4020_940d;
const TCGETS2: u32 = 0x802c_542a;
const TCSETS2: u32 = 0x402c_542b;
const TCSETSW2: u32 = 0x402c_542c;
const TCSETSF2: u32 = 0x402c_542d;
const TIOCGPTN: u32 = 0x8004_5430;
const TIOCSPTLCK: u32 = 0x4004_5431;
const TIOCGPTLCK: u32 = 0x8004_5439;
const TIOCGDEV: u32 = 0x8004_5432;
const TIOCSIG: u32 = 0x4004_5436;
const TIOCGPKT: u32 = 0x8004_5438;
const TIOCGEXCL: u32 = 0x8004_5440;

/// Whether a request of ioctl changes nothing, or only a flag at its end, so that it can be tried.
pub(crate) fn only_asks(request: u32) -> bool {
    matches!(
        request,
        TCGETS
            | TCGETS2
            | TIOCGPGRP
            | TIOCGSID
            | TIOCOUTQ
            | TIOCGWINSZ
            | FIONREAD
            | FIONBIO
            | FIONCLEX
            | FIOCLEX
            | FIOASYNC
            | TIOCGETD
            | TIOCGPTN
            | TIOCGPTLCK
            | TIOCGDEV
            | TIOCGPKT
            | TIOCGEXCL
    )
}

pub(crate) async fn ioctl<M: Machine>(call: &Call<'_, M>) -> Done {
    let (file, descriptor) = (file(call, 0)?, call.int(0));
    if file.flags().contains(OpenFlags::PATH) {
        return Err(Error::EBADF.into());
    }
    match call.uint(1) {
        FIOCLEX => call.thread.descriptors().set_close_on_exec(descriptor, true)?,
        FIONCLEX => call.thread.descriptors().set_close_on_exec(descriptor, false)?,
        FIONBIO => file.set_flag(OpenFlags::NONBLOCK, flag(call).await?),
        FIOASYNC => {
            let (on, before) = (flag(call).await?, file.flags().contains(OpenFlags::ASYNC));
            if on != before && !file.can_signal() {
                return Err(Error::ENOTTY.into());
            }
            file.set_flag(OpenFlags::ASYNC, on);
            change_signals(call, &file, before);
        }
        FIOSETOWN | SIOCSPGRP if Socket::of(&file).is_some() => {
            let number = call.read::<4>(call.arg(2)).await?.i32_at(0)?;
            set_owner(call, &file, number)?;
        }
        FIOGETOWN | SIOCGPGRP if Socket::of(&file).is_some() => {
            call.write(call.arg(2), &owner_number(call, &file).to_le_bytes()).await?;
        }
        FIONREAD => {
            let count = readable(&file).await?;
            call.write(call.arg(2), &(count.min(i32::MAX as usize) as u32).to_le_bytes()).await?;
        }
        FIEMAP if matches!(file.file_type(), FileType::Regular | FileType::Directory) => {
            let vnode = file.location().map(|location| location.vnode.clone());
            return fiemap::request(call, &vnode.ok_or(Error::EOPNOTSUPP)?).await;
        }
        // No file system here lets files share their storage.
        FICLONE | FICLONERANGE if file.file_type() == FileType::Regular => {
            return Err(Error::EOPNOTSUPP.into());
        }
        request => {
            if let Some(clock) = file.object_as::<ClockFile>() {
                return rtc::request(call, &clock, request).await;
            }
            if let Some(namespace) = nsfs::namespace_in(&file) {
                return namespace_request(call, &namespace, request).await;
            }
            return match (Socket::of(&file), disk::node(&file)) {
                (Some(socket), _) => interface::request(call, &socket, request).await,
                (None, Some(node)) => disk::request(call, &file, &node, request).await,
                (None, None) => terminal_request(call, &file, request).await,
            };
        }
    }
    Ok(0)
}

/// Requests to files that show namespaces.
async fn namespace_request<M: Machine>(call: &Call<'_, M>, namespace: &Namespace, request: u32) -> Done {
    match nsfs::answer(call.thread, namespace, request)? {
        nsfs::Answer::Namespace(other) => insert(call, nsfs::open(call.thread, other), true),
        nsfs::Answer::Number(number) => Ok(number),
        nsfs::Answer::User(user) => {
            call.write(call.arg(2), &user.to_le_bytes()).await?;
            Ok(0)
        }
    }
}

/// An int in the program's memory (the address is argument 2), as a truth value.
async fn flag<M: Machine>(call: &Call<'_, M>) -> Result<bool> {
    Ok(call.read::<4>(call.arg(2)).await? != [0; 4])
}

async fn readable(file: &OpenFile) -> Result<usize> {
    match file.object() {
        Some(object) => object.readable_bytes(),
        None if file.file_type() == FileType::Regular => {
            let position = file.seek(0, unix::file::Whence::Current).await?;
            Ok(file.metadata().size.saturating_sub(position) as usize)
        }
        None => Err(Error::ENOTTY),
    }
}

async fn terminal_request<M: Machine>(call: &Call<'_, M>, file: &Arc<OpenFile>, request: u32) -> Done {
    if let Some(master) = file.object_as::<PtyMaster>()
        && let Some(done) = master_request(call, &master, request).await
    {
        return done;
    }
    let terminal = file.object().and_then(|object| object.terminal()).ok_or(Error::ENOTTY)?;
    let is_master = file.object_as::<PtyMaster>().is_some();
    let context = || call.thread.context();
    match request {
        TCGETS => call.write(call.arg(2), &to_termios(&terminal.settings())[..36]).await?,
        TCGETS2 => call.write(call.arg(2), &to_termios(&terminal.settings())).await?,
        TCSETS | TCSETSW | TCSETSF | TCSETS2 | TCSETSW2 | TCSETSF2 => {
            let settings = match request {
                TCSETS | TCSETSW | TCSETSF => termios(&call.read::<36>(call.arg(2)).await?)?,
                _ => termios(&call.read::<44>(call.arg(2)).await?)?,
            };
            let when = match request {
                TCSETS | TCSETS2 => SetWhen::Now,
                TCSETSW | TCSETSW2 => SetWhen::Drained,
                _ => SetWhen::Flushed,
            };
            call.wait(RestartKind::RestartSys, terminal.set_settings(&context(), settings, when)).await??;
        }
        // No break is sent: these requests only wait until the output has been taken, as TCSBRK
        // with a non-zero argument does on Linux.
        TCSBRK | TCSBRKP => call.wait(RestartKind::RestartSys, terminal.drain()).await??,
        TCXONC => {
            let flow = match call.uint(2) {
                0 => Flow::StopOutput,
                1 => Flow::StartOutput,
                2 => Flow::StopInput,
                3 => Flow::StartInput,
                _ => return Err(Error::EINVAL.into()),
            };
            call.wait(RestartKind::RestartSys, terminal.flow(&context(), flow)).await??;
        }
        TCFLSH => {
            let which = match call.uint(2) {
                0 => Flush::Input,
                1 => Flush::Output,
                2 => Flush::Both,
                _ => return Err(Error::EINVAL.into()),
            };
            call.wait(RestartKind::RestartSys, terminal.flush(&context(), which)).await??;
        }
        // The usual line discipline (N_TTY) is the only one.
        TIOCGETD => call.write(call.arg(2), &0u32.to_le_bytes()).await?,
        TIOCSETD if !flag(call).await? => {}
        TIOCSETD => return Err(Error::EINVAL.into()),
        TIOCGDEV => {
            let device = to_device(terminal.number()) as u32;
            call.write(call.arg(2), &device.to_le_bytes()).await?;
        }
        TIOCGEXCL => {
            let exclusive = u32::from(terminal.is_exclusive());
            call.write(call.arg(2), &exclusive.to_le_bytes()).await?;
        }
        TIOCEXCL => terminal.set_exclusive(true),
        TIOCNXCL => terminal.set_exclusive(false),
        TIOCGWINSZ => call.write(call.arg(2), &to_window(terminal.window_size())).await?,
        TIOCSWINSZ => terminal.set_window_size(window(&call.read(call.arg(2)).await?)?),
        TIOCOUTQ => call.write(call.arg(2), &(terminal.pending_output() as u32).to_le_bytes()).await?,
        _ => return session_request(call, terminal, is_master, request).await,
    }
    Ok(0)
}

/// Requests about sessions and foreground groups.
async fn session_request<M: Machine>(
    call: &Call<'_, M>,
    terminal: &Arc<Terminal>,
    is_master: bool,
    request: u32,
) -> Done {
    let context = call.thread.context();
    match request {
        TIOCSCTTY => {
            let identity = call.thread.credentials().identity();
            terminal.acquire(&context, &identity, call.uint(2) == 1)?;
        }
        TIOCNOTTY => terminal.give_up(&context)?,
        TIOCGPGRP => {
            let group = call.number_of(terminal.foreground(&context, is_master)?);
            call.write(call.arg(2), &group.to_le_bytes()).await?;
        }
        TIOCSPGRP => {
            let group = call.read::<4>(call.arg(2)).await?.i32_at(0)?;
            if group < 0 {
                return Err(Error::EINVAL.into());
            }
            let group = call.id(group)?.number();
            call.wait(RestartKind::RestartSys, terminal.set_foreground(&context, group)).await??;
        }
        TIOCGSID => {
            let session = call.number_of(terminal.session(&context, is_master)?);
            call.write(call.arg(2), &session.to_le_bytes()).await?;
        }
        TIOCVHANGUP if call.has(Privilege::Administrator) => terminal.hang_up(),
        TIOCVHANGUP => return Err(Error::EPERM.into()),
        _ => return console::request(call, terminal, request).await,
    }
    Ok(0)
}

/// Requests to the master of a pseudoterminal; `None` if the request is of another kind.
async fn master_request<M: Machine>(call: &Call<'_, M>, master: &PtyMaster, request: u32) -> Option<Done> {
    Some(match request {
        TIOCGPTN => write_word(call, master.index()).await,
        TIOCGPKT => write_word(call, master.packet_mode().into()).await,
        TIOCPKT => match flag(call).await {
            Ok(on) => {
                master.set_packet_mode(on);
                Ok(0)
            }
            Err(error) => Err(error.into()),
        },
        TIOCSIG => {
            // The signals that special characters can send.
            let signal = match call.uint(2) {
                2 => FileSignal::Interrupt,
                3 => FileSignal::Quit,
                20 => FileSignal::Stop,
                _ => return Some(Err(Error::EINVAL.into())),
            };
            master.signal_foreground(signal);
            Ok(0)
        }
        TIOCGPTLCK => write_word(call, master.is_locked().into()).await,
        TIOCSPTLCK => match flag(call).await {
            Ok(locked) => {
                master.set_locked(locked);
                Ok(0)
            }
            Err(error) => Err(error.into()),
        },
        TIOCGPTPEER => {
            let flags = open_flags(call.uint(2));
            let kept = OpenFlags::READ_WRITE | OpenFlags::NONBLOCK | OpenFlags::NO_CONTROLLING_TERMINAL;
            let flags = flags.intersection(kept);
            let tree = call.thread.directories().tree();
            match master.open_peer(&tree, &call.thread.context(), flags) {
                Ok(peer) => insert(call, peer, call.uint(2) & CLOSE_ON_EXEC != 0),
                Err(error) => Err(error.into()),
            }
        }
        _ => return None,
    })
}

async fn write_word<M: Machine>(call: &Call<'_, M>, word: u32) -> Done {
    call.write(call.arg(2), &word.to_le_bytes()).await?;
    Ok(0)
}
