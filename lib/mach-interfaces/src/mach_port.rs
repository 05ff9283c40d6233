// Written by mig from the definition of `mach_port`. Do not edit.

/// Mach's calls on the names of a task's rights. The request port is the port of the task.
#[allow(unused_imports, reason = "not every interface needs everything")]
use message::{
    Array, Call, Data, Descriptor, Error, Expected, Format, Header, Memory, Number,
    Reader, Request, Status, AsyncTransport, Writer,
};
/// The layout of messages.
pub const FORMAT: Format = Format::MACH64;
/// Bytes of the largest reply.
pub const REPLY_BYTES: usize = 96;
/// Ids of requests.
pub mod id {
    /// [`mach_port_names`](super::Server::mach_port_names).
    pub const MACH_PORT_NAMES: u32 = 3200;
    /// [`mach_port_type`](super::Server::mach_port_type).
    pub const MACH_PORT_TYPE: u32 = 3201;
    /// [`mach_port_rename`](super::Server::mach_port_rename).
    pub const MACH_PORT_RENAME: u32 = 3202;
    /// [`mach_port_allocate_name`](super::Server::mach_port_allocate_name).
    pub const MACH_PORT_ALLOCATE_NAME: u32 = 3203;
    /// [`mach_port_allocate`](super::Server::mach_port_allocate).
    pub const MACH_PORT_ALLOCATE: u32 = 3204;
    /// [`mach_port_destroy`](super::Server::mach_port_destroy).
    pub const MACH_PORT_DESTROY: u32 = 3205;
    /// [`mach_port_deallocate`](super::Server::mach_port_deallocate).
    pub const MACH_PORT_DEALLOCATE: u32 = 3206;
    /// [`mach_port_get_refs`](super::Server::mach_port_get_refs).
    pub const MACH_PORT_GET_REFS: u32 = 3207;
    /// [`mach_port_mod_refs`](super::Server::mach_port_mod_refs).
    pub const MACH_PORT_MOD_REFS: u32 = 3208;
    /// [`mach_port_set_qlimit`](super::Server::mach_port_set_qlimit).
    pub const MACH_PORT_SET_QLIMIT: u32 = 3210;
    /// [`mach_port_set_mscount`](super::Server::mach_port_set_mscount).
    pub const MACH_PORT_SET_MSCOUNT: u32 = 3211;
    /// [`mach_port_get_set_status`](super::Server::mach_port_get_set_status).
    pub const MACH_PORT_GET_SET_STATUS: u32 = 3212;
    /// [`mach_port_move_member`](super::Server::mach_port_move_member).
    pub const MACH_PORT_MOVE_MEMBER: u32 = 3213;
    /// [`mach_port_request_notification`](super::Server::mach_port_request_notification).
    pub const MACH_PORT_REQUEST_NOTIFICATION: u32 = 3214;
    /// [`mach_port_insert_right`](super::Server::mach_port_insert_right).
    pub const MACH_PORT_INSERT_RIGHT: u32 = 3215;
    /// [`mach_port_extract_right`](super::Server::mach_port_extract_right).
    pub const MACH_PORT_EXTRACT_RIGHT: u32 = 3216;
    /// [`mach_port_get_receive_status`](super::Server::mach_port_get_receive_status).
    pub const MACH_PORT_GET_RECEIVE_STATUS: u32 = 3217;
    /// [`mach_port_set_seqno`](super::Server::mach_port_set_seqno).
    pub const MACH_PORT_SET_SEQNO: u32 = 3218;
    /// [`mach_port_set_protected_payload`](super::Server::mach_port_set_protected_payload).
    pub const MACH_PORT_SET_PROTECTED_PAYLOAD: u32 = 3221;
    /// [`mach_port_clear_protected_payload`](super::Server::mach_port_clear_protected_payload).
    pub const MACH_PORT_CLEAR_PROTECTED_PAYLOAD: u32 = 3222;
    /// [`mach_port_set_ktype`](super::Server::mach_port_set_ktype).
    pub const MACH_PORT_SET_KTYPE: u32 = 3223;
}
/// The client's functions, one for each request.
#[derive(Debug)]
pub struct Client<'a, T> {
    /// The program's messages.
    pub transport: &'a mut T,
    /// The server's port.
    pub to: u64,
}
impl<T: AsyncTransport> Client<'_, T> {
    /// The names of a task, and what they denote.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_names(&mut self) -> Result<(Memory, Memory), Error> {
        let mut message_ = [0; 80];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_NAMES,
                    reply_port: None,
                    reply: Some(3300),
                    complex: Some(true),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            let descriptor_ = reader_
                .described(
                    &Expected {
                        name: Some(15),
                        bits: 32,
                        number: Number::Any,
                        inline: Some(false),
                        long: true,
                    },
                )?;
            let names = reader_.pointer(descriptor_, 1)?;
            let descriptor_ = reader_
                .described(
                    &Expected {
                        name: Some(2),
                        bits: 32,
                        number: Number::Any,
                        inline: Some(false),
                        long: true,
                    },
                )?;
            let types = reader_.pointer(descriptor_, 1)?;
            reader_.finish()?;
            Some((names, types))
        };
        read_().ok_or(Error::TypeError)
    }
    /// What a name denotes, and which requests there are on it.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_type(&mut self, name: u32) -> Result<u32, Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_TYPE,
                    reply_port: None,
                    reply: Some(3301),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            let ptype = reader_
                .value(
                    &Expected {
                        name: Some(2),
                        bits: 32,
                        number: Number::Exactly(1),
                        inline: Some(true),
                        long: false,
                    },
                    4,
                )? as u32;
            reader_.finish()?;
            Some(ptype)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Gives a right another name.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_rename(
        &mut self,
        old_name: u32,
        new_name: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(old_name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(new_name),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_RENAME,
                    reply_port: None,
                    reply: Some(3302),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// Makes a right under a name that the caller chooses.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_allocate_name(
        &mut self,
        right: u32,
        name: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(right),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_ALLOCATE_NAME,
                    reply_port: None,
                    reply: Some(3303),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// Makes a right. right: 1 receive, 3 port set, 4 dead name.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_allocate(&mut self, right: u32) -> Result<u32, Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(right),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_ALLOCATE,
                    reply_port: None,
                    reply: Some(3304),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            let name = reader_
                .value(
                    &Expected {
                        name: Some(15),
                        bits: 32,
                        number: Number::Exactly(1),
                        inline: Some(true),
                        long: false,
                    },
                    4,
                )? as u32;
            reader_.finish()?;
            Some(name)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Ends all rights of a name.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_destroy(&mut self, name: u32) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_DESTROY,
                    reply_port: None,
                    reply: Some(3305),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// Takes one reference from a send right, a send-once right or a dead name.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_deallocate(&mut self, name: u32) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_DEALLOCATE,
                    reply_port: None,
                    reply: Some(3306),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// How many references a name has to a right of this kind.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_get_refs(
        &mut self,
        name: u32,
        right: u32,
    ) -> Result<u32, Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(right),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_GET_REFS,
                    reply_port: None,
                    reply: Some(3307),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            let refs = reader_
                .value(
                    &Expected {
                        name: Some(2),
                        bits: 32,
                        number: Number::Exactly(1),
                        inline: Some(true),
                        long: false,
                    },
                    4,
                )? as u32;
            reader_.finish()?;
            Some(refs)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Adds delta to the references that a name has to a right.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_mod_refs(
        &mut self,
        name: u32,
        right: u32,
        delta: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 80];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(right),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(delta),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_MOD_REFS,
                    reply_port: None,
                    reply: Some(3308),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets how many messages a port's queue holds before senders wait.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_set_qlimit(
        &mut self,
        name: u32,
        qlimit: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(qlimit),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_SET_QLIMIT,
                    reply_port: None,
                    reply: Some(3310),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets the make-send count of a port.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_set_mscount(
        &mut self,
        name: u32,
        mscount: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(mscount),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_SET_MSCOUNT,
                    reply_port: None,
                    reply: Some(3311),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// The names of the members of a port set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_get_set_status(
        &mut self,
        name: u32,
    ) -> Result<Memory, Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_GET_SET_STATUS,
                    reply_port: None,
                    reply: Some(3312),
                    complex: Some(true),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            let descriptor_ = reader_
                .described(
                    &Expected {
                        name: Some(15),
                        bits: 32,
                        number: Number::Any,
                        inline: Some(false),
                        long: true,
                    },
                )?;
            let members = reader_.pointer(descriptor_, 1)?;
            reader_.finish()?;
            Some(members)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Moves a port into a port set, or with the null name out of its set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_move_member(
        &mut self,
        member: u32,
        after: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(member),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(after),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_MOVE_MEMBER,
                    reply_port: None,
                    reply: Some(3313),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// Asks for a notification. id: 69 port destroyed, 70 no senders, 72 dead name.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_request_notification(
        &mut self,
        name: u32,
        id: u32,
        sync: u32,
        notify: u64,
        notify_type: u32,
    ) -> Result<u64, Error> {
        let mut message_ = [0; 96];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(id),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(sync),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: notify_type,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                notify,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_REQUEST_NOTIFICATION,
                    reply_port: None,
                    reply: Some(3314),
                    complex: None,
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            let previous = reader_
                .value(
                    &Expected {
                        name: Some(18),
                        bits: 64,
                        number: Number::Exactly(1),
                        inline: Some(true),
                        long: false,
                    },
                    8,
                )? as u64;
            reader_.finish()?;
            Some(previous)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Gives the task a right under a name that the caller chooses.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_insert_right(
        &mut self,
        name: u32,
        poly: u64,
        poly_type: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: poly_type,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                poly,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_INSERT_RIGHT,
                    reply_port: None,
                    reply: Some(3315),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// Takes or makes a right from a name of the task.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_extract_right(
        &mut self,
        name: u32,
        msgt_name: u32,
    ) -> Result<(u64, u32), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(msgt_name),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_EXTRACT_RIGHT,
                    reply_port: None,
                    reply: Some(3316),
                    complex: None,
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            let descriptor_ = reader_
                .described(
                    &Expected {
                        name: None,
                        bits: 64,
                        number: Number::Exactly(1),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let poly_type = descriptor_.name;
            let poly = reader_.number(8)? as u64;
            reader_.finish()?;
            Some((poly, poly_type))
        };
        read_().ok_or(Error::TypeError)
    }
    /// The state of the port of a receive right.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_get_receive_status(
        &mut self,
        name: u32,
    ) -> Result<[u32; 9], Error> {
        let mut message_ = [0; 96];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_GET_RECEIVE_STATUS,
                    reply_port: None,
                    reply: Some(3317),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_
                .expect(
                    &Expected {
                        name: Some(2),
                        bits: 32,
                        number: Number::Exactly(9),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let status = reader_.elements::<u32, 9>()?;
            reader_.finish()?;
            Some(status)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets the sequence number that the next message received from a port gets.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_set_seqno(
        &mut self,
        name: u32,
        seqno: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(seqno),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_SET_SEQNO,
                    reply_port: None,
                    reply: Some(3318),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets a number that received messages have instead of the port's name.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_set_protected_payload(
        &mut self,
        name: u32,
        payload: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                payload,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_SET_PROTECTED_PAYLOAD,
                    reply_port: None,
                    reply: Some(3321),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// Removes the number that received messages have instead of the port's name.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_clear_protected_payload(
        &mut self,
        name: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_CLEAR_PROTECTED_PAYLOAD,
                    reply_port: None,
                    reply: Some(3322),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
    /// Marks a right for debuggers with the type of a kernel object.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_set_ktype(
        &mut self,
        task: u64,
        name: u32,
        right: u32,
        ktype: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 96];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 19,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                task,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 15,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(name),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(right),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(ktype),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_SET_KTYPE,
                    reply_port: None,
                    reply: Some(3323),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// The names of a task, and what they denote.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_names(
        &mut self,
        task: u64,
    ) -> impl Future<Output = Result<(Memory, Memory), Status>> + Send;
    /// What a name denotes, and which requests there are on it.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_type(
        &mut self,
        task: u64,
        name: u32,
    ) -> impl Future<Output = Result<u32, Status>> + Send;
    /// Gives a right another name.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_rename(
        &mut self,
        task: u64,
        old_name: u32,
        new_name: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Makes a right under a name that the caller chooses.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_allocate_name(
        &mut self,
        task: u64,
        right: u32,
        name: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Makes a right. right: 1 receive, 3 port set, 4 dead name.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_allocate(
        &mut self,
        task: u64,
        right: u32,
    ) -> impl Future<Output = Result<u32, Status>> + Send;
    /// Ends all rights of a name.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_destroy(
        &mut self,
        task: u64,
        name: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Takes one reference from a send right, a send-once right or a dead name.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_deallocate(
        &mut self,
        task: u64,
        name: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// How many references a name has to a right of this kind.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_get_refs(
        &mut self,
        task: u64,
        name: u32,
        right: u32,
    ) -> impl Future<Output = Result<u32, Status>> + Send;
    /// Adds delta to the references that a name has to a right.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_mod_refs(
        &mut self,
        task: u64,
        name: u32,
        right: u32,
        delta: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets how many messages a port's queue holds before senders wait.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_set_qlimit(
        &mut self,
        task: u64,
        name: u32,
        qlimit: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets the make-send count of a port.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_set_mscount(
        &mut self,
        task: u64,
        name: u32,
        mscount: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The names of the members of a port set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_get_set_status(
        &mut self,
        task: u64,
        name: u32,
    ) -> impl Future<Output = Result<Memory, Status>> + Send;
    /// Moves a port into a port set, or with the null name out of its set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_move_member(
        &mut self,
        task: u64,
        member: u32,
        after: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Asks for a notification. id: 69 port destroyed, 70 no senders, 72 dead name.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_request_notification(
        &mut self,
        task: u64,
        name: u32,
        id: u32,
        sync: u32,
        notify: u64,
    ) -> impl Future<Output = Result<(u64, u32), Status>> + Send;
    /// Gives the task a right under a name that the caller chooses.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_insert_right(
        &mut self,
        task: u64,
        name: u32,
        poly: u64,
        poly_type: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Takes or makes a right from a name of the task.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_extract_right(
        &mut self,
        task: u64,
        name: u32,
        msgt_name: u32,
    ) -> impl Future<Output = Result<(u64, u32), Status>> + Send;
    /// The state of the port of a receive right.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_get_receive_status(
        &mut self,
        task: u64,
        name: u32,
    ) -> impl Future<Output = Result<[u32; 9], Status>> + Send;
    /// Sets the sequence number that the next message received from a port gets.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_set_seqno(
        &mut self,
        task: u64,
        name: u32,
        seqno: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets a number that received messages have instead of the port's name.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_set_protected_payload(
        &mut self,
        task: u64,
        name: u32,
        payload: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Removes the number that received messages have instead of the port's name.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_clear_protected_payload(
        &mut self,
        task: u64,
        name: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Marks a right for debuggers with the type of a kernel object.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_set_ktype(
        &mut self,
        host: u64,
        task: u64,
        name: u32,
        right: u32,
        ktype: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
}
/// Decodes a request, calls the server's function, and writes the reply. Returns the size
/// of the reply, or `None` if there is none to send. `request_` is the received message with its
/// trailer.
pub async fn serve<S: Server + Send>(
    server_: &mut S,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Option<usize> {
    let header_ = Header::read(&FORMAT, request_)?;
    let result = match header_.id {
        id::MACH_PORT_NAMES => {
            serve_mach_port_names(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_TYPE => {
            serve_mach_port_type(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_RENAME => {
            serve_mach_port_rename(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_ALLOCATE_NAME => {
            serve_mach_port_allocate_name(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_ALLOCATE => {
            serve_mach_port_allocate(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_DESTROY => {
            serve_mach_port_destroy(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_DEALLOCATE => {
            serve_mach_port_deallocate(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_GET_REFS => {
            serve_mach_port_get_refs(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_MOD_REFS => {
            serve_mach_port_mod_refs(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_SET_QLIMIT => {
            serve_mach_port_set_qlimit(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_SET_MSCOUNT => {
            serve_mach_port_set_mscount(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_GET_SET_STATUS => {
            serve_mach_port_get_set_status(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_MOVE_MEMBER => {
            serve_mach_port_move_member(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_REQUEST_NOTIFICATION => {
            serve_mach_port_request_notification(server_, &header_, request_, reply_)
                .await
        }
        id::MACH_PORT_INSERT_RIGHT => {
            serve_mach_port_insert_right(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_EXTRACT_RIGHT => {
            serve_mach_port_extract_right(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_GET_RECEIVE_STATUS => {
            serve_mach_port_get_receive_status(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_SET_SEQNO => {
            serve_mach_port_set_seqno(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_SET_PROTECTED_PAYLOAD => {
            serve_mach_port_set_protected_payload(server_, &header_, request_, reply_)
                .await
        }
        id::MACH_PORT_CLEAR_PROTECTED_PAYLOAD => {
            serve_mach_port_clear_protected_payload(server_, &header_, request_, reply_)
                .await
        }
        id::MACH_PORT_SET_KTYPE => {
            serve_mach_port_set_ktype(server_, &header_, request_, reply_).await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_names<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (names, types) = server_.mach_port_names(task).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 15,
                bits: 32,
                number: names.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(names.address);
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: types.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(types.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_type<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some(name)
    };
    let name = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let ptype = server_.mach_port_type(task, name).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 2,
                bits: 32,
                number: 1,
                flags: 1,
            },
            u64::from(ptype),
            4,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_rename<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let old_name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let new_name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((old_name, new_name))
    };
    let (old_name, new_name) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_rename(task, old_name, new_name).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_allocate_name<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let right = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((right, name))
    };
    let (right, name) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_allocate_name(task, right, name).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_allocate<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let right = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some(right)
    };
    let right = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let name = server_.mach_port_allocate(task, right).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 15,
                bits: 32,
                number: 1,
                flags: 1,
            },
            u64::from(name),
            4,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_destroy<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some(name)
    };
    let name = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_destroy(task, name).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_deallocate<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some(name)
    };
    let name = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_deallocate(task, name).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_get_refs<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let right = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((name, right))
    };
    let (name, right) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let refs = server_.mach_port_get_refs(task, name, right).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 2,
                bits: 32,
                number: 1,
                flags: 1,
            },
            u64::from(refs),
            4,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_mod_refs<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let right = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let delta = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((name, right, delta))
    };
    let (name, right, delta) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_mod_refs(task, name, right, delta).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_set_qlimit<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let qlimit = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((name, qlimit))
    };
    let (name, qlimit) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_set_qlimit(task, name, qlimit).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_set_mscount<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let mscount = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((name, mscount))
    };
    let (name, mscount) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_set_mscount(task, name, mscount).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_get_set_status<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some(name)
    };
    let name = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let members = server_.mach_port_get_set_status(task, name).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 15,
                bits: 32,
                number: members.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(members.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_move_member<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let member = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let after = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((member, after))
    };
    let (member, after) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_move_member(task, member, after).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_request_notification<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, None)
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let id = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let sync = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let notify = reader_
            .value(
                &Expected {
                    name: Some(18),
                    bits: 64,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                8,
            )? as u64;
        reader_.finish()?;
        Some((name, id, sync, notify))
    };
    let (name, id, sync, notify) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (previous, previous_type) = server_
        .mach_port_request_notification(task, name, id, sync, notify)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: previous_type,
                bits: 64,
                number: 1,
                flags: 1,
            },
            previous,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_insert_right<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, None)
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: None,
                    bits: 64,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let poly_type = descriptor_.name;
        let poly = reader_.number(8)? as u64;
        reader_.finish()?;
        Some((name, poly, poly_type))
    };
    let (name, poly, poly_type) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_insert_right(task, name, poly, poly_type).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_extract_right<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let msgt_name = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((name, msgt_name))
    };
    let (name, msgt_name) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (poly, poly_type) = server_
        .mach_port_extract_right(task, name, msgt_name)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: poly_type,
                bits: 64,
                number: 1,
                flags: 1,
            },
            poly,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_get_receive_status<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some(name)
    };
    let name = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let status = server_.mach_port_get_receive_status(task, name).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: 9,
                flags: 1,
            },
        );
    writer_.data(&status);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_set_seqno<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let seqno = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((name, seqno))
    };
    let (name, seqno) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_set_seqno(task, name, seqno).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_set_protected_payload<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let payload = reader_
            .value(
                &Expected {
                    name: Some(11),
                    bits: 64,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                8,
            )? as u64;
        reader_.finish()?;
        Some((name, payload))
    };
    let (name, payload) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_set_protected_payload(task, name, payload).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_clear_protected_payload<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some(name)
    };
    let name = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_clear_protected_payload(task, name).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_set_ktype<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host = header_.local;
    let read_ = move || {
        let task = reader_
            .value(
                &Expected {
                    name: Some(17),
                    bits: 64,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                8,
            )? as u64;
        let name = reader_
            .value(
                &Expected {
                    name: Some(15),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let right = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let ktype = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((task, name, right, ktype))
    };
    let (task, name, right, ktype) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_port_set_ktype(host, task, name, right, ktype).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
