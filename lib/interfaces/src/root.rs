// Written by mig from the definition of `root`. Do not edit.

/// What root does for the servers that it has started. A request is L4 IPC from a server's
/// thread to a thread of root's: root's request thread on that processor (rt::start_page), or
/// the server's pager. The label of a request is its number here, and that of its answer is 100
/// more. The first word of an answer is the status: 0 done, 1 invalid argument, 3 quota
/// exceeded, 4 no memory, 5 not found, 6 in use, 7 unsupported; -303 if there is no such
/// request, -304 if its words are not the arguments. The in arguments follow each other in the
/// request's message registers; in the answer the out arguments follow the status. A text is
/// its length in bytes, then its bytes, eight in a word. Only root_name_lookup with wait lets
/// its caller wait for another server.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`root_print`](super::Server::root_print).
    pub const ROOT_PRINT: u64 = 4000;
    /// [`root_exit`](super::Server::root_exit).
    pub const ROOT_EXIT: u64 = 4001;
    /// [`root_memory_allocate`](super::Server::root_memory_allocate).
    pub const ROOT_MEMORY_ALLOCATE: u64 = 4002;
    /// [`root_memory_free`](super::Server::root_memory_free).
    pub const ROOT_MEMORY_FREE: u64 = 4003;
    /// [`root_thread_create`](super::Server::root_thread_create).
    pub const ROOT_THREAD_CREATE: u64 = 4004;
    /// [`root_thread_delete`](super::Server::root_thread_delete).
    pub const ROOT_THREAD_DELETE: u64 = 4005;
    /// [`root_space_create`](super::Server::root_space_create).
    pub const ROOT_SPACE_CREATE: u64 = 4006;
    /// [`root_space_thread_create`](super::Server::root_space_thread_create).
    pub const ROOT_SPACE_THREAD_CREATE: u64 = 4007;
    /// [`root_space_thread_delete`](super::Server::root_space_thread_delete).
    pub const ROOT_SPACE_THREAD_DELETE: u64 = 4008;
    /// [`root_space_delete`](super::Server::root_space_delete).
    pub const ROOT_SPACE_DELETE: u64 = 4009;
    /// [`root_memory_available`](super::Server::root_memory_available).
    pub const ROOT_MEMORY_AVAILABLE: u64 = 4010;
    /// [`root_memory_pool`](super::Server::root_memory_pool).
    pub const ROOT_MEMORY_POOL: u64 = 4011;
    /// [`root_module_map`](super::Server::root_module_map).
    pub const ROOT_MODULE_MAP: u64 = 4012;
    /// [`root_name_register`](super::Server::root_name_register).
    pub const ROOT_NAME_REGISTER: u64 = 4013;
    /// [`root_name_lookup`](super::Server::root_name_lookup).
    pub const ROOT_NAME_LOOKUP: u64 = 4014;
    /// [`root_interrupt_attach`](super::Server::root_interrupt_attach).
    pub const ROOT_INTERRUPT_ATTACH: u64 = 4015;
    /// [`root_interrupt_detach`](super::Server::root_interrupt_detach).
    pub const ROOT_INTERRUPT_DETACH: u64 = 4016;
    /// [`root_device_map`](super::Server::root_device_map).
    pub const ROOT_DEVICE_MAP: u64 = 4017;
    /// [`root_system_end`](super::Server::root_system_end).
    pub const ROOT_SYSTEM_END: u64 = 4018;
    /// [`root_resource`](super::Server::root_resource).
    pub const ROOT_RESOURCE: u64 = 4019;
    /// [`root_share_create`](super::Server::root_share_create).
    pub const ROOT_SHARE_CREATE: u64 = 4020;
    /// [`root_share_map`](super::Server::root_share_map).
    pub const ROOT_SHARE_MAP: u64 = 4021;
    /// [`root_server`](super::Server::root_server).
    pub const ROOT_SERVER: u64 = 4022;
    /// [`root_memory_dma`](super::Server::root_memory_dma).
    pub const ROOT_MEMORY_DMA: u64 = 4023;
    /// [`root_pci_region`](super::Server::root_pci_region).
    pub const ROOT_PCI_REGION: u64 = 4024;
    /// [`root_message_attach`](super::Server::root_message_attach).
    pub const ROOT_MESSAGE_ATTACH: u64 = 4025;
    /// [`root_message_detach`](super::Server::root_message_detach).
    pub const ROOT_MESSAGE_DETACH: u64 = 4026;
    /// [`root_pci_read`](super::Server::root_pci_read).
    pub const ROOT_PCI_READ: u64 = 4027;
    /// [`root_pool_create`](super::Server::root_pool_create).
    pub const ROOT_POOL_CREATE: u64 = 4028;
    /// [`root_pool_find`](super::Server::root_pool_find).
    pub const ROOT_POOL_FIND: u64 = 4029;
    /// [`root_share_renew`](super::Server::root_share_renew).
    pub const ROOT_SHARE_RENEW: u64 = 4030;
}
/// Writes a request of [`Server::root_print`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_print<R: Registers>(
    registers_: &mut R,
    text: &[u8],
) -> Result<MessageTag, Error> {
    if text.len() > 488 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.array(text);
    Ok(encoder_.finish(id::ROOT_PRINT))
}
/// Reads the reply of [`Server::root_print`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_print<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ROOT_PRINT, 1, 0)?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_print`].
#[inline]
pub fn reply_root_print<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_PRINT, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_PRINT + REPLY));
    reply_
}
/// Writes a request of [`Server::root_exit`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_exit<R: Registers>(
    registers_: &mut R,
    status: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(status);
    Ok(encoder_.finish(id::ROOT_EXIT))
}
/// Writes a request of [`Server::root_memory_allocate`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_memory_allocate<R: Registers>(
    registers_: &mut R,
    address: u64,
    size: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(address);
    encoder_.word(size);
    Ok(encoder_.finish(id::ROOT_MEMORY_ALLOCATE))
}
/// Reads the reply of [`Server::root_memory_allocate`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_memory_allocate<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_MEMORY_ALLOCATE,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_memory_allocate`].
#[inline]
pub fn reply_root_memory_allocate<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_MEMORY_ALLOCATE, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_MEMORY_ALLOCATE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_memory_free`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_memory_free<R: Registers>(
    registers_: &mut R,
    address: u64,
    size: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(address);
    encoder_.word(size);
    Ok(encoder_.finish(id::ROOT_MEMORY_FREE))
}
/// Reads the reply of [`Server::root_memory_free`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_memory_free<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_MEMORY_FREE,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_memory_free`].
#[inline]
pub fn reply_root_memory_free<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_MEMORY_FREE, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_MEMORY_FREE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_thread_create`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_thread_create<R: Registers>(
    registers_: &mut R,
    ip: u64,
    sp: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(ip);
    encoder_.word(sp);
    Ok(encoder_.finish(id::ROOT_THREAD_CREATE))
}
/// Reads the reply of [`Server::root_thread_create`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_thread_create<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_THREAD_CREATE,
        2,
        0,
    )?;
    let read = move || {
        let thread = decoder_.word()?;
        decoder_.finish()?;
        Some(thread)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_thread_create`].
#[inline]
pub fn reply_root_thread_create<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let thread = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_THREAD_CREATE, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(thread);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_THREAD_CREATE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_thread_delete`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_thread_delete<R: Registers>(
    registers_: &mut R,
    thread: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(thread);
    Ok(encoder_.finish(id::ROOT_THREAD_DELETE))
}
/// Reads the reply of [`Server::root_thread_delete`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_thread_delete<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_THREAD_DELETE,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_thread_delete`].
#[inline]
pub fn reply_root_thread_delete<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_THREAD_DELETE, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_THREAD_DELETE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_space_create`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_space_create<R: Registers>(
    registers_: &mut R,
    kernel_interface: u64,
    utcb_area: u64,
    utcb_area_log2: u64,
    system_calls: u64,
    emulation_entry: u64,
    kernel_memory: u64,
    handler: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(kernel_interface);
    encoder_.word(utcb_area);
    encoder_.word(utcb_area_log2);
    encoder_.word(system_calls);
    encoder_.word(emulation_entry);
    encoder_.word(kernel_memory);
    encoder_.word(handler);
    Ok(encoder_.finish(id::ROOT_SPACE_CREATE))
}
/// Reads the reply of [`Server::root_space_create`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_space_create<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_SPACE_CREATE,
        3,
        0,
    )?;
    let read = move || {
        let space = decoder_.word()?;
        let thread = decoder_.word()?;
        decoder_.finish()?;
        Some((space, thread))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_space_create`].
#[inline]
pub fn reply_root_space_create<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u64), Status>,
) -> Reply<'a> {
    let (space, thread) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_SPACE_CREATE, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(space);
    encoder_.word(thread);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_SPACE_CREATE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_space_thread_create`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_space_thread_create<R: Registers>(
    registers_: &mut R,
    space: u64,
    place: u64,
    handler: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(space);
    encoder_.word(place);
    encoder_.word(handler);
    Ok(encoder_.finish(id::ROOT_SPACE_THREAD_CREATE))
}
/// Reads the reply of [`Server::root_space_thread_create`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_space_thread_create<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_SPACE_THREAD_CREATE,
        2,
        0,
    )?;
    let read = move || {
        let thread = decoder_.word()?;
        decoder_.finish()?;
        Some(thread)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_space_thread_create`].
#[inline]
pub fn reply_root_space_thread_create<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let thread = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_SPACE_THREAD_CREATE, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(thread);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_SPACE_THREAD_CREATE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_space_thread_delete`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_space_thread_delete<R: Registers>(
    registers_: &mut R,
    thread: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(thread);
    Ok(encoder_.finish(id::ROOT_SPACE_THREAD_DELETE))
}
/// Reads the reply of [`Server::root_space_thread_delete`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_space_thread_delete<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_SPACE_THREAD_DELETE,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_space_thread_delete`].
#[inline]
pub fn reply_root_space_thread_delete<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_SPACE_THREAD_DELETE, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_SPACE_THREAD_DELETE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_space_delete`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_space_delete<R: Registers>(
    registers_: &mut R,
    space: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(space);
    Ok(encoder_.finish(id::ROOT_SPACE_DELETE))
}
/// Reads the reply of [`Server::root_space_delete`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_space_delete<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_SPACE_DELETE,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_space_delete`].
#[inline]
pub fn reply_root_space_delete<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_SPACE_DELETE, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_SPACE_DELETE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_memory_available`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_memory_available<R: Registers>(
    registers_: &mut R,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    Ok(encoder_.finish(id::ROOT_MEMORY_AVAILABLE))
}
/// Reads the reply of [`Server::root_memory_available`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_memory_available<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_MEMORY_AVAILABLE,
        2,
        0,
    )?;
    let read = move || {
        let size = decoder_.word()?;
        decoder_.finish()?;
        Some(size)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_memory_available`].
#[inline]
pub fn reply_root_memory_available<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let size = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_MEMORY_AVAILABLE, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(size);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_MEMORY_AVAILABLE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_memory_pool`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_memory_pool<R: Registers>(
    registers_: &mut R,
    address: u64,
    size: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(address);
    encoder_.word(size);
    Ok(encoder_.finish(id::ROOT_MEMORY_POOL))
}
/// Reads the reply of [`Server::root_memory_pool`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_memory_pool<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_MEMORY_POOL,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_memory_pool`].
#[inline]
pub fn reply_root_memory_pool<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_MEMORY_POOL, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_MEMORY_POOL + REPLY));
    reply_
}
/// Writes a request of [`Server::root_module_map`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_module_map<R: Registers>(
    registers_: &mut R,
    room: u64,
    name: &[u8],
) -> Result<MessageTag, Error> {
    if name.len() > 256 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(room);
    encoder_.array(name);
    Ok(encoder_.finish(id::ROOT_MODULE_MAP))
}
/// Reads the reply of [`Server::root_module_map`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_module_map<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ROOT_MODULE_MAP, 3, 0)?;
    let read = move || {
        let address = decoder_.word()?;
        let size = decoder_.word()?;
        decoder_.finish()?;
        Some((address, size))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_module_map`].
#[inline]
pub fn reply_root_module_map<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u64), Status>,
) -> Reply<'a> {
    let (address, size) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_MODULE_MAP, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(address);
    encoder_.word(size);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_MODULE_MAP + REPLY));
    reply_
}
/// Writes a request of [`Server::root_name_register`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_name_register<R: Registers>(
    registers_: &mut R,
    thread: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(thread);
    Ok(encoder_.finish(id::ROOT_NAME_REGISTER))
}
/// Reads the reply of [`Server::root_name_register`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_name_register<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_NAME_REGISTER,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_name_register`].
#[inline]
pub fn reply_root_name_register<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_NAME_REGISTER, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_NAME_REGISTER + REPLY));
    reply_
}
/// Writes a request of [`Server::root_name_lookup`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_name_lookup<R: Registers>(
    registers_: &mut R,
    wait: u64,
    name: &[u8],
) -> Result<MessageTag, Error> {
    if name.len() > 256 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(wait);
    encoder_.array(name);
    Ok(encoder_.finish(id::ROOT_NAME_LOOKUP))
}
/// Reads the reply of [`Server::root_name_lookup`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_name_lookup<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_NAME_LOOKUP,
        2,
        0,
    )?;
    let read = move || {
        let thread = decoder_.word()?;
        decoder_.finish()?;
        Some(thread)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_name_lookup`].
#[inline]
pub fn reply_root_name_lookup<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let thread = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_NAME_LOOKUP, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(thread);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_NAME_LOOKUP + REPLY));
    reply_
}
/// Writes a request of [`Server::root_interrupt_attach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_interrupt_attach<R: Registers>(
    registers_: &mut R,
    line: u64,
    thread: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(line);
    encoder_.word(thread);
    Ok(encoder_.finish(id::ROOT_INTERRUPT_ATTACH))
}
/// Reads the reply of [`Server::root_interrupt_attach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_interrupt_attach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_INTERRUPT_ATTACH,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_interrupt_attach`].
#[inline]
pub fn reply_root_interrupt_attach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_INTERRUPT_ATTACH, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_INTERRUPT_ATTACH + REPLY));
    reply_
}
/// Writes a request of [`Server::root_interrupt_detach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_interrupt_detach<R: Registers>(
    registers_: &mut R,
    line: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(line);
    Ok(encoder_.finish(id::ROOT_INTERRUPT_DETACH))
}
/// Reads the reply of [`Server::root_interrupt_detach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_interrupt_detach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_INTERRUPT_DETACH,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_interrupt_detach`].
#[inline]
pub fn reply_root_interrupt_detach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_INTERRUPT_DETACH, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_INTERRUPT_DETACH + REPLY));
    reply_
}
/// Writes a request of [`Server::root_device_map`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_device_map<R: Registers>(
    registers_: &mut R,
    physical: u64,
    size: u64,
    address: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(physical);
    encoder_.word(size);
    encoder_.word(address);
    Ok(encoder_.finish(id::ROOT_DEVICE_MAP))
}
/// Reads the reply of [`Server::root_device_map`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_device_map<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ROOT_DEVICE_MAP, 1, 0)?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_device_map`].
#[inline]
pub fn reply_root_device_map<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_DEVICE_MAP, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_DEVICE_MAP + REPLY));
    reply_
}
/// Writes a request of [`Server::root_system_end`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_system_end<R: Registers>(
    registers_: &mut R,
    how: u64,
    status: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(how);
    encoder_.word(status);
    Ok(encoder_.finish(id::ROOT_SYSTEM_END))
}
/// Reads the reply of [`Server::root_system_end`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_system_end<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ROOT_SYSTEM_END, 1, 0)?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_system_end`].
#[inline]
pub fn reply_root_system_end<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_SYSTEM_END, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_SYSTEM_END + REPLY));
    reply_
}
/// Writes a request of [`Server::root_resource`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_resource<R: Registers>(
    registers_: &mut R,
    kind: u64,
    index: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(kind);
    encoder_.word(index);
    Ok(encoder_.finish(id::ROOT_RESOURCE))
}
/// Reads the reply of [`Server::root_resource`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_resource<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ROOT_RESOURCE, 3, 0)?;
    let read = move || {
        let first = decoder_.word()?;
        let second = decoder_.word()?;
        decoder_.finish()?;
        Some((first, second))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_resource`].
#[inline]
pub fn reply_root_resource<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u64), Status>,
) -> Reply<'a> {
    let (first, second) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_RESOURCE, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(first);
    encoder_.word(second);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_RESOURCE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_share_create`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_share_create<R: Registers>(
    registers_: &mut R,
    address: u64,
    size: u64,
    partner: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(address);
    encoder_.word(size);
    encoder_.word(partner);
    Ok(encoder_.finish(id::ROOT_SHARE_CREATE))
}
/// Reads the reply of [`Server::root_share_create`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_share_create<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_SHARE_CREATE,
        2,
        0,
    )?;
    let read = move || {
        let share = decoder_.word()?;
        decoder_.finish()?;
        Some(share)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_share_create`].
#[inline]
pub fn reply_root_share_create<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let share = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_SHARE_CREATE, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(share);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_SHARE_CREATE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_share_map`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_share_map<R: Registers>(
    registers_: &mut R,
    share: u64,
    address: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(share);
    encoder_.word(address);
    Ok(encoder_.finish(id::ROOT_SHARE_MAP))
}
/// Reads the reply of [`Server::root_share_map`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_share_map<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ROOT_SHARE_MAP, 2, 0)?;
    let read = move || {
        let size = decoder_.word()?;
        decoder_.finish()?;
        Some(size)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_share_map`].
#[inline]
pub fn reply_root_share_map<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let size = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_SHARE_MAP, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(size);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_SHARE_MAP + REPLY));
    reply_
}
/// Writes a request of [`Server::root_server`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_server<R: Registers>(
    registers_: &mut R,
    index: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(index);
    Ok(encoder_.finish(id::ROOT_SERVER))
}
/// Reads the reply of [`Server::root_server`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_server<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, Array<u8, 256>), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::reply(registers_, tag_, id::ROOT_SERVER)?;
    let read = move || {
        let used = decoder_.word()?;
        let limit = decoder_.word()?;
        let runs = decoder_.word()?;
        let restarts = decoder_.word()?;
        let kernel_memory = decoder_.word()?;
        let threads = decoder_.word()?;
        let spaces = decoder_.word()?;
        let end = decoder_.word()?;
        let what = decoder_.word()?;
        let ip = decoder_.word()?;
        let name = decoder_.array::<u8, 256>()?;
        decoder_.finish()?;
        Some((
            used,
            limit,
            runs,
            restarts,
            kernel_memory,
            threads,
            spaces,
            end,
            what,
            ip,
            name,
        ))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_server`].
#[inline]
pub fn reply_root_server<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<
        (u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, Array<u8, 256>),
        Status,
    >,
) -> Reply<'a> {
    let (
        used,
        limit,
        runs,
        restarts,
        kernel_memory,
        threads,
        spaces,
        end,
        what,
        ip,
        name,
    ) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_SERVER, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(used);
    encoder_.word(limit);
    encoder_.word(runs);
    encoder_.word(restarts);
    encoder_.word(kernel_memory);
    encoder_.word(threads);
    encoder_.word(spaces);
    encoder_.word(end);
    encoder_.word(what);
    encoder_.word(ip);
    encoder_.array(&name);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_SERVER + REPLY));
    reply_
}
/// Writes a request of [`Server::root_memory_dma`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_memory_dma<R: Registers>(
    registers_: &mut R,
    address: u64,
    size: u64,
    bits: u64,
    kept: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(address);
    encoder_.word(size);
    encoder_.word(bits);
    encoder_.word(kept);
    Ok(encoder_.finish(id::ROOT_MEMORY_DMA))
}
/// Reads the reply of [`Server::root_memory_dma`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_memory_dma<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ROOT_MEMORY_DMA, 2, 0)?;
    let read = move || {
        let physical = decoder_.word()?;
        decoder_.finish()?;
        Some(physical)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_memory_dma`].
#[inline]
pub fn reply_root_memory_dma<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let physical = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_MEMORY_DMA, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(physical);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_MEMORY_DMA + REPLY));
    reply_
}
/// Writes a request of [`Server::root_pci_region`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_pci_region<R: Registers>(
    registers_: &mut R,
    function: u64,
    base_address: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(function);
    encoder_.word(base_address);
    Ok(encoder_.finish(id::ROOT_PCI_REGION))
}
/// Reads the reply of [`Server::root_pci_region`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_pci_region<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64, u64), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ROOT_PCI_REGION, 4, 0)?;
    let read = move || {
        let kind = decoder_.word()?;
        let first = decoder_.word()?;
        let size = decoder_.word()?;
        decoder_.finish()?;
        Some((kind, first, size))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_pci_region`].
#[inline]
pub fn reply_root_pci_region<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u64, u64), Status>,
) -> Reply<'a> {
    let (kind, first, size) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_PCI_REGION, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(kind);
    encoder_.word(first);
    encoder_.word(size);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_PCI_REGION + REPLY));
    reply_
}
/// Writes a request of [`Server::root_message_attach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_message_attach<R: Registers>(
    registers_: &mut R,
    function: u64,
    entry: u64,
    thread: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(function);
    encoder_.word(entry);
    encoder_.word(thread);
    Ok(encoder_.finish(id::ROOT_MESSAGE_ATTACH))
}
/// Reads the reply of [`Server::root_message_attach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_message_attach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_MESSAGE_ATTACH,
        2,
        0,
    )?;
    let read = move || {
        let interrupt = decoder_.word()?;
        decoder_.finish()?;
        Some(interrupt)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_message_attach`].
#[inline]
pub fn reply_root_message_attach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let interrupt = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_MESSAGE_ATTACH, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(interrupt);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_MESSAGE_ATTACH + REPLY));
    reply_
}
/// Writes a request of [`Server::root_message_detach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_message_detach<R: Registers>(
    registers_: &mut R,
    interrupt: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(interrupt);
    Ok(encoder_.finish(id::ROOT_MESSAGE_DETACH))
}
/// Reads the reply of [`Server::root_message_detach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_message_detach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_MESSAGE_DETACH,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_message_detach`].
#[inline]
pub fn reply_root_message_detach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::ROOT_MESSAGE_DETACH, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_MESSAGE_DETACH + REPLY));
    reply_
}
/// Writes a request of [`Server::root_pci_read`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_pci_read<R: Registers>(
    registers_: &mut R,
    function: u64,
    offset: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(function);
    encoder_.word(offset);
    Ok(encoder_.finish(id::ROOT_PCI_READ))
}
/// Reads the reply of [`Server::root_pci_read`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_pci_read<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ROOT_PCI_READ, 2, 0)?;
    let read = move || {
        let value = decoder_.word()?;
        decoder_.finish()?;
        Some(value)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_pci_read`].
#[inline]
pub fn reply_root_pci_read<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let value = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_PCI_READ, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(value);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_PCI_READ + REPLY));
    reply_
}
/// Writes a request of [`Server::root_pool_create`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_pool_create<R: Registers>(
    registers_: &mut R,
    address: u64,
    size: u64,
    driver: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(address);
    encoder_.word(size);
    encoder_.word(driver);
    Ok(encoder_.finish(id::ROOT_POOL_CREATE))
}
/// Reads the reply of [`Server::root_pool_create`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_pool_create<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_POOL_CREATE,
        2,
        0,
    )?;
    let read = move || {
        let pool = decoder_.word()?;
        decoder_.finish()?;
        Some(pool)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_pool_create`].
#[inline]
pub fn reply_root_pool_create<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let pool = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_POOL_CREATE, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(pool);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_POOL_CREATE + REPLY));
    reply_
}
/// Writes a request of [`Server::root_pool_find`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_pool_find<R: Registers>(
    registers_: &mut R,
    pool: u64,
    offset: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(pool);
    encoder_.word(offset);
    Ok(encoder_.finish(id::ROOT_POOL_FIND))
}
/// Reads the reply of [`Server::root_pool_find`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_pool_find<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ROOT_POOL_FIND, 3, 0)?;
    let read = move || {
        let physical = decoder_.word()?;
        let size = decoder_.word()?;
        decoder_.finish()?;
        Some((physical, size))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_pool_find`].
#[inline]
pub fn reply_root_pool_find<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u64), Status>,
) -> Reply<'a> {
    let (physical, size) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_POOL_FIND, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(physical);
    encoder_.word(size);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_POOL_FIND + REPLY));
    reply_
}
/// Writes a request of [`Server::root_share_renew`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_root_share_renew<R: Registers>(
    registers_: &mut R,
    share: u64,
    partner: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(share);
    encoder_.word(partner);
    Ok(encoder_.finish(id::ROOT_SHARE_RENEW))
}
/// Reads the reply of [`Server::root_share_renew`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_root_share_renew<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::ROOT_SHARE_RENEW,
        1,
        0,
    )?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::root_share_renew`].
#[inline]
pub fn reply_root_share_renew<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ROOT_SHARE_RENEW, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ROOT_SHARE_RENEW + REPLY));
    reply_
}
/// The client's functions, one for each request. Each blocks until the server has answered.
#[derive(Debug)]
pub struct Client<'a, T> {
    /// The thread's IPC.
    pub transport: &'a mut T,
    /// The server's thread.
    pub to: ThreadId,
}
impl<T: Transport> Client<'_, T> {
    /// Prints text on the console, bytes that are not printable as question marks.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_print(&mut self, text: &[u8]) -> Result<(), Error> {
        let tag_ = encode_root_print(self.transport, text)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_print(self.transport, tag_)
    }
    /// Ends the server: everything it has is taken back. Never answered.
    ///
    /// # Errors
    /// The request could not be sent.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_exit(&mut self, status: u64) -> Result<(), Error> {
        let tag_ = encode_root_exit(self.transport, status)?;
        self.transport.send(self.to, tag_, &[]).map_err(Error::Ipc)
    }
    /// Zeroed memory for the server, whole pages at an address where it has none.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_memory_allocate(
        &mut self,
        address: u64,
        size: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_root_memory_allocate(self.transport, address, size)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_memory_allocate(self.transport, tag_)
    }
    /// Gives memory back, all that was allocated together.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_memory_free(&mut self, address: u64, size: u64) -> Result<(), Error> {
        let tag_ = encode_root_memory_free(self.transport, address, size)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_memory_free(self.transport, tag_)
    }
    /// A thread in the server's space, with the server's priority, paged by root.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_thread_create(&mut self, ip: u64, sp: u64) -> Result<u64, Error> {
        let tag_ = encode_root_thread_create(self.transport, ip, sp)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_thread_create(self.transport, tag_)
    }
    /// Ends a thread of the server's, not its first.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_thread_delete(&mut self, thread: u64) -> Result<(), Error> {
        let tag_ = encode_root_thread_delete(self.transport, thread)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_thread_delete(self.transport, tag_)
    }
    /// A space that the server owns, with its first thread, whose UTCB is the first of the UTCB
    /// area. handler, a thread of the server, is the new thread's pager and scheduler. The new
    /// thread waits for its start. system_calls: 0 none, 1 exception mode, 2 bounce mode.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_space_create(
        &mut self,
        kernel_interface: u64,
        utcb_area: u64,
        utcb_area_log2: u64,
        system_calls: u64,
        emulation_entry: u64,
        kernel_memory: u64,
        handler: u64,
    ) -> Result<(u64, u64), Error> {
        let tag_ = encode_root_space_create(
            self.transport,
            kernel_interface,
            utcb_area,
            utcb_area_log2,
            system_calls,
            emulation_entry,
            kernel_memory,
            handler,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_space_create(self.transport, tag_)
    }
    /// Another thread in such a space, at a place of its UTCB area.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_space_thread_create(
        &mut self,
        space: u64,
        place: u64,
        handler: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_space_thread_create(
            self.transport,
            space,
            place,
            handler,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_space_thread_create(self.transport, tag_)
    }
    /// Ends a thread of such a space, not the space's last.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_space_thread_delete(&mut self, thread: u64) -> Result<(), Error> {
        let tag_ = encode_root_space_thread_delete(self.transport, thread)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_space_thread_delete(self.transport, tag_)
    }
    /// Ends such a space with all its threads.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_space_delete(&mut self, space: u64) -> Result<(), Error> {
        let tag_ = encode_root_space_delete(self.transport, space)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_space_delete(self.transport, tag_)
    }
    /// How many bytes the server could still be given.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_memory_available(&mut self) -> Result<u64, Error> {
        let tag_ = encode_root_memory_available(self.transport)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_memory_available(self.transport, tag_)
    }
    /// As root_memory_allocate, but not zeroed, and executable: for pools of frames. Never holds
    /// another server's data.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_memory_pool(&mut self, address: u64, size: u64) -> Result<(), Error> {
        let tag_ = encode_root_memory_pool(self.transport, address, size)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_memory_pool(self.transport, tag_)
    }
    /// Maps a boot module of the server's, read-only, into the room from an address on.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_module_map(
        &mut self,
        room: u64,
        name: &[u8],
    ) -> Result<(u64, u64), Error> {
        let tag_ = encode_root_module_map(self.transport, room, name)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_module_map(self.transport, tag_)
    }
    /// From now on a thread of the server's is found by the server's name.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_name_register(&mut self, thread: u64) -> Result<(), Error> {
        let tag_ = encode_root_name_register(self.transport, thread)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_name_register(self.transport, tag_)
    }
    /// The thread that a server has registered; opens the two spaces to each other. wait: until it
    /// registers.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_name_lookup(&mut self, wait: u64, name: &[u8]) -> Result<u64, Error> {
        let tag_ = encode_root_name_lookup(self.transport, wait, name)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_name_lookup(self.transport, tag_)
    }
    /// Interrupts of a line become messages to a thread of the server's.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_interrupt_attach(
        &mut self,
        line: u64,
        thread: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_root_interrupt_attach(self.transport, line, thread)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_interrupt_attach(self.transport, tag_)
    }
    /// Ends what root_interrupt_attach has begun.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_interrupt_detach(&mut self, line: u64) -> Result<(), Error> {
        let tag_ = encode_root_interrupt_detach(self.transport, line)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_interrupt_detach(self.transport, tag_)
    }
    /// Maps device memory, readable and writable.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_device_map(
        &mut self,
        physical: u64,
        size: u64,
        address: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_root_device_map(self.transport, physical, size, address)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_device_map(self.transport, tag_)
    }
    /// Ends the system: 0 power off with a status, 1 reboot. Not answered if it works.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_system_end(&mut self, how: u64, status: u64) -> Result<(), Error> {
        let tag_ = encode_root_system_end(self.transport, how, status)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_system_end(self.transport, tag_)
    }
    /// One of the server's resources: kind 0 interrupt (line, 0), 1 I/O ports (first, last), 2
    /// device memory (address, size), 3 PCI function (bus, device and function in bits 8..16, 3..8
    /// and 0..3; how many message-signalled interrupts it can have), 4 the screen (index 0:
    /// address, bytes from a line to the next; 1: width, height; 2: bits of a pixel, or 0 for
    /// characters, and where in it the colours are: x2::boot_info::Screen).
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_resource(&mut self, kind: u64, index: u64) -> Result<(u64, u64), Error> {
        let tag_ = encode_root_resource(self.transport, kind, index)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_resource(self.transport, tag_)
    }
    /// Zeroed memory for the server and for the server of the thread partner. It exists until both
    /// have ended.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_share_create(
        &mut self,
        address: u64,
        size: u64,
        partner: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_share_create(self.transport, address, size, partner)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_share_create(self.transport, tag_)
    }
    /// Maps what another server shares with this one.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_share_map(&mut self, share: u64, address: u64) -> Result<u64, Error> {
        let tag_ = encode_root_share_map(self.transport, share, address)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_share_map(self.transport, tag_)
    }
    /// The server at this place of the configuration: its memory, how much it may have, whether it
    /// runs, how often it was started again, the kernel memory of its own space, the numbers of its
    /// threads and spaces with those that it owns, why it ended last (0 it has not ended; 1 exit,
    /// status; 2 fault, address; 3 exception, number; 4 ports that it does not have, the first; 5
    /// it could not be started) and at which instruction, its name.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_server(
        &mut self,
        index: u64,
    ) -> Result<
        (u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, Array<u8, 256>),
        Error,
    > {
        let tag_ = encode_root_server(self.transport, index)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_server(self.transport, tag_)
    }
    /// Memory for devices, in one physical piece below 2^bits, whose address is answered. It is
    /// zeroed; kept: unless the server had it before it ended and was started again.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_memory_dma(
        &mut self,
        address: u64,
        size: u64,
        bits: u64,
        kept: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_memory_dma(self.transport, address, size, bits, kept)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_memory_dma(self.transport, tag_)
    }
    /// Registers of one of the server's PCI functions, to which one of its base address registers
    /// leads: their kind (0 memory, 1 ports), the first address or port, and how many there are.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_pci_region(
        &mut self,
        function: u64,
        base_address: u64,
    ) -> Result<(u64, u64, u64), Error> {
        let tag_ = encode_root_pci_region(self.transport, function, base_address)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_pci_region(self.transport, tag_)
    }
    /// A message-signalled interrupt of a PCI function (MSI: 0, MSI-X: an entry of its table)
    /// becomes an IPC message to a thread of the server's. The answer has the thread number from
    /// which these come. The function may write memory from then on.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_message_attach(
        &mut self,
        function: u64,
        entry: u64,
        thread: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_message_attach(self.transport, function, entry, thread)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_message_attach(self.transport, tag_)
    }
    /// Ends what root_message_attach has begun.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_message_detach(&mut self, interrupt: u64) -> Result<(), Error> {
        let tag_ = encode_root_message_detach(self.transport, interrupt)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_message_detach(self.transport, tag_)
    }
    /// The word of 32 bits at an offset in the configuration space of one of the server's PCI
    /// functions, a multiple of 4 below 256.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_pci_read(&mut self, function: u64, offset: u64) -> Result<u64, Error> {
        let tag_ = encode_root_pci_read(self.transport, function, offset)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_pci_read(self.transport, tag_)
    }
    /// Lets the devices of the server of the thread driver use a region of this server's memory, as
    /// it was allocated, until either server ends. Until then it cannot be freed.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_pool_create(
        &mut self,
        address: u64,
        size: u64,
        driver: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_pool_create(self.transport, address, size, driver)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_pool_create(self.transport, tag_)
    }
    /// Tells the driver of a pool the physical address of the byte at an offset, and how many bytes
    /// from there on are physically contiguous.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_pool_find(
        &mut self,
        pool: u64,
        offset: u64,
    ) -> Result<(u64, u64), Error> {
        let tag_ = encode_root_pool_find(self.transport, pool, offset)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_pool_find(self.transport, tag_)
    }
    /// Shares memory that the server has created, and whose partner has ended, with the server of
    /// the thread partner, as it is.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn root_share_renew(&mut self, share: u64, partner: u64) -> Result<(), Error> {
        let tag_ = encode_root_share_renew(self.transport, share, partner)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_root_share_renew(self.transport, tag_)
    }
}
/// The client's functions as futures, which are ready when the server has answered.
#[derive(Debug)]
pub struct AsyncClient<'a, T> {
    /// The thread's IPC.
    pub transport: &'a mut T,
    /// The server's thread.
    pub to: ThreadId,
}
impl<T: AsyncTransport> AsyncClient<'_, T> {
    /// Prints text on the console, bytes that are not printable as question marks.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_print(&mut self, text: &[u8]) -> Result<(), Error> {
        let tag_ = encode_root_print(self.transport, text)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_print(self.transport, tag_)
    }
    /// Zeroed memory for the server, whole pages at an address where it has none.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_memory_allocate(
        &mut self,
        address: u64,
        size: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_root_memory_allocate(self.transport, address, size)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_memory_allocate(self.transport, tag_)
    }
    /// Gives memory back, all that was allocated together.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_memory_free(
        &mut self,
        address: u64,
        size: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_root_memory_free(self.transport, address, size)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_memory_free(self.transport, tag_)
    }
    /// A thread in the server's space, with the server's priority, paged by root.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_thread_create(&mut self, ip: u64, sp: u64) -> Result<u64, Error> {
        let tag_ = encode_root_thread_create(self.transport, ip, sp)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_thread_create(self.transport, tag_)
    }
    /// Ends a thread of the server's, not its first.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_thread_delete(&mut self, thread: u64) -> Result<(), Error> {
        let tag_ = encode_root_thread_delete(self.transport, thread)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_thread_delete(self.transport, tag_)
    }
    /// A space that the server owns, with its first thread, whose UTCB is the first of the UTCB
    /// area. handler, a thread of the server, is the new thread's pager and scheduler. The new
    /// thread waits for its start. system_calls: 0 none, 1 exception mode, 2 bounce mode.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_space_create(
        &mut self,
        kernel_interface: u64,
        utcb_area: u64,
        utcb_area_log2: u64,
        system_calls: u64,
        emulation_entry: u64,
        kernel_memory: u64,
        handler: u64,
    ) -> Result<(u64, u64), Error> {
        let tag_ = encode_root_space_create(
            self.transport,
            kernel_interface,
            utcb_area,
            utcb_area_log2,
            system_calls,
            emulation_entry,
            kernel_memory,
            handler,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_space_create(self.transport, tag_)
    }
    /// Another thread in such a space, at a place of its UTCB area.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_space_thread_create(
        &mut self,
        space: u64,
        place: u64,
        handler: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_space_thread_create(
            self.transport,
            space,
            place,
            handler,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_space_thread_create(self.transport, tag_)
    }
    /// Ends a thread of such a space, not the space's last.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_space_thread_delete(&mut self, thread: u64) -> Result<(), Error> {
        let tag_ = encode_root_space_thread_delete(self.transport, thread)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_space_thread_delete(self.transport, tag_)
    }
    /// Ends such a space with all its threads.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_space_delete(&mut self, space: u64) -> Result<(), Error> {
        let tag_ = encode_root_space_delete(self.transport, space)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_space_delete(self.transport, tag_)
    }
    /// How many bytes the server could still be given.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_memory_available(&mut self) -> Result<u64, Error> {
        let tag_ = encode_root_memory_available(self.transport)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_memory_available(self.transport, tag_)
    }
    /// As root_memory_allocate, but not zeroed, and executable: for pools of frames. Never holds
    /// another server's data.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_memory_pool(
        &mut self,
        address: u64,
        size: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_root_memory_pool(self.transport, address, size)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_memory_pool(self.transport, tag_)
    }
    /// Maps a boot module of the server's, read-only, into the room from an address on.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_module_map(
        &mut self,
        room: u64,
        name: &[u8],
    ) -> Result<(u64, u64), Error> {
        let tag_ = encode_root_module_map(self.transport, room, name)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_module_map(self.transport, tag_)
    }
    /// From now on a thread of the server's is found by the server's name.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_name_register(&mut self, thread: u64) -> Result<(), Error> {
        let tag_ = encode_root_name_register(self.transport, thread)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_name_register(self.transport, tag_)
    }
    /// The thread that a server has registered; opens the two spaces to each other. wait: until it
    /// registers.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_name_lookup(
        &mut self,
        wait: u64,
        name: &[u8],
    ) -> Result<u64, Error> {
        let tag_ = encode_root_name_lookup(self.transport, wait, name)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_name_lookup(self.transport, tag_)
    }
    /// Interrupts of a line become messages to a thread of the server's.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_interrupt_attach(
        &mut self,
        line: u64,
        thread: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_root_interrupt_attach(self.transport, line, thread)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_interrupt_attach(self.transport, tag_)
    }
    /// Ends what root_interrupt_attach has begun.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_interrupt_detach(&mut self, line: u64) -> Result<(), Error> {
        let tag_ = encode_root_interrupt_detach(self.transport, line)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_interrupt_detach(self.transport, tag_)
    }
    /// Maps device memory, readable and writable.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_device_map(
        &mut self,
        physical: u64,
        size: u64,
        address: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_root_device_map(self.transport, physical, size, address)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_device_map(self.transport, tag_)
    }
    /// Ends the system: 0 power off with a status, 1 reboot. Not answered if it works.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_system_end(&mut self, how: u64, status: u64) -> Result<(), Error> {
        let tag_ = encode_root_system_end(self.transport, how, status)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_system_end(self.transport, tag_)
    }
    /// One of the server's resources: kind 0 interrupt (line, 0), 1 I/O ports (first, last), 2
    /// device memory (address, size), 3 PCI function (bus, device and function in bits 8..16, 3..8
    /// and 0..3; how many message-signalled interrupts it can have), 4 the screen (index 0:
    /// address, bytes from a line to the next; 1: width, height; 2: bits of a pixel, or 0 for
    /// characters, and where in it the colours are: x2::boot_info::Screen).
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_resource(
        &mut self,
        kind: u64,
        index: u64,
    ) -> Result<(u64, u64), Error> {
        let tag_ = encode_root_resource(self.transport, kind, index)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_resource(self.transport, tag_)
    }
    /// Zeroed memory for the server and for the server of the thread partner. It exists until both
    /// have ended.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_share_create(
        &mut self,
        address: u64,
        size: u64,
        partner: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_share_create(self.transport, address, size, partner)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_share_create(self.transport, tag_)
    }
    /// Maps what another server shares with this one.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_share_map(
        &mut self,
        share: u64,
        address: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_share_map(self.transport, share, address)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_share_map(self.transport, tag_)
    }
    /// The server at this place of the configuration: its memory, how much it may have, whether it
    /// runs, how often it was started again, the kernel memory of its own space, the numbers of its
    /// threads and spaces with those that it owns, why it ended last (0 it has not ended; 1 exit,
    /// status; 2 fault, address; 3 exception, number; 4 ports that it does not have, the first; 5
    /// it could not be started) and at which instruction, its name.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_server(
        &mut self,
        index: u64,
    ) -> Result<
        (u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, Array<u8, 256>),
        Error,
    > {
        let tag_ = encode_root_server(self.transport, index)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_server(self.transport, tag_)
    }
    /// Memory for devices, in one physical piece below 2^bits, whose address is answered. It is
    /// zeroed; kept: unless the server had it before it ended and was started again.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_memory_dma(
        &mut self,
        address: u64,
        size: u64,
        bits: u64,
        kept: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_memory_dma(self.transport, address, size, bits, kept)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_memory_dma(self.transport, tag_)
    }
    /// Registers of one of the server's PCI functions, to which one of its base address registers
    /// leads: their kind (0 memory, 1 ports), the first address or port, and how many there are.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_pci_region(
        &mut self,
        function: u64,
        base_address: u64,
    ) -> Result<(u64, u64, u64), Error> {
        let tag_ = encode_root_pci_region(self.transport, function, base_address)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_pci_region(self.transport, tag_)
    }
    /// A message-signalled interrupt of a PCI function (MSI: 0, MSI-X: an entry of its table)
    /// becomes an IPC message to a thread of the server's. The answer has the thread number from
    /// which these come. The function may write memory from then on.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_message_attach(
        &mut self,
        function: u64,
        entry: u64,
        thread: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_message_attach(self.transport, function, entry, thread)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_message_attach(self.transport, tag_)
    }
    /// Ends what root_message_attach has begun.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_message_detach(&mut self, interrupt: u64) -> Result<(), Error> {
        let tag_ = encode_root_message_detach(self.transport, interrupt)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_message_detach(self.transport, tag_)
    }
    /// The word of 32 bits at an offset in the configuration space of one of the server's PCI
    /// functions, a multiple of 4 below 256.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_pci_read(
        &mut self,
        function: u64,
        offset: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_pci_read(self.transport, function, offset)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_pci_read(self.transport, tag_)
    }
    /// Lets the devices of the server of the thread driver use a region of this server's memory, as
    /// it was allocated, until either server ends. Until then it cannot be freed.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_pool_create(
        &mut self,
        address: u64,
        size: u64,
        driver: u64,
    ) -> Result<u64, Error> {
        let tag_ = encode_root_pool_create(self.transport, address, size, driver)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_pool_create(self.transport, tag_)
    }
    /// Tells the driver of a pool the physical address of the byte at an offset, and how many bytes
    /// from there on are physically contiguous.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_pool_find(
        &mut self,
        pool: u64,
        offset: u64,
    ) -> Result<(u64, u64), Error> {
        let tag_ = encode_root_pool_find(self.transport, pool, offset)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_pool_find(self.transport, tag_)
    }
    /// Shares memory that the server has created, and whose partner has ended, with the server of
    /// the thread partner, as it is.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn root_share_renew(
        &mut self,
        share: u64,
        partner: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_root_share_renew(self.transport, share, partner)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_root_share_renew(self.transport, tag_)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// Prints text on the console, bytes that are not printable as question marks.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_print(&mut self, caller_: ThreadId, text: &[u8]) -> Result<(), Status>;
    /// Ends the server: everything it has is taken back. Never answered.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_exit(&mut self, caller_: ThreadId, status: u64);
    /// Zeroed memory for the server, whole pages at an address where it has none.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_memory_allocate(
        &mut self,
        caller_: ThreadId,
        address: u64,
        size: u64,
    ) -> Result<(), Status>;
    /// Gives memory back, all that was allocated together.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_memory_free(
        &mut self,
        caller_: ThreadId,
        address: u64,
        size: u64,
    ) -> Result<(), Status>;
    /// A thread in the server's space, with the server's priority, paged by root.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_thread_create(
        &mut self,
        caller_: ThreadId,
        ip: u64,
        sp: u64,
    ) -> Result<u64, Status>;
    /// Ends a thread of the server's, not its first.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_thread_delete(
        &mut self,
        caller_: ThreadId,
        thread: u64,
    ) -> Result<(), Status>;
    /// A space that the server owns, with its first thread, whose UTCB is the first of the UTCB
    /// area. handler, a thread of the server, is the new thread's pager and scheduler. The new
    /// thread waits for its start. system_calls: 0 none, 1 exception mode, 2 bounce mode.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_space_create(
        &mut self,
        caller_: ThreadId,
        kernel_interface: u64,
        utcb_area: u64,
        utcb_area_log2: u64,
        system_calls: u64,
        emulation_entry: u64,
        kernel_memory: u64,
        handler: u64,
    ) -> Result<(u64, u64), Status>;
    /// Another thread in such a space, at a place of its UTCB area.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_space_thread_create(
        &mut self,
        caller_: ThreadId,
        space: u64,
        place: u64,
        handler: u64,
    ) -> Result<u64, Status>;
    /// Ends a thread of such a space, not the space's last.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_space_thread_delete(
        &mut self,
        caller_: ThreadId,
        thread: u64,
    ) -> Result<(), Status>;
    /// Ends such a space with all its threads.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_space_delete(&mut self, caller_: ThreadId, space: u64) -> Result<(), Status>;
    /// How many bytes the server could still be given.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_memory_available(&mut self, caller_: ThreadId) -> Result<u64, Status>;
    /// As root_memory_allocate, but not zeroed, and executable: for pools of frames. Never holds
    /// another server's data.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_memory_pool(
        &mut self,
        caller_: ThreadId,
        address: u64,
        size: u64,
    ) -> Result<(), Status>;
    /// Maps a boot module of the server's, read-only, into the room from an address on.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_module_map(
        &mut self,
        caller_: ThreadId,
        room: u64,
        name: &[u8],
    ) -> Result<(u64, u64), Status>;
    /// From now on a thread of the server's is found by the server's name.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_name_register(
        &mut self,
        caller_: ThreadId,
        thread: u64,
    ) -> Result<(), Status>;
    /// The thread that a server has registered; opens the two spaces to each other. wait: until it
    /// registers.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_name_lookup(
        &mut self,
        caller_: ThreadId,
        wait: u64,
        name: &[u8],
    ) -> Result<u64, Status>;
    /// Interrupts of a line become messages to a thread of the server's.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_interrupt_attach(
        &mut self,
        caller_: ThreadId,
        line: u64,
        thread: u64,
    ) -> Result<(), Status>;
    /// Ends what root_interrupt_attach has begun.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_interrupt_detach(
        &mut self,
        caller_: ThreadId,
        line: u64,
    ) -> Result<(), Status>;
    /// Maps device memory, readable and writable.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_device_map(
        &mut self,
        caller_: ThreadId,
        physical: u64,
        size: u64,
        address: u64,
    ) -> Result<(), Status>;
    /// Ends the system: 0 power off with a status, 1 reboot. Not answered if it works.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_system_end(
        &mut self,
        caller_: ThreadId,
        how: u64,
        status: u64,
    ) -> Result<(), Status>;
    /// One of the server's resources: kind 0 interrupt (line, 0), 1 I/O ports (first, last), 2
    /// device memory (address, size), 3 PCI function (bus, device and function in bits 8..16, 3..8
    /// and 0..3; how many message-signalled interrupts it can have), 4 the screen (index 0:
    /// address, bytes from a line to the next; 1: width, height; 2: bits of a pixel, or 0 for
    /// characters, and where in it the colours are: x2::boot_info::Screen).
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_resource(
        &mut self,
        caller_: ThreadId,
        kind: u64,
        index: u64,
    ) -> Result<(u64, u64), Status>;
    /// Zeroed memory for the server and for the server of the thread partner. It exists until both
    /// have ended.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_share_create(
        &mut self,
        caller_: ThreadId,
        address: u64,
        size: u64,
        partner: u64,
    ) -> Result<u64, Status>;
    /// Maps what another server shares with this one.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_share_map(
        &mut self,
        caller_: ThreadId,
        share: u64,
        address: u64,
    ) -> Result<u64, Status>;
    /// The server at this place of the configuration: its memory, how much it may have, whether it
    /// runs, how often it was started again, the kernel memory of its own space, the numbers of its
    /// threads and spaces with those that it owns, why it ended last (0 it has not ended; 1 exit,
    /// status; 2 fault, address; 3 exception, number; 4 ports that it does not have, the first; 5
    /// it could not be started) and at which instruction, its name.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_server(
        &mut self,
        caller_: ThreadId,
        index: u64,
    ) -> Result<
        (u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, Array<u8, 256>),
        Status,
    >;
    /// Memory for devices, in one physical piece below 2^bits, whose address is answered. It is
    /// zeroed; kept: unless the server had it before it ended and was started again.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_memory_dma(
        &mut self,
        caller_: ThreadId,
        address: u64,
        size: u64,
        bits: u64,
        kept: u64,
    ) -> Result<u64, Status>;
    /// Registers of one of the server's PCI functions, to which one of its base address registers
    /// leads: their kind (0 memory, 1 ports), the first address or port, and how many there are.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_pci_region(
        &mut self,
        caller_: ThreadId,
        function: u64,
        base_address: u64,
    ) -> Result<(u64, u64, u64), Status>;
    /// A message-signalled interrupt of a PCI function (MSI: 0, MSI-X: an entry of its table)
    /// becomes an IPC message to a thread of the server's. The answer has the thread number from
    /// which these come. The function may write memory from then on.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_message_attach(
        &mut self,
        caller_: ThreadId,
        function: u64,
        entry: u64,
        thread: u64,
    ) -> Result<u64, Status>;
    /// Ends what root_message_attach has begun.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_message_detach(
        &mut self,
        caller_: ThreadId,
        interrupt: u64,
    ) -> Result<(), Status>;
    /// The word of 32 bits at an offset in the configuration space of one of the server's PCI
    /// functions, a multiple of 4 below 256.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_pci_read(
        &mut self,
        caller_: ThreadId,
        function: u64,
        offset: u64,
    ) -> Result<u64, Status>;
    /// Lets the devices of the server of the thread driver use a region of this server's memory, as
    /// it was allocated, until either server ends. Until then it cannot be freed.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_pool_create(
        &mut self,
        caller_: ThreadId,
        address: u64,
        size: u64,
        driver: u64,
    ) -> Result<u64, Status>;
    /// Tells the driver of a pool the physical address of the byte at an offset, and how many bytes
    /// from there on are physically contiguous.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_pool_find(
        &mut self,
        caller_: ThreadId,
        pool: u64,
        offset: u64,
    ) -> Result<(u64, u64), Status>;
    /// Shares memory that the server has created, and whose partner has ended, with the server of
    /// the thread partner, as it is.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn root_share_renew(
        &mut self,
        caller_: ThreadId,
        share: u64,
        partner: u64,
    ) -> Result<(), Status>;
}
/// Decodes a request, calls the server's function, and writes the reply. `strings_` are the
/// strings that were received with the request. Data that the reply sends in string items
/// is written into `room_`. `None`: the request gets no reply.
#[inline]
pub fn serve<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    match tag_.label() {
        id::ROOT_PRINT => {
            serve_root_print(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_EXIT => {
            serve_root_exit(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_MEMORY_ALLOCATE => {
            serve_root_memory_allocate(
                server_,
                caller_,
                tag_,
                registers_,
                strings_,
                room_,
            )
        }
        id::ROOT_MEMORY_FREE => {
            serve_root_memory_free(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_THREAD_CREATE => {
            serve_root_thread_create(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_THREAD_DELETE => {
            serve_root_thread_delete(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_SPACE_CREATE => {
            serve_root_space_create(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_SPACE_THREAD_CREATE => {
            serve_root_space_thread_create(
                server_,
                caller_,
                tag_,
                registers_,
                strings_,
                room_,
            )
        }
        id::ROOT_SPACE_THREAD_DELETE => {
            serve_root_space_thread_delete(
                server_,
                caller_,
                tag_,
                registers_,
                strings_,
                room_,
            )
        }
        id::ROOT_SPACE_DELETE => {
            serve_root_space_delete(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_MEMORY_AVAILABLE => {
            serve_root_memory_available(
                server_,
                caller_,
                tag_,
                registers_,
                strings_,
                room_,
            )
        }
        id::ROOT_MEMORY_POOL => {
            serve_root_memory_pool(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_MODULE_MAP => {
            serve_root_module_map(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_NAME_REGISTER => {
            serve_root_name_register(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_NAME_LOOKUP => {
            serve_root_name_lookup(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_INTERRUPT_ATTACH => {
            serve_root_interrupt_attach(
                server_,
                caller_,
                tag_,
                registers_,
                strings_,
                room_,
            )
        }
        id::ROOT_INTERRUPT_DETACH => {
            serve_root_interrupt_detach(
                server_,
                caller_,
                tag_,
                registers_,
                strings_,
                room_,
            )
        }
        id::ROOT_DEVICE_MAP => {
            serve_root_device_map(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_SYSTEM_END => {
            serve_root_system_end(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_RESOURCE => {
            serve_root_resource(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_SHARE_CREATE => {
            serve_root_share_create(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_SHARE_MAP => {
            serve_root_share_map(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_SERVER => {
            serve_root_server(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_MEMORY_DMA => {
            serve_root_memory_dma(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_PCI_REGION => {
            serve_root_pci_region(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_MESSAGE_ATTACH => {
            serve_root_message_attach(
                server_,
                caller_,
                tag_,
                registers_,
                strings_,
                room_,
            )
        }
        id::ROOT_MESSAGE_DETACH => {
            serve_root_message_detach(
                server_,
                caller_,
                tag_,
                registers_,
                strings_,
                room_,
            )
        }
        id::ROOT_PCI_READ => {
            serve_root_pci_read(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_POOL_CREATE => {
            serve_root_pool_create(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_POOL_FIND => {
            serve_root_pool_find(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::ROOT_SHARE_RENEW => {
            serve_root_share_renew(server_, caller_, tag_, registers_, strings_, room_)
        }
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_print<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::new(registers_, tag_);
        let text = decoder_.array::<u8, 488>()?;
        decoder_.finish()?;
        Some(text)
    };
    let Some(text) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::ROOT_PRINT, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.root_print(caller_, &text);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_print(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_exit<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 1, 0)?;
        let status = decoder_.word()?;
        decoder_.finish()?;
        Some(status)
    };
    let Some(status) = read_(registers_) else { return None };
    server_.root_exit(caller_, status);
    None
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_memory_allocate<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let address = decoder_.word()?;
        let size = decoder_.word()?;
        decoder_.finish()?;
        Some((address, size))
    };
    let Some((address, size)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_MEMORY_ALLOCATE, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_memory_allocate(caller_, address, size);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_memory_allocate(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_memory_free<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let address = decoder_.word()?;
        let size = decoder_.word()?;
        decoder_.finish()?;
        Some((address, size))
    };
    let Some((address, size)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_MEMORY_FREE, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_memory_free(caller_, address, size);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_memory_free(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_thread_create<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let ip = decoder_.word()?;
        let sp = decoder_.word()?;
        decoder_.finish()?;
        Some((ip, sp))
    };
    let Some((ip, sp)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_THREAD_CREATE, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_thread_create(caller_, ip, sp);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_thread_create(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_thread_delete<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 1, 0)?;
        let thread = decoder_.word()?;
        decoder_.finish()?;
        Some(thread)
    };
    let Some(thread) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_THREAD_DELETE, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_thread_delete(caller_, thread);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_thread_delete(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_space_create<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 7, 0)?;
        let kernel_interface = decoder_.word()?;
        let utcb_area = decoder_.word()?;
        let utcb_area_log2 = decoder_.word()?;
        let system_calls = decoder_.word()?;
        let emulation_entry = decoder_.word()?;
        let kernel_memory = decoder_.word()?;
        let handler = decoder_.word()?;
        decoder_.finish()?;
        Some((
            kernel_interface,
            utcb_area,
            utcb_area_log2,
            system_calls,
            emulation_entry,
            kernel_memory,
            handler,
        ))
    };
    let Some(
        (
            kernel_interface,
            utcb_area,
            utcb_area_log2,
            system_calls,
            emulation_entry,
            kernel_memory,
            handler,
        ),
    ) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_SPACE_CREATE, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_
        .root_space_create(
            caller_,
            kernel_interface,
            utcb_area,
            utcb_area_log2,
            system_calls,
            emulation_entry,
            kernel_memory,
            handler,
        );
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_space_create(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_space_thread_create<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 3, 0)?;
        let space = decoder_.word()?;
        let place = decoder_.word()?;
        let handler = decoder_.word()?;
        decoder_.finish()?;
        Some((space, place, handler))
    };
    let Some((space, place, handler)) = read_(registers_) else {
        return Some(
            Reply::refusal(
                registers_,
                id::ROOT_SPACE_THREAD_CREATE,
                Status::BAD_ARGUMENTS,
            ),
        )
    };
    let result_ = server_.root_space_thread_create(caller_, space, place, handler);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_space_thread_create(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_space_thread_delete<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 1, 0)?;
        let thread = decoder_.word()?;
        decoder_.finish()?;
        Some(thread)
    };
    let Some(thread) = read_(registers_) else {
        return Some(
            Reply::refusal(
                registers_,
                id::ROOT_SPACE_THREAD_DELETE,
                Status::BAD_ARGUMENTS,
            ),
        )
    };
    let result_ = server_.root_space_thread_delete(caller_, thread);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_space_thread_delete(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_space_delete<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 1, 0)?;
        let space = decoder_.word()?;
        decoder_.finish()?;
        Some(space)
    };
    let Some(space) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_SPACE_DELETE, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_space_delete(caller_, space);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_space_delete(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_memory_available<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 0, 0)?;
        decoder_.finish()?;
        Some(())
    };
    let Some(()) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_MEMORY_AVAILABLE, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_memory_available(caller_);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_memory_available(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_memory_pool<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let address = decoder_.word()?;
        let size = decoder_.word()?;
        decoder_.finish()?;
        Some((address, size))
    };
    let Some((address, size)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_MEMORY_POOL, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_memory_pool(caller_, address, size);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_memory_pool(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_module_map<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::new(registers_, tag_);
        let room = decoder_.word()?;
        let name = decoder_.array::<u8, 256>()?;
        decoder_.finish()?;
        Some((room, name))
    };
    let Some((room, name)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_MODULE_MAP, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_module_map(caller_, room, &name);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_module_map(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_name_register<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 1, 0)?;
        let thread = decoder_.word()?;
        decoder_.finish()?;
        Some(thread)
    };
    let Some(thread) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_NAME_REGISTER, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_name_register(caller_, thread);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_name_register(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_name_lookup<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::new(registers_, tag_);
        let wait = decoder_.word()?;
        let name = decoder_.array::<u8, 256>()?;
        decoder_.finish()?;
        Some((wait, name))
    };
    let Some((wait, name)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_NAME_LOOKUP, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_name_lookup(caller_, wait, &name);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_name_lookup(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_interrupt_attach<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let line = decoder_.word()?;
        let thread = decoder_.word()?;
        decoder_.finish()?;
        Some((line, thread))
    };
    let Some((line, thread)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_INTERRUPT_ATTACH, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_interrupt_attach(caller_, line, thread);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_interrupt_attach(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_interrupt_detach<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 1, 0)?;
        let line = decoder_.word()?;
        decoder_.finish()?;
        Some(line)
    };
    let Some(line) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_INTERRUPT_DETACH, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_interrupt_detach(caller_, line);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_interrupt_detach(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_device_map<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 3, 0)?;
        let physical = decoder_.word()?;
        let size = decoder_.word()?;
        let address = decoder_.word()?;
        decoder_.finish()?;
        Some((physical, size, address))
    };
    let Some((physical, size, address)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_DEVICE_MAP, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_device_map(caller_, physical, size, address);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_device_map(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_system_end<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let how = decoder_.word()?;
        let status = decoder_.word()?;
        decoder_.finish()?;
        Some((how, status))
    };
    let Some((how, status)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_SYSTEM_END, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_system_end(caller_, how, status);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_system_end(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_resource<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let kind = decoder_.word()?;
        let index = decoder_.word()?;
        decoder_.finish()?;
        Some((kind, index))
    };
    let Some((kind, index)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::ROOT_RESOURCE, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.root_resource(caller_, kind, index);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_resource(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_share_create<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 3, 0)?;
        let address = decoder_.word()?;
        let size = decoder_.word()?;
        let partner = decoder_.word()?;
        decoder_.finish()?;
        Some((address, size, partner))
    };
    let Some((address, size, partner)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_SHARE_CREATE, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_share_create(caller_, address, size, partner);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_share_create(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_share_map<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let share = decoder_.word()?;
        let address = decoder_.word()?;
        decoder_.finish()?;
        Some((share, address))
    };
    let Some((share, address)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_SHARE_MAP, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_share_map(caller_, share, address);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_share_map(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_server<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 1, 0)?;
        let index = decoder_.word()?;
        decoder_.finish()?;
        Some(index)
    };
    let Some(index) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::ROOT_SERVER, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.root_server(caller_, index);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_server(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_memory_dma<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 4, 0)?;
        let address = decoder_.word()?;
        let size = decoder_.word()?;
        let bits = decoder_.word()?;
        let kept = decoder_.word()?;
        decoder_.finish()?;
        Some((address, size, bits, kept))
    };
    let Some((address, size, bits, kept)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_MEMORY_DMA, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_memory_dma(caller_, address, size, bits, kept);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_memory_dma(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_pci_region<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let function = decoder_.word()?;
        let base_address = decoder_.word()?;
        decoder_.finish()?;
        Some((function, base_address))
    };
    let Some((function, base_address)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_PCI_REGION, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_pci_region(caller_, function, base_address);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_pci_region(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_message_attach<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 3, 0)?;
        let function = decoder_.word()?;
        let entry = decoder_.word()?;
        let thread = decoder_.word()?;
        decoder_.finish()?;
        Some((function, entry, thread))
    };
    let Some((function, entry, thread)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_MESSAGE_ATTACH, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_message_attach(caller_, function, entry, thread);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_message_attach(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_message_detach<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 1, 0)?;
        let interrupt = decoder_.word()?;
        decoder_.finish()?;
        Some(interrupt)
    };
    let Some(interrupt) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_MESSAGE_DETACH, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_message_detach(caller_, interrupt);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_message_detach(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_pci_read<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let function = decoder_.word()?;
        let offset = decoder_.word()?;
        decoder_.finish()?;
        Some((function, offset))
    };
    let Some((function, offset)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::ROOT_PCI_READ, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.root_pci_read(caller_, function, offset);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_pci_read(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_pool_create<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 3, 0)?;
        let address = decoder_.word()?;
        let size = decoder_.word()?;
        let driver = decoder_.word()?;
        decoder_.finish()?;
        Some((address, size, driver))
    };
    let Some((address, size, driver)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_POOL_CREATE, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_pool_create(caller_, address, size, driver);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_pool_create(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_pool_find<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let pool = decoder_.word()?;
        let offset = decoder_.word()?;
        decoder_.finish()?;
        Some((pool, offset))
    };
    let Some((pool, offset)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_POOL_FIND, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_pool_find(caller_, pool, offset);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_pool_find(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_root_share_renew<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let share = decoder_.word()?;
        let partner = decoder_.word()?;
        decoder_.finish()?;
        Some((share, partner))
    };
    let Some((share, partner)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::ROOT_SHARE_RENEW, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.root_share_renew(caller_, share, partner);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_root_share_renew(registers_, result_))
}
