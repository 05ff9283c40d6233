//! Requests of ioctl(2) to virtual consoles (console_ioctl(4), linux/vt.h, linux/kd.h).

use crate::call::{Call, Done};
use crate::layout::Writer;
use alloc::sync::Arc;
use mach::Machine;
use unix::process_context::ProcessContext;
use unix::signal::RestartKind;
use unix::tty::{Terminal, VirtualConsoles};
use unix::{Error, Privilege};

const KIOCSOUND: u32 = 0x4b2f;
const KDMKTONE: u32 = 0x4b30;
const KDGETLED: u32 = 0x4b31;
const KDSETLED: u32 = 0x4b32;
const KDGKBTYPE: u32 = 0x4b33;
const KDSETMODE: u32 = 0x4b3a;
const KDGETMODE: u32 = 0x4b3b;
const KDGKBMODE: u32 = 0x4b44;
const KDSKBMODE: u32 = 0x4b45;
const KDGKBMETA: u32 = 0x4b62;
const KDSKBMETA: u32 = 0x4b63;
const KDGKBLED: u32 = 0x4b64;
const KDSKBLED: u32 = 0x4b65;
const KDFONTOP: u32 = 0x4b72;
const TIOCLINUX: u32 = 0x541c;
const VT_OPENQRY: u32 = 0x5600;
const VT_GETMODE: u32 = 0x5601;
const VT_SETMODE: u32 = 0x5602;
const VT_GETSTATE: u32 = 0x5603;
const VT_RELDISP: u32 = 0x5605;
const VT_ACTIVATE: u32 = 0x5606;
const VT_WAITACTIVE: u32 = 0x5607;
const VT_DISALLOCATE: u32 = 0x5608;
const VT_RESIZE: u32 = 0x5609;
const VT_RESIZEX: u32 = 0x560a;

/// The answer of KDGKBTYPE: a keyboard with 101 keys.
const KB_101: u8 = 2;
/// A mode of the screen: it shows text.
const KD_TEXT: u64 = 0;
/// A mode of the keyboard: characters come in UTF-8.
const K_UNICODE: u64 = 3;
/// What the Alt key does: an escape character comes first.
const K_ESCPREFIX: u64 = 4;
/// A mode of switching: the kernel switches without asking a process.
const VT_AUTO: u8 = 0;
/// The request of TIOCLINUX for the visible console, which counts from 0.
const VISIBLE: u8 = 12;

/// Carries out a request to a virtual console. Each console has text, UTF-8 and one layout of the
/// keyboard; another mode is refused. `ENOTTY`: the terminal is no virtual console, or it is no
/// such request.
pub(super) async fn request<M: Machine>(call: &Call<'_, M>, terminal: &Arc<Terminal>, request: u32) -> Done {
    let terminals = call.thread.system().terminals();
    let consoles = terminals.as_ref().and_then(|terminals| terminals.virtual_consoles.as_ref());
    let consoles = consoles.filter(|consoles| consoles.number_of(terminal).is_some()).ok_or(Error::ENOTTY)?;
    match request {
        VT_OPENQRY => write(call, &consoles.first_free().map_or(-1, i32::from).to_le_bytes()).await,
        VT_GETMODE => write(call, &Writer::<8>::new().done()).await,
        VT_GETSTATE => {
            let state = Writer::<6>::new().u16(0, consoles.visible().into()).u16(4, consoles.open());
            write(call, &state.done()).await
        }
        KDGKBTYPE => write(call, &[KB_101]).await,
        KDGETMODE => write(call, &(KD_TEXT as u32).to_le_bytes()).await,
        KDGKBMODE => write(call, &(K_UNICODE as u32).to_le_bytes()).await,
        KDGKBMETA => write(call, &(K_ESCPREFIX as u32).to_le_bytes()).await,
        KDGKBLED | KDGETLED => write(call, &[consoles.locks().bits()]).await,
        TIOCLINUX if call.read::<1>(call.arg(2)).await? == [VISIBLE] => Ok((consoles.visible() - 1).into()),
        _ => change(call, terminal, consoles, request).await,
    }
}

/// Requests that change something: only for processes whose terminal it is, and for privileged
/// ones.
async fn change<M: Machine>(
    call: &Call<'_, M>,
    terminal: &Arc<Terminal>,
    consoles: &VirtualConsoles,
    request: u32,
) -> Done {
    let own = call.thread.context().terminal();
    let is_own = own.is_some_and(|own| Arc::ptr_eq(&own, terminal));
    let may_change = is_own || call.has(Privilege::Terminal);
    let argument = call.arg(2);
    match request {
        KIOCSOUND | KDMKTONE | KDSETLED | KDSETMODE | KDSKBMODE | KDSKBMETA | KDSKBLED | VT_SETMODE
        | VT_RELDISP | VT_ACTIVATE | VT_WAITACTIVE | VT_DISALLOCATE | VT_RESIZE | VT_RESIZEX | KDFONTOP
            if !may_change =>
        {
            return Err(Error::EPERM.into());
        }
        // The machine has no beeper.
        KIOCSOUND | KDMKTONE => {}
        KDSETMODE if argument == KD_TEXT => {}
        KDSKBMODE if argument == K_UNICODE => {}
        KDSKBMETA if argument == K_ESCPREFIX => {}
        VT_SETMODE if call.read::<8>(argument).await?[0] == VT_AUTO => {}
        VT_ACTIVATE => consoles.show(argument)?,
        VT_WAITACTIVE => call.wait(RestartKind::RestartSys, consoles.wait(argument)).await??,
        VT_DISALLOCATE => consoles.clear(argument)?,
        KDSETMODE | KDSKBMODE | KDSKBMETA | KDSETLED | KDSKBLED | VT_SETMODE | VT_RELDISP | VT_RESIZE
        | VT_RESIZEX | TIOCLINUX => return Err(Error::EINVAL.into()),
        // The font is fixed.
        KDFONTOP => return Err(Error::ENOSYS.into()),
        _ => return Err(Error::ENOTTY.into()),
    }
    Ok(0)
}

async fn write<M: Machine>(call: &Call<'_, M>, bytes: &[u8]) -> Done {
    call.write(call.arg(2), bytes).await?;
    Ok(0)
}
