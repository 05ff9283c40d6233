//! The calls that mount by descriptors: fsopen(2), fsconfig(2), fsmount(2), fspick(2),
//! open_tree(2), move_mount(2) and mount_setattr(2).

use super::descriptor::insert;
use crate::call::{Call, Done};
use crate::layout::Fields;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use unix::file::{FileObject, OpenFile};
use unix::sync::SpinLock;
use unix::vfs::{Location, MountFlags, OpenFlags, PATH_MAXIMUM, VnodeRef, same};
use unix::{Error, Result};

const CLOSE_ON_EXEC: u32 = 0o200_0000;
const NO_FOLLOW: u32 = 0x100;
const NO_AUTOMOUNT: u32 = 0x800;
const EMPTY_PATH: u32 = 0x1000;
const RECURSIVE: u32 = 0x8000;

/// The attributes of mounts that are flags of these calls. The access times are a number among
/// them.
const ATTRIBUTES: [(u64, MountFlags); 5] = [
    (1, MountFlags::READ_ONLY),
    (2, MountFlags::NO_SET_ID),
    (4, MountFlags::NO_DEVICES),
    (8, MountFlags::NO_EXECUTE),
    (0x80, MountFlags::NO_DIRECTORY_ACCESS_TIME),
];
const ACCESS_TIME: u64 = 0x70;

/// The options that attributes mean. `EINVAL` for unknown ones.
fn attributes(bits: u64) -> Result<MountFlags> {
    let known = ATTRIBUTES.iter().fold(ACCESS_TIME, |all, (bit, _)| all | bit);
    let mut flags = match bits & ACCESS_TIME {
        0 => MountFlags::empty(),
        0x10 => MountFlags::NO_ACCESS_TIME,
        0x20 => MountFlags::STRICT_ACCESS_TIME,
        _ => return Err(Error::EINVAL),
    };
    ATTRIBUTES.iter().for_each(|(bit, flag)| flags.set(*flag, bits & bit != 0));
    if bits & !known != 0 { Err(Error::EINVAL) } else { Ok(flags) }
}

/// A file system that is being configured, as a file.
struct Context {
    kind: Vec<u8>,
    state: SpinLock<State>,
}

#[derive(Default)]
struct State {
    source: Option<Vec<u8>>,
    /// The options, separated by commas.
    options: Vec<u8>,
    read_only: bool,
    /// The root of the file system when it has been made or picked.
    root: Option<VnodeRef>,
    /// Whether a file system that exists is configured again (fspick).
    is_picked: bool,
    is_mounted: bool,
}

impl FileObject for Context {
    fn label(&self) -> &'static str {
        "anon_inode:[fscontext]"
    }
}

impl Context {
    fn open<M: Machine>(call: &Call<'_, M>, kind: Vec<u8>, state: State, close_on_exec: bool) -> Done {
        let context = Context { kind, state: SpinLock::new(state) };
        insert(call, OpenFile::of_object(Arc::new(context), OpenFlags::READ_WRITE), close_on_exec)
    }

    fn of<M: Machine>(call: &Call<'_, M>) -> Result<Arc<Context>> {
        call.thread.descriptors().get(call.int(0))?.object_as().ok_or(Error::EINVAL)
    }
}

/// The location that the descriptor and the path of arguments `index` and `index + 1` name.
async fn place<M: Machine>(call: &Call<'_, M>, index: usize, follow: bool, empty: bool) -> Result<Location> {
    let path = call.path(index + 1).await?;
    let at = call.at_for(index, &path)?;
    let context = call.thread.context();
    Ok(context.caller().find_or_self(&at, &path, follow, empty).await?.location)
}

pub(crate) async fn fsopen<M: Machine>(call: &Call<'_, M>) -> Done {
    const CLOEXEC: u32 = 1;
    call.thread.context().caller().check_administrator()?;
    if call.uint(1) & !CLOEXEC != 0 {
        return Err(Error::EINVAL.into());
    }
    let kind = call.memory().read_string(call.arg(0), PATH_MAXIMUM, Error::EINVAL).await?;
    if !call.system().vfs().file_system_types().iter().any(|known| known.as_bytes() == kind) {
        return Err(Error::ENODEV.into());
    }
    Context::open(call, kind, State::default(), call.uint(1) & CLOEXEC != 0)
}

pub(crate) async fn fspick<M: Machine>(call: &Call<'_, M>) -> Done {
    const CLOEXEC: u32 = 1;
    const NO_FOLLOW: u32 = 2;
    const NO_AUTOMOUNT: u32 = 4;
    const EMPTY_PATH: u32 = 8;
    call.thread.context().caller().check_administrator()?;
    let flags = call.uint(2);
    if flags & !(CLOEXEC | NO_FOLLOW | NO_AUTOMOUNT | EMPTY_PATH) != 0 {
        return Err(Error::EINVAL.into());
    }
    let at = place(call, 0, flags & NO_FOLLOW == 0, flags & EMPTY_PATH != 0).await?;
    if !same(&at.vnode, &at.mount.root().vnode) {
        return Err(Error::EINVAL.into());
    }
    let root = Some(at.vnode);
    let state = State { root, is_picked: true, is_mounted: true, ..State::default() };
    Context::open(call, Vec::new(), state, flags & CLOEXEC != 0)
}

pub(crate) async fn fsconfig<M: Machine>(call: &Call<'_, M>) -> Done {
    const SET_FLAG: u32 = 0;
    const SET_STRING: u32 = 1;
    const CREATE: u32 = 6;
    const RECONFIGURE: u32 = 7;
    /// Bytes of the longest value.
    const VALUE_MAXIMUM: usize = 256;
    let command = call.uint(1);
    let context = Context::of(call)?;
    let (has_key, has_value) = (call.arg(2) != 0, call.arg(3) != 0);
    let is_complete = match command {
        SET_FLAG => has_key && !has_value && call.arg(4) == 0,
        SET_STRING => has_key && has_value && call.arg(4) == 0,
        CREATE | RECONFIGURE => !has_key && !has_value && call.arg(4) == 0,
        _ => return Err(Error::EOPNOTSUPP.into()),
    };
    if !is_complete {
        return Err(Error::EINVAL.into());
    }
    let string =
        async |index: usize| call.memory().read_string(call.arg(index), VALUE_MAXIMUM, Error::EINVAL).await;
    match command {
        CREATE => return create(call, &context).await,
        RECONFIGURE => {
            let (root, options, read_only) = {
                let state = context.state.lock();
                let root = state.root.clone().filter(|_| state.is_picked).ok_or(Error::EINVAL)?;
                (root, state.options.clone(), state.read_only)
            };
            // Of the file systems that are there already, all belong to the first namespace here.
            if !call.has(unix::Privilege::Administrator) {
                return Err(Error::EPERM.into());
            }
            root.file_system().reconfigure(&options, read_only).await?;
            return Ok(0);
        }
        _ => {}
    }
    let key = string(2).await?;
    let value = if has_value { Some(string(3).await?) } else { None };
    let mut state = context.state.lock();
    if state.root.is_some() && !state.is_picked {
        return Err(Error::EBUSY.into());
    }
    match (&key[..], value) {
        (b"source", Some(source)) if state.source.is_none() => state.source = Some(source),
        (b"source", _) => return Err(Error::EINVAL.into()),
        (b"ro", None) => state.read_only = true,
        (b"rw", None) => state.read_only = false,
        (key, value) => {
            // The options are passed on in one list.
            let option = [Some(key), value.as_ref().map(|_| &b"="[..]), value.as_deref()];
            let option = option.into_iter().flatten().collect::<Vec<_>>().concat();
            if option.contains(&b',') {
                return Err(Error::EINVAL.into());
            }
            if state.options.len() + option.len() >= PATH_MAXIMUM {
                return Err(Error::ENOMEM.into());
            }
            if !state.options.is_empty() {
                state.options.push(b',');
            }
            state.options.extend_from_slice(&option);
        }
    }
    Ok(0)
}

/// Makes the file system of a context that has been configured.
async fn create<M: Machine>(call: &Call<'_, M>, context: &Context) -> Done {
    let (source, options, read_only) = {
        let state = context.state.lock();
        if state.root.is_some() {
            return Err(Error::EBUSY.into());
        }
        (state.source.clone().unwrap_or_default(), state.options.clone(), state.read_only)
    };
    let process = call.thread.context();
    process.caller().check_administrator()?;
    let options = super::mount::known_ids(call, &context.kind, &options)?;
    let root = process.caller().make_file_system(&context.kind, &source, &options, read_only).await?;
    let mut state = context.state.lock();
    if state.root.is_some() {
        return Err(Error::EBUSY.into());
    }
    state.root = Some(root);
    Ok(0)
}

pub(crate) async fn fsmount<M: Machine>(call: &Call<'_, M>) -> Done {
    const CLOEXEC: u32 = 1;
    call.thread.context().caller().check_administrator()?;
    if call.uint(1) & !CLOEXEC != 0 {
        return Err(Error::EINVAL.into());
    }
    let mut flags = attributes(call.arg(2))?;
    let context = Context::of(call)?;
    let (root, source) = {
        let mut state = context.state.lock();
        let root = state.root.clone().ok_or(Error::EINVAL)?;
        if core::mem::replace(&mut state.is_mounted, true) {
            return Err(Error::EBUSY.into());
        }
        (root, state.source.clone().unwrap_or_else(|| b"none".to_vec()))
    };
    flags.set(
        MountFlags::READ_ONLY,
        flags.contains(MountFlags::READ_ONLY) || root.file_system().is_read_only(),
    );
    let process = call.thread.context();
    let file = process.caller().make_mount(root, &String::from_utf8_lossy(&source), flags)?;
    insert(call, file, call.uint(1) & CLOEXEC != 0)
}

pub(crate) async fn open_tree<M: Machine>(call: &Call<'_, M>) -> Done {
    const CLONE: u32 = 1;
    let flags = call.uint(2);
    let known = CLONE | CLOSE_ON_EXEC | NO_FOLLOW | NO_AUTOMOUNT | EMPTY_PATH | RECURSIVE;
    if flags & !known != 0 || flags & (CLONE | RECURSIVE) == RECURSIVE {
        return Err(Error::EINVAL.into());
    }
    let context = call.thread.context();
    if flags & CLONE != 0 {
        context.caller().check_administrator()?;
    }
    let at = place(call, 0, flags & NO_FOLLOW == 0, flags & EMPTY_PATH != 0).await?;
    let file = match flags & CLONE {
        0 => context.caller().open_location(at),
        _ => context.caller().copy_mount(&at, flags & RECURSIVE != 0)?,
    };
    insert(call, file, flags & CLOSE_ON_EXEC != 0)
}

pub(crate) async fn move_mount<M: Machine>(call: &Call<'_, M>) -> Done {
    const FROM_FOLLOW: u32 = 1;
    const FROM_EMPTY: u32 = 4;
    const TO_FOLLOW: u32 = 0x10;
    const TO_EMPTY: u32 = 0x40;
    const AUTOMOUNTS: u32 = 0x22;
    let flags = call.uint(4);
    call.thread.context().caller().check_administrator()?;
    if flags & !(FROM_FOLLOW | FROM_EMPTY | TO_FOLLOW | TO_EMPTY | AUTOMOUNTS) != 0 {
        return Err(Error::EINVAL.into());
    }
    let from = place(call, 0, flags & FROM_FOLLOW != 0, flags & FROM_EMPTY != 0).await?;
    let to = place(call, 2, flags & TO_FOLLOW != 0, flags & TO_EMPTY != 0).await?;
    call.thread.context().caller().move_mount_to(&from, to)?;
    Ok(0)
}

pub(crate) async fn mount_setattr<M: Machine>(call: &Call<'_, M>) -> Done {
    const SIZE: usize = 32;
    const PAGE: u64 = 4096;
    let (flags, size) = (call.uint(2), call.arg(4));
    if flags & !(EMPTY_PATH | RECURSIVE | NO_FOLLOW | NO_AUTOMOUNT) != 0 || size < SIZE as u64 {
        return Err(Error::EINVAL.into());
    }
    if size > PAGE {
        return Err(Error::E2BIG.into());
    }
    call.thread.context().caller().check_administrator()?;
    let structure = call.memory().read_bytes(call.arg(3), size as usize).await?;
    if structure[SIZE..].iter().any(|byte| *byte != 0) {
        return Err(Error::E2BIG.into());
    }
    let (set, clear) = (structure.u64_at(0)?, structure.u64_at(8)?);
    // The access times are one number, which is replaced as a whole or not at all.
    if (set & ACCESS_TIME != 0 && clear & ACCESS_TIME != ACCESS_TIME)
        || !matches!(clear & ACCESS_TIME, 0 | ACCESS_TIME)
    {
        return Err(Error::EINVAL.into());
    }
    let times = MountFlags::NO_ACCESS_TIME | MountFlags::STRICT_ACCESS_TIME;
    let cleared = attributes(clear & !ACCESS_TIME)?;
    let cleared = if clear & ACCESS_TIME != 0 { cleared | times } else { cleared };
    let propagation = match structure.u64_at(16)? {
        0 => None,
        bits => Some(super::mount::propagation(bits).ok_or(Error::EINVAL)?),
    };
    let set = attributes(set)?;
    let at = place(call, 0, flags & NO_FOLLOW == 0, flags & EMPTY_PATH != 0).await?;
    let context = call.thread.context();
    context.caller().change_mount(&at, (set, cleared), propagation, flags & RECURSIVE != 0)?;
    Ok(0)
}
