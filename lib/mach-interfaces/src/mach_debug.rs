// Written by mig from the definition of `mach_debug`. Do not edit.

/// Calls for debuggers.
#[allow(unused_imports, reason = "not every interface needs everything")]
use message::{
    Array, Call, Data, Descriptor, Error, Expected, Format, Header, Memory, Number,
    Reader, Request, Status, AsyncTransport, Writer,
};
/// The layout of messages.
pub const FORMAT: Format = Format::MACH64;
/// Bytes of the largest reply.
pub const REPLY_BYTES: usize = 2120;
/// Ids of requests.
pub mod id {
    /// [`mach_port_get_srights`](super::Server::mach_port_get_srights).
    pub const MACH_PORT_GET_SRIGHTS: u32 = 3007;
    /// [`host_ipc_marequest_info`](super::Server::host_ipc_marequest_info).
    pub const HOST_IPC_MAREQUEST_INFO: u32 = 3009;
    /// [`mach_port_dnrequest_info`](super::Server::mach_port_dnrequest_info).
    pub const MACH_PORT_DNREQUEST_INFO: u32 = 3011;
    /// [`host_stack_usage`](super::Server::host_stack_usage).
    pub const HOST_STACK_USAGE: u32 = 3014;
    /// [`processor_set_stack_usage`](super::Server::processor_set_stack_usage).
    pub const PROCESSOR_SET_STACK_USAGE: u32 = 3015;
    /// [`host_virtual_physical_table_info`](super::Server::host_virtual_physical_table_info).
    pub const HOST_VIRTUAL_PHYSICAL_TABLE_INFO: u32 = 3016;
    /// [`mach_port_kernel_object`](super::Server::mach_port_kernel_object).
    pub const MACH_PORT_KERNEL_OBJECT: u32 = 3018;
    /// [`mach_vm_region_info`](super::Server::mach_vm_region_info).
    pub const MACH_VM_REGION_INFO: u32 = 3019;
    /// [`mach_vm_object_info`](super::Server::mach_vm_object_info).
    pub const MACH_VM_OBJECT_INFO: u32 = 3020;
    /// [`mach_vm_object_pages`](super::Server::mach_vm_object_pages).
    pub const MACH_VM_OBJECT_PAGES: u32 = 3021;
    /// [`host_slab_info`](super::Server::host_slab_info).
    pub const HOST_SLAB_INFO: u32 = 3022;
    /// [`host_load_symbol_table`](super::Server::host_load_symbol_table).
    pub const HOST_LOAD_SYMBOL_TABLE: u32 = 3023;
    /// [`mach_vm_object_pages_phys`](super::Server::mach_vm_object_pages_phys).
    pub const MACH_VM_OBJECT_PAGES_PHYS: u32 = 3024;
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
    /// How many send rights to a port there are.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_get_srights(&mut self, name: u32) -> Result<u32, Error> {
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
                    id: id::MACH_PORT_GET_SRIGHTS,
                    reply_port: None,
                    reply: Some(3107),
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
            let srights = reader_
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
            Some(srights)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The table of requests for message-accepted notifications.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_ipc_marequest_info(
        &mut self,
    ) -> Result<(u32, Data<u32, 512>), Error> {
        let mut message_ = [0; 2120];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_.integer(512);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_IPC_MAREQUEST_INFO,
                    reply_port: None,
                    reply: Some(3109),
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
            let max_requests = reader_
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
            let descriptor_ = reader_
                .described(
                    &Expected {
                        name: Some(2),
                        bits: 32,
                        number: Number::UpTo(512),
                        inline: None,
                        long: true,
                    },
                )?;
            let info = if descriptor_.flags & message::INLINE != 0 {
                Data::Inline(
                    reader_.array::<u32, 512>(descriptor_.number.checked_mul(1)?)?,
                )
            } else {
                Data::Memory(reader_.pointer(descriptor_, 1)?)
            };
            reader_.finish()?;
            Some((max_requests, info))
        };
        read_().ok_or(Error::TypeError)
    }
    /// The room for dead-name requests at a port, and how much of it is used.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_dnrequest_info(
        &mut self,
        name: u32,
    ) -> Result<(u32, u32), Error> {
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
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_DNREQUEST_INFO,
                    reply_port: None,
                    reply: Some(3111),
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
            let total = reader_
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
            let used = reader_
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
            Some((total, used))
        };
        read_().ok_or(Error::TypeError)
    }
    /// The use of kernel stacks.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_stack_usage(
        &mut self,
    ) -> Result<(u64, u32, u64, u64, u64, u64), Error> {
        let mut message_ = [0; 144];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_STACK_USAGE,
                    reply_port: None,
                    reply: Some(3114),
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
            let reserved = reader_
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
            let total = reader_
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
            let space = reader_
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
            let resident = reader_
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
            let maxusage = reader_
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
            let maxstack = reader_
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
            Some((reserved, total, space, resident, maxusage, maxstack))
        };
        read_().ok_or(Error::TypeError)
    }
    /// The use of kernel stacks by the threads of a processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_stack_usage(
        &mut self,
    ) -> Result<(u32, u64, u64, u64, u64), Error> {
        let mut message_ = [0; 128];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::PROCESSOR_SET_STACK_USAGE,
                    reply_port: None,
                    reply: Some(3115),
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
            let total = reader_
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
            let space = reader_
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
            let resident = reader_
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
            let maxusage = reader_
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
            let maxstack = reader_
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
            Some((total, space, resident, maxusage, maxstack))
        };
        read_().ok_or(Error::TypeError)
    }
    /// The table from physical to virtual addresses.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_virtual_physical_table_info(
        &mut self,
    ) -> Result<Data<u32, 512>, Error> {
        let mut message_ = [0; 2104];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_.integer(512);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_VIRTUAL_PHYSICAL_TABLE_INFO,
                    reply_port: None,
                    reply: Some(3116),
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
                        name: Some(2),
                        bits: 32,
                        number: Number::UpTo(512),
                        inline: None,
                        long: true,
                    },
                )?;
            let info = if descriptor_.flags & message::INLINE != 0 {
                Data::Inline(
                    reader_.array::<u32, 512>(descriptor_.number.checked_mul(1)?)?,
                )
            } else {
                Data::Memory(reader_.pointer(descriptor_, 1)?)
            };
            reader_.finish()?;
            Some(info)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The type of the kernel object for which a port stands, and a number that identifies the
    /// object.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_port_kernel_object(
        &mut self,
        name: u32,
    ) -> Result<(u32, u64), Error> {
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
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORT_KERNEL_OBJECT,
                    reply_port: None,
                    reply: Some(3118),
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
            let object_type = reader_
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
            let object_addr = reader_
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
            Some((object_type, object_addr))
        };
        read_().ok_or(Error::TypeError)
    }
    /// The region that contains an address, or the next one, with its memory object.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_vm_region_info(
        &mut self,
        address: u64,
    ) -> Result<([u64; 8], u64), Error> {
        let mut message_ = [0; 136];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                address,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_VM_REGION_INFO,
                    reply_port: None,
                    reply: Some(3119),
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
            reader_
                .expect(
                    &Expected {
                        name: Some(11),
                        bits: 64,
                        number: Number::Exactly(8),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let region = reader_.elements::<u64, 8>()?;
            let object = reader_
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
            reader_.finish()?;
            Some((region, object))
        };
        read_().ok_or(Error::TypeError)
    }
    /// Information about a memory object, and the objects below it.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_vm_object_info(&mut self) -> Result<([u64; 12], u64, u64), Error> {
        let mut message_ = [0; 184];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_VM_OBJECT_INFO,
                    reply_port: None,
                    reply: Some(3120),
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
            reader_
                .expect(
                    &Expected {
                        name: Some(11),
                        bits: 64,
                        number: Number::Exactly(12),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let info = reader_.elements::<u64, 12>()?;
            let shadow = reader_
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
            let copy = reader_
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
            reader_.finish()?;
            Some((info, shadow, copy))
        };
        read_().ok_or(Error::TypeError)
    }
    /// The resident pages of a memory object.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_vm_object_pages(&mut self) -> Result<Data<u64, 256>, Error> {
        let mut message_ = [0; 2104];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_.integer(64);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_VM_OBJECT_PAGES,
                    reply_port: None,
                    reply: Some(3121),
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
                        name: Some(11),
                        bits: 64,
                        number: Number::UpTo(256),
                        inline: None,
                        long: true,
                    },
                )?;
            if descriptor_.number % 4 != 0 {
                return None;
            }
            let pages = if descriptor_.flags & message::INLINE != 0 {
                Data::Inline(
                    reader_.array::<u64, 256>(descriptor_.number.checked_mul(1)?)?,
                )
            } else {
                Data::Memory(reader_.pointer(descriptor_, 4)?)
            };
            reader_.finish()?;
            Some(pages)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The caches of the kernel's allocator.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_slab_info(&mut self) -> Result<Data<u64, 255>, Error> {
        let mut message_ = [0; 2096];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_.integer(17);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_SLAB_INFO,
                    reply_port: None,
                    reply: Some(3122),
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
                        name: Some(11),
                        bits: 64,
                        number: Number::UpTo(255),
                        inline: None,
                        long: true,
                    },
                )?;
            if descriptor_.number % 15 != 0 {
                return None;
            }
            let info = if descriptor_.flags & message::INLINE != 0 {
                Data::Inline(
                    reader_.array::<u64, 255>(descriptor_.number.checked_mul(1)?)?,
                )
            } else {
                Data::Memory(reader_.pointer(descriptor_, 15)?)
            };
            reader_.finish()?;
            Some(info)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Gives the kernel's debugger the symbols of a task.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_load_symbol_table(
        &mut self,
        task: u64,
        name: &[u8],
        symtab: Memory,
    ) -> Result<(), Error> {
        if name.len() >= 32 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        let mut message_ = [0; 104];
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
            .describe(
                &Descriptor {
                    name: 12,
                    bits: 8,
                    number: 32,
                    flags: 1,
                },
            );
        writer_.text(&name, 32);
        writer_
            .describe(
                &Descriptor {
                    name: 9,
                    bits: 8,
                    number: symtab.count * 1,
                    flags: 2,
                },
            );
        writer_.pointer(symtab.address);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_LOAD_SYMBOL_TABLE,
                    reply_port: None,
                    reply: Some(3123),
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
    /// The resident pages of a memory object, with physical addresses of any size.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_vm_object_pages_phys(&mut self) -> Result<Data<u64, 256>, Error> {
        let mut message_ = [0; 2104];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_.integer(64);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_VM_OBJECT_PAGES_PHYS,
                    reply_port: None,
                    reply: Some(3124),
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
                        name: Some(11),
                        bits: 64,
                        number: Number::UpTo(256),
                        inline: None,
                        long: true,
                    },
                )?;
            if descriptor_.number % 4 != 0 {
                return None;
            }
            let pages = if descriptor_.flags & message::INLINE != 0 {
                Data::Inline(
                    reader_.array::<u64, 256>(descriptor_.number.checked_mul(1)?)?,
                )
            } else {
                Data::Memory(reader_.pointer(descriptor_, 4)?)
            };
            reader_.finish()?;
            Some(pages)
        };
        read_().ok_or(Error::TypeError)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// How many send rights to a port there are.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_get_srights(
        &mut self,
        task: u64,
        name: u32,
    ) -> impl Future<Output = Result<u32, Status>> + Send;
    /// The table of requests for message-accepted notifications.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_ipc_marequest_info(
        &mut self,
        host: u64,
        info_room: usize,
    ) -> impl Future<Output = Result<(u32, Data<u32, 512>), Status>> + Send;
    /// The room for dead-name requests at a port, and how much of it is used.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_dnrequest_info(
        &mut self,
        task: u64,
        name: u32,
    ) -> impl Future<Output = Result<(u32, u32), Status>> + Send;
    /// The use of kernel stacks.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_stack_usage(
        &mut self,
        host: u64,
    ) -> impl Future<Output = Result<(u64, u32, u64, u64, u64, u64), Status>> + Send;
    /// The use of kernel stacks by the threads of a processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_stack_usage(
        &mut self,
        pset: u64,
    ) -> impl Future<Output = Result<(u32, u64, u64, u64, u64), Status>> + Send;
    /// The table from physical to virtual addresses.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_virtual_physical_table_info(
        &mut self,
        host: u64,
        info_room: usize,
    ) -> impl Future<Output = Result<Data<u32, 512>, Status>> + Send;
    /// The type of the kernel object for which a port stands, and a number that identifies the
    /// object.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_port_kernel_object(
        &mut self,
        task: u64,
        name: u32,
    ) -> impl Future<Output = Result<(u32, u64), Status>> + Send;
    /// The region that contains an address, or the next one, with its memory object.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_vm_region_info(
        &mut self,
        task: u64,
        address: u64,
    ) -> impl Future<Output = Result<([u64; 8], u64), Status>> + Send;
    /// Information about a memory object, and the objects below it.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_vm_object_info(
        &mut self,
        object: u64,
    ) -> impl Future<Output = Result<([u64; 12], u64, u64), Status>> + Send;
    /// The resident pages of a memory object.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_vm_object_pages(
        &mut self,
        object: u64,
        pages_room: usize,
    ) -> impl Future<Output = Result<Data<u64, 256>, Status>> + Send;
    /// The caches of the kernel's allocator.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_slab_info(
        &mut self,
        host: u64,
        info_room: usize,
    ) -> impl Future<Output = Result<Data<u64, 255>, Status>> + Send;
    /// Gives the kernel's debugger the symbols of a task.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_load_symbol_table(
        &mut self,
        host: u64,
        task: u64,
        name: Array<u8, 32>,
        symtab: Memory,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The resident pages of a memory object, with physical addresses of any size.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_vm_object_pages_phys(
        &mut self,
        object: u64,
        pages_room: usize,
    ) -> impl Future<Output = Result<Data<u64, 256>, Status>> + Send;
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
        id::MACH_PORT_GET_SRIGHTS => {
            serve_mach_port_get_srights(server_, &header_, request_, reply_).await
        }
        id::HOST_IPC_MAREQUEST_INFO => {
            serve_host_ipc_marequest_info(server_, &header_, request_, reply_).await
        }
        id::MACH_PORT_DNREQUEST_INFO => {
            serve_mach_port_dnrequest_info(server_, &header_, request_, reply_).await
        }
        id::HOST_STACK_USAGE => {
            serve_host_stack_usage(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_STACK_USAGE => {
            serve_processor_set_stack_usage(server_, &header_, request_, reply_).await
        }
        id::HOST_VIRTUAL_PHYSICAL_TABLE_INFO => {
            serve_host_virtual_physical_table_info(server_, &header_, request_, reply_)
                .await
        }
        id::MACH_PORT_KERNEL_OBJECT => {
            serve_mach_port_kernel_object(server_, &header_, request_, reply_).await
        }
        id::MACH_VM_REGION_INFO => {
            serve_mach_vm_region_info(server_, &header_, request_, reply_).await
        }
        id::MACH_VM_OBJECT_INFO => {
            serve_mach_vm_object_info(server_, &header_, request_, reply_).await
        }
        id::MACH_VM_OBJECT_PAGES => {
            serve_mach_vm_object_pages(server_, &header_, request_, reply_).await
        }
        id::HOST_SLAB_INFO => {
            serve_host_slab_info(server_, &header_, request_, reply_).await
        }
        id::HOST_LOAD_SYMBOL_TABLE => {
            serve_host_load_symbol_table(server_, &header_, request_, reply_).await
        }
        id::MACH_VM_OBJECT_PAGES_PHYS => {
            serve_mach_vm_object_pages_phys(server_, &header_, request_, reply_).await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_get_srights<S: Server + Send>(
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
    let srights = server_.mach_port_get_srights(task, name).await?;
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
            u64::from(srights),
            4,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_ipc_marequest_info<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host = header_.local;
    let read_ = move || {
        let info_room = reader_.integer()?.min(512) as usize;
        reader_.finish()?;
        Some(info_room)
    };
    let info_room = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (max_requests, info) = server_.host_ipc_marequest_info(host, info_room).await?;
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
            u64::from(max_requests),
            4,
        );
    match info {
        Data::Inline(elements_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 2,
                        bits: 32,
                        number: elements_.len() as u32,
                        flags: 7,
                    },
                );
            writer_.data(&elements_);
        }
        Data::Memory(memory_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 2,
                        bits: 32,
                        number: memory_.count * 1,
                        flags: 6,
                    },
                );
            writer_.pointer(memory_.address);
        }
    }
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_dnrequest_info<S: Server + Send>(
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
    let (total, used) = server_.mach_port_dnrequest_info(task, name).await?;
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
            u64::from(total),
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
            u64::from(used),
            4,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_stack_usage<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (reserved, total, space, resident, maxusage, maxstack) = server_
        .host_stack_usage(host)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 1,
                flags: 1,
            },
            reserved,
            8,
        );
    writer_
        .value(
            &Descriptor {
                name: 2,
                bits: 32,
                number: 1,
                flags: 1,
            },
            u64::from(total),
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
            space,
            8,
        );
    writer_
        .value(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 1,
                flags: 1,
            },
            resident,
            8,
        );
    writer_
        .value(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 1,
                flags: 1,
            },
            maxusage,
            8,
        );
    writer_
        .value(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 1,
                flags: 1,
            },
            maxstack,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_stack_usage<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let pset = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (total, space, resident, maxusage, maxstack) = server_
        .processor_set_stack_usage(pset)
        .await?;
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
            u64::from(total),
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
            space,
            8,
        );
    writer_
        .value(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 1,
                flags: 1,
            },
            resident,
            8,
        );
    writer_
        .value(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 1,
                flags: 1,
            },
            maxusage,
            8,
        );
    writer_
        .value(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 1,
                flags: 1,
            },
            maxstack,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_virtual_physical_table_info<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host = header_.local;
    let read_ = move || {
        let info_room = reader_.integer()?.min(512) as usize;
        reader_.finish()?;
        Some(info_room)
    };
    let info_room = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let info = server_.host_virtual_physical_table_info(host, info_room).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    match info {
        Data::Inline(elements_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 2,
                        bits: 32,
                        number: elements_.len() as u32,
                        flags: 7,
                    },
                );
            writer_.data(&elements_);
        }
        Data::Memory(memory_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 2,
                        bits: 32,
                        number: memory_.count * 1,
                        flags: 6,
                    },
                );
            writer_.pointer(memory_.address);
        }
    }
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_port_kernel_object<S: Server + Send>(
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
    let (object_type, object_addr) = server_.mach_port_kernel_object(task, name).await?;
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
            u64::from(object_type),
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
            object_addr,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_vm_region_info<S: Server + Send>(
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
        let address = reader_
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
        Some(address)
    };
    let address = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (region, object) = server_.mach_vm_region_info(task, address).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 8,
                flags: 1,
            },
        );
    writer_.data(&region);
    writer_
        .value(
            &Descriptor {
                name: 17,
                bits: 64,
                number: 1,
                flags: 1,
            },
            object,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_vm_object_info<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let object = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (info, shadow, copy) = server_.mach_vm_object_info(object).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 12,
                flags: 1,
            },
        );
    writer_.data(&info);
    writer_
        .value(
            &Descriptor {
                name: 17,
                bits: 64,
                number: 1,
                flags: 1,
            },
            shadow,
            8,
        );
    writer_
        .value(
            &Descriptor {
                name: 17,
                bits: 64,
                number: 1,
                flags: 1,
            },
            copy,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_vm_object_pages<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let object = header_.local;
    let read_ = move || {
        let pages_room = reader_.integer()?.min(64) as usize;
        reader_.finish()?;
        Some(pages_room)
    };
    let pages_room = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let pages = server_.mach_vm_object_pages(object, pages_room).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    match pages {
        Data::Inline(elements_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 11,
                        bits: 64,
                        number: elements_.len() as u32,
                        flags: 7,
                    },
                );
            writer_.data(&elements_);
        }
        Data::Memory(memory_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 11,
                        bits: 64,
                        number: memory_.count * 4,
                        flags: 6,
                    },
                );
            writer_.pointer(memory_.address);
        }
    }
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_slab_info<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host = header_.local;
    let read_ = move || {
        let info_room = reader_.integer()?.min(17) as usize;
        reader_.finish()?;
        Some(info_room)
    };
    let info_room = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let info = server_.host_slab_info(host, info_room).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    match info {
        Data::Inline(elements_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 11,
                        bits: 64,
                        number: elements_.len() as u32,
                        flags: 7,
                    },
                );
            writer_.data(&elements_);
        }
        Data::Memory(memory_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 11,
                        bits: 64,
                        number: memory_.count * 15,
                        flags: 6,
                    },
                );
            writer_.pointer(memory_.address);
        }
    }
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_load_symbol_table<S: Server + Send>(
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
        reader_
            .expect(
                &Expected {
                    name: Some(12),
                    bits: 8,
                    number: Number::Exactly(32),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let name = reader_.text::<32>(32)?;
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: Some(9),
                    bits: 8,
                    number: Number::Any,
                    inline: Some(false),
                    long: true,
                },
            )?;
        let symtab = reader_.pointer(descriptor_, 1)?;
        reader_.finish()?;
        Some((task, name, symtab))
    };
    let (task, name, symtab) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.host_load_symbol_table(host, task, name, symtab).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_vm_object_pages_phys<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let object = header_.local;
    let read_ = move || {
        let pages_room = reader_.integer()?.min(64) as usize;
        reader_.finish()?;
        Some(pages_room)
    };
    let pages_room = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let pages = server_.mach_vm_object_pages_phys(object, pages_room).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    match pages {
        Data::Inline(elements_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 11,
                        bits: 64,
                        number: elements_.len() as u32,
                        flags: 7,
                    },
                );
            writer_.data(&elements_);
        }
        Data::Memory(memory_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 11,
                        bits: 64,
                        number: memory_.count * 4,
                        flags: 6,
                    },
                );
            writer_.pointer(memory_.address);
        }
    }
    Ok(Some(writer_.finish(&header_.of_reply())))
}
