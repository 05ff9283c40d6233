// Written by mig from the definition of `gnumach`. Do not edit.

/// Calls on tasks and memory that GNU Mach has in addition to Mach 3.
#[allow(unused_imports, reason = "not every interface needs everything")]
use message::{
    Array, Call, Data, Descriptor, Error, Expected, Format, Header, Memory, Number,
    Reader, Request, Status, AsyncTransport, Writer,
};
/// The layout of messages.
pub const FORMAT: Format = Format::MACH64;
/// Bytes of the largest reply.
pub const REPLY_BYTES: usize = 2104;
/// Ids of requests.
pub mod id {
    /// [`vm_cache_statistics`](super::Server::vm_cache_statistics).
    pub const VM_CACHE_STATISTICS: u32 = 4200;
    /// [`thread_terminate_release`](super::Server::thread_terminate_release).
    pub const THREAD_TERMINATE_RELEASE: u32 = 4201;
    /// [`task_set_name`](super::Server::task_set_name).
    pub const TASK_SET_NAME: u32 = 4202;
    /// [`register_new_task_notification`](super::Server::register_new_task_notification).
    pub const REGISTER_NEW_TASK_NOTIFICATION: u32 = 4203;
    /// [`gsync_wait`](super::Server::gsync_wait).
    pub const GSYNC_WAIT: u32 = 4204;
    /// [`gsync_wake`](super::Server::gsync_wake).
    pub const GSYNC_WAKE: u32 = 4205;
    /// [`gsync_requeue`](super::Server::gsync_requeue).
    pub const GSYNC_REQUEUE: u32 = 4206;
    /// [`vm_wire_all`](super::Server::vm_wire_all).
    pub const VM_WIRE_ALL: u32 = 4207;
    /// [`vm_object_sync`](super::Server::vm_object_sync).
    pub const VM_OBJECT_SYNC: u32 = 4208;
    /// [`vm_msync`](super::Server::vm_msync).
    pub const VM_MSYNC: u32 = 4209;
    /// [`vm_allocate_contiguous`](super::Server::vm_allocate_contiguous).
    pub const VM_ALLOCATE_CONTIGUOUS: u32 = 4210;
    /// [`task_set_essential`](super::Server::task_set_essential).
    pub const TASK_SET_ESSENTIAL: u32 = 4211;
    /// [`vm_pages_phys`](super::Server::vm_pages_phys).
    pub const VM_PAGES_PHYS: u32 = 4212;
    /// [`thread_set_name`](super::Server::thread_set_name).
    pub const THREAD_SET_NAME: u32 = 4213;
    /// [`thread_get_name`](super::Server::thread_get_name).
    pub const THREAD_GET_NAME: u32 = 4214;
    /// [`vm_set_size_limit`](super::Server::vm_set_size_limit).
    pub const VM_SET_SIZE_LIMIT: u32 = 4215;
    /// [`vm_get_size_limit`](super::Server::vm_get_size_limit).
    pub const VM_GET_SIZE_LIMIT: u32 = 4216;
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
    /// The use of memory for cached objects.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_cache_statistics(&mut self) -> Result<[u32; 11], Error> {
        let mut message_ = [0; 104];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_CACHE_STATISTICS,
                    reply_port: None,
                    reply: Some(4300),
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
                        number: Number::Exactly(11),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let vm_cache_stats = reader_.elements::<u32, 11>()?;
            reader_.finish()?;
            Some(vm_cache_stats)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Ends a thread, and gives up names and memory that the thread itself could not give up.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_terminate_release(
        &mut self,
        task: u64,
        thread_name: u32,
        reply_port: u32,
        address: u64,
        size: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 112];
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
                u64::from(thread_name),
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
                u64::from(reply_port),
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
                address,
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
                size,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::THREAD_TERMINATE_RELEASE,
                    reply_port: None,
                    reply: None,
                    complex: None,
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await
    }
    /// Names a task for debuggers.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_set_name(&mut self, name: &[u8]) -> Result<(), Error> {
        if name.len() >= 64 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        let mut message_ = [0; 104];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .describe(
                &Descriptor {
                    name: 12,
                    bits: 8,
                    number: name.len() as u32 + 1,
                    flags: 1,
                },
            );
        writer_.text(&name, name.len() + 1);
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::TASK_SET_NAME,
                    reply_port: None,
                    reply: None,
                    complex: None,
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await
    }
    /// From now on the port is told of each new task.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn register_new_task_notification(
        &mut self,
        notification: u64,
        notification_type: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: notification_type,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                notification,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::REGISTER_NEW_TASK_NOTIFICATION,
                    reply_port: None,
                    reply: Some(4303),
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
    /// Waits while a word of memory, or with flag 2 two words, has a value. flags: 1 shared, 4
    /// timed by msec.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn gsync_wait(
        &mut self,
        addr: u64,
        val1: u32,
        val2: u32,
        msec: u32,
        flags: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 112];
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
                addr,
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
                u64::from(val1),
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
                u64::from(val2),
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
                u64::from(msec),
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
                u64::from(flags),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::GSYNC_WAIT,
                    reply_port: None,
                    reply: Some(4304),
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
    /// Wakes the callers of gsync_wait at an address. flags: 1 shared, 8 all of them, 16 stores val
    /// first.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn gsync_wake(
        &mut self,
        addr: u64,
        val: u32,
        flags: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 80];
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
                addr,
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
                u64::from(val),
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
                u64::from(flags),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::GSYNC_WAKE,
                    reply_port: None,
                    reply: None,
                    complex: None,
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await
    }
    /// Wakes one caller of gsync_wait at an address, and moves others to another address.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn gsync_requeue(
        &mut self,
        src_addr: u64,
        dst_addr: u64,
        wake_one: u32,
        flags: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 96];
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
                src_addr,
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
                dst_addr,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(wake_one),
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
                u64::from(flags),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::GSYNC_REQUEUE,
                    reply_port: None,
                    reply: None,
                    complex: None,
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await
    }
    /// Keeps all memory of a task resident. flags: 1 present, 2 future, 0 none.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_wire_all(&mut self, task: u64, flags: u32) -> Result<(), Error> {
        let mut message_ = [0; 64];
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
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(flags),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_WIRE_ALL,
                    reply_port: None,
                    reply: Some(4307),
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
    /// Has changed pages of a memory object returned to its pager.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_object_sync(
        &mut self,
        offset: u64,
        size: u64,
        should_flush: u32,
        should_return: u32,
        should_iosync: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 112];
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
                offset,
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
                size,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(should_flush),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(should_return),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(should_iosync),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_OBJECT_SYNC,
                    reply_port: None,
                    reply: Some(4308),
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
    /// Has changed pages of a range returned to their pager.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_msync(
        &mut self,
        address: u64,
        size: u64,
        sync_flags: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 80];
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
        writer_
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                size,
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
                u64::from(sync_flags),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_MSYNC,
                    reply_port: None,
                    reply: Some(4309),
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
    /// Memory whose pages lie next to each other in physical memory.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_allocate_contiguous(
        &mut self,
        target_task: u64,
        size: u64,
        pmin: u64,
        pmax: u64,
        palign: u64,
    ) -> Result<(u64, u64), Error> {
        let mut message_ = [0; 112];
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
                target_task,
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
                size,
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
                pmin,
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
                pmax,
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
                palign,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_ALLOCATE_CONTIGUOUS,
                    reply_port: None,
                    reply: Some(4310),
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
            let vaddr = reader_
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
            let paddr = reader_
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
            Some((vaddr, paddr))
        };
        read_().ok_or(Error::TypeError)
    }
    /// Marks a task without which the system cannot go on.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_set_essential(&mut self, essential: u32) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(essential),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::TASK_SET_ESSENTIAL,
                    reply_port: None,
                    reply: None,
                    complex: None,
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await
    }
    /// The physical addresses of the pages of a range.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_pages_phys(
        &mut self,
        target_task: u64,
        vaddr: u64,
        size: u64,
    ) -> Result<Data<u64, 256>, Error> {
        let mut message_ = [0; 2104];
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
                target_task,
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
                vaddr,
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
                size,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_PAGES_PHYS,
                    reply_port: None,
                    reply: Some(4312),
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
            let pages = if descriptor_.flags & message::INLINE != 0 {
                Data::Inline(
                    reader_.array::<u64, 256>(descriptor_.number.checked_mul(1)?)?,
                )
            } else {
                Data::Memory(reader_.pointer(descriptor_, 1)?)
            };
            reader_.finish()?;
            Some(pages)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Names a thread for debuggers.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_set_name(&mut self, name: &[u8]) -> Result<(), Error> {
        if name.len() >= 64 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        let mut message_ = [0; 104];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .describe(
                &Descriptor {
                    name: 12,
                    bits: 8,
                    number: name.len() as u32 + 1,
                    flags: 1,
                },
            );
        writer_.text(&name, name.len() + 1);
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::THREAD_SET_NAME,
                    reply_port: None,
                    reply: None,
                    complex: None,
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await
    }
    /// The name of a thread.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_get_name(&mut self) -> Result<Array<u8, 64>, Error> {
        let mut message_ = [0; 120];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_GET_NAME,
                    reply_port: None,
                    reply: Some(4314),
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
            let descriptor_ = reader_
                .described(
                    &Expected {
                        name: Some(12),
                        bits: 8,
                        number: Number::UpTo(64),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let name = reader_.text::<64>(descriptor_.number)?;
            reader_.finish()?;
            Some(name)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets how much a task may map at most, and how much that limit can be raised later.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_set_size_limit(
        &mut self,
        map: u64,
        current_limit: u64,
        max_limit: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 80];
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
                map,
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
                current_limit,
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
                max_limit,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_SET_SIZE_LIMIT,
                    reply_port: None,
                    reply: Some(4315),
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
    /// How much a task may map at most, and how much that limit can be raised.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_get_size_limit(&mut self) -> Result<(u64, u64), Error> {
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
                    id: id::VM_GET_SIZE_LIMIT,
                    reply_port: None,
                    reply: Some(4316),
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
            let current_limit = reader_
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
            let max_limit = reader_
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
            Some((current_limit, max_limit))
        };
        read_().ok_or(Error::TypeError)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// The use of memory for cached objects.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_cache_statistics(
        &mut self,
        target_task: u64,
    ) -> impl Future<Output = Result<[u32; 11], Status>> + Send;
    /// Ends a thread, and gives up names and memory that the thread itself could not give up.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_terminate_release(
        &mut self,
        thread: u64,
        task: u64,
        thread_name: u32,
        reply_port: u32,
        address: u64,
        size: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Names a task for debuggers.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_set_name(
        &mut self,
        task: u64,
        name: Array<u8, 64>,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// From now on the port is told of each new task.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn register_new_task_notification(
        &mut self,
        host_priv: u64,
        notification: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Waits while a word of memory, or with flag 2 two words, has a value. flags: 1 shared, 4
    /// timed by msec.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn gsync_wait(
        &mut self,
        task: u64,
        addr: u64,
        val1: u32,
        val2: u32,
        msec: u32,
        flags: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Wakes the callers of gsync_wait at an address. flags: 1 shared, 8 all of them, 16 stores val
    /// first.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn gsync_wake(
        &mut self,
        task: u64,
        addr: u64,
        val: u32,
        flags: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Wakes one caller of gsync_wait at an address, and moves others to another address.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn gsync_requeue(
        &mut self,
        task: u64,
        src_addr: u64,
        dst_addr: u64,
        wake_one: u32,
        flags: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Keeps all memory of a task resident. flags: 1 present, 2 future, 0 none.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_wire_all(
        &mut self,
        host: u64,
        task: u64,
        flags: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Has changed pages of a memory object returned to its pager.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_object_sync(
        &mut self,
        object: u64,
        offset: u64,
        size: u64,
        should_flush: u32,
        should_return: u32,
        should_iosync: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Has changed pages of a range returned to their pager.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_msync(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
        sync_flags: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Memory whose pages lie next to each other in physical memory.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_allocate_contiguous(
        &mut self,
        host_priv: u64,
        target_task: u64,
        size: u64,
        pmin: u64,
        pmax: u64,
        palign: u64,
    ) -> impl Future<Output = Result<(u64, u64), Status>> + Send;
    /// Marks a task without which the system cannot go on.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_set_essential(
        &mut self,
        task: u64,
        essential: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The physical addresses of the pages of a range.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_pages_phys(
        &mut self,
        host_priv: u64,
        target_task: u64,
        vaddr: u64,
        size: u64,
    ) -> impl Future<Output = Result<Data<u64, 256>, Status>> + Send;
    /// Names a thread for debuggers.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_set_name(
        &mut self,
        thread: u64,
        name: Array<u8, 64>,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The name of a thread.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_get_name(
        &mut self,
        thread: u64,
    ) -> impl Future<Output = Result<Array<u8, 64>, Status>> + Send;
    /// Sets how much a task may map at most, and how much that limit can be raised later.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_set_size_limit(
        &mut self,
        host_port: u64,
        map: u64,
        current_limit: u64,
        max_limit: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// How much a task may map at most, and how much that limit can be raised.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_get_size_limit(
        &mut self,
        map: u64,
    ) -> impl Future<Output = Result<(u64, u64), Status>> + Send;
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
        id::VM_CACHE_STATISTICS => {
            serve_vm_cache_statistics(server_, &header_, request_, reply_).await
        }
        id::THREAD_TERMINATE_RELEASE => {
            serve_thread_terminate_release(server_, &header_, request_, reply_).await
        }
        id::TASK_SET_NAME => {
            serve_task_set_name(server_, &header_, request_, reply_).await
        }
        id::REGISTER_NEW_TASK_NOTIFICATION => {
            serve_register_new_task_notification(server_, &header_, request_, reply_)
                .await
        }
        id::GSYNC_WAIT => serve_gsync_wait(server_, &header_, request_, reply_).await,
        id::GSYNC_WAKE => serve_gsync_wake(server_, &header_, request_, reply_).await,
        id::GSYNC_REQUEUE => {
            serve_gsync_requeue(server_, &header_, request_, reply_).await
        }
        id::VM_WIRE_ALL => serve_vm_wire_all(server_, &header_, request_, reply_).await,
        id::VM_OBJECT_SYNC => {
            serve_vm_object_sync(server_, &header_, request_, reply_).await
        }
        id::VM_MSYNC => serve_vm_msync(server_, &header_, request_, reply_).await,
        id::VM_ALLOCATE_CONTIGUOUS => {
            serve_vm_allocate_contiguous(server_, &header_, request_, reply_).await
        }
        id::TASK_SET_ESSENTIAL => {
            serve_task_set_essential(server_, &header_, request_, reply_).await
        }
        id::VM_PAGES_PHYS => {
            serve_vm_pages_phys(server_, &header_, request_, reply_).await
        }
        id::THREAD_SET_NAME => {
            serve_thread_set_name(server_, &header_, request_, reply_).await
        }
        id::THREAD_GET_NAME => {
            serve_thread_get_name(server_, &header_, request_, reply_).await
        }
        id::VM_SET_SIZE_LIMIT => {
            serve_vm_set_size_limit(server_, &header_, request_, reply_).await
        }
        id::VM_GET_SIZE_LIMIT => {
            serve_vm_get_size_limit(server_, &header_, request_, reply_).await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_cache_statistics<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_task = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let vm_cache_stats = server_.vm_cache_statistics(target_task).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: 11,
                flags: 1,
            },
        );
    writer_.data(&vm_cache_stats);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_terminate_release<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let thread = header_.local;
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
        let thread_name = reader_
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
        let reply_port = reader_
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
        let size = reader_
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
        Some((task, thread_name, reply_port, address, size))
    };
    let (task, thread_name, reply_port, address, size) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .thread_terminate_release(thread, task, thread_name, reply_port, address, size)
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_set_name<S: Server + Send>(
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
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: Some(12),
                    bits: 8,
                    number: Number::UpTo(64),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let name = reader_.text::<64>(descriptor_.number)?;
        reader_.finish()?;
        Some(name)
    };
    let name = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.task_set_name(task, name).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_register_new_task_notification<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, None)
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host_priv = header_.local;
    let read_ = move || {
        let notification = reader_
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
        Some(notification)
    };
    let notification = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.register_new_task_notification(host_priv, notification).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_gsync_wait<S: Server + Send>(
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
        let addr = reader_
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
        let val1 = reader_
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
        let val2 = reader_
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
        let msec = reader_
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
        let flags = reader_
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
        Some((addr, val1, val2, msec, flags))
    };
    let (addr, val1, val2, msec, flags) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.gsync_wait(task, addr, val1, val2, msec, flags).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_gsync_wake<S: Server + Send>(
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
        let addr = reader_
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
        let val = reader_
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
        let flags = reader_
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
        Some((addr, val, flags))
    };
    let (addr, val, flags) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.gsync_wake(task, addr, val, flags).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_gsync_requeue<S: Server + Send>(
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
        let src_addr = reader_
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
        let dst_addr = reader_
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
        let wake_one = reader_
            .value(
                &Expected {
                    name: Some(0),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let flags = reader_
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
        Some((src_addr, dst_addr, wake_one, flags))
    };
    let (src_addr, dst_addr, wake_one, flags) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.gsync_requeue(task, src_addr, dst_addr, wake_one, flags).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_wire_all<S: Server + Send>(
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
        let flags = reader_
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
        Some((task, flags))
    };
    let (task, flags) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.vm_wire_all(host, task, flags).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_object_sync<S: Server + Send>(
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
        let offset = reader_
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
        let size = reader_
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
        let should_flush = reader_
            .value(
                &Expected {
                    name: Some(0),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let should_return = reader_
            .value(
                &Expected {
                    name: Some(0),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let should_iosync = reader_
            .value(
                &Expected {
                    name: Some(0),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((offset, size, should_flush, should_return, should_iosync))
    };
    let (offset, size, should_flush, should_return, should_iosync) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .vm_object_sync(object, offset, size, should_flush, should_return, should_iosync)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_msync<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_task = header_.local;
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
        let size = reader_
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
        let sync_flags = reader_
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
        Some((address, size, sync_flags))
    };
    let (address, size, sync_flags) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.vm_msync(target_task, address, size, sync_flags).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_allocate_contiguous<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host_priv = header_.local;
    let read_ = move || {
        let target_task = reader_
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
        let size = reader_
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
        let pmin = reader_
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
        let pmax = reader_
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
        let palign = reader_
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
        Some((target_task, size, pmin, pmax, palign))
    };
    let (target_task, size, pmin, pmax, palign) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (vaddr, paddr) = server_
        .vm_allocate_contiguous(host_priv, target_task, size, pmin, pmax, palign)
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
            vaddr,
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
            paddr,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_set_essential<S: Server + Send>(
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
        let essential = reader_
            .value(
                &Expected {
                    name: Some(0),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some(essential)
    };
    let essential = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.task_set_essential(task, essential).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_pages_phys<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host_priv = header_.local;
    let read_ = move || {
        let target_task = reader_
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
        let vaddr = reader_
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
        let size = reader_
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
        Some((target_task, vaddr, size))
    };
    let (target_task, vaddr, size) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let pages = server_.vm_pages_phys(host_priv, target_task, vaddr, size).await?;
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
                        flags: 3,
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
                        number: memory_.count * 1,
                        flags: 2,
                    },
                );
            writer_.pointer(memory_.address);
        }
    }
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_set_name<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let thread = header_.local;
    let read_ = move || {
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: Some(12),
                    bits: 8,
                    number: Number::UpTo(64),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let name = reader_.text::<64>(descriptor_.number)?;
        reader_.finish()?;
        Some(name)
    };
    let name = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_set_name(thread, name).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_get_name<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let thread = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let name = server_.thread_get_name(thread).await?;
    if name.len() >= 64 {
        return Err(Status::ARRAY_TOO_LARGE);
    }
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 12,
                bits: 8,
                number: name.len() as u32 + 1,
                flags: 1,
            },
        );
    writer_.text(&name, name.len() + 1);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_set_size_limit<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host_port = header_.local;
    let read_ = move || {
        let map = reader_
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
        let current_limit = reader_
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
        let max_limit = reader_
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
        Some((map, current_limit, max_limit))
    };
    let (map, current_limit, max_limit) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.vm_set_size_limit(host_port, map, current_limit, max_limit).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_get_size_limit<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let map = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (current_limit, max_limit) = server_.vm_get_size_limit(map).await?;
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
            current_limit,
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
            max_limit,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
