// Written by mig from the definition of `mach`. Do not edit.

/// Mach's calls on tasks, threads, their memory, and the control ports of memory objects. All
/// calls of one task on another go by the port of that task or thread.
#[allow(unused_imports, reason = "not every interface needs everything")]
use message::{
    Array, Call, Data, Descriptor, Error, Expected, Format, Header, Memory, Number,
    Reader, Request, Status, AsyncTransport, Writer,
};
/// The layout of messages.
pub const FORMAT: Format = Format::MACH64;
/// Bytes of the largest reply.
pub const REPLY_BYTES: usize = 4152;
/// Ids of requests.
pub mod id {
    /// [`task_create`](super::Server::task_create).
    pub const TASK_CREATE: u32 = 2007;
    /// [`task_terminate`](super::Server::task_terminate).
    pub const TASK_TERMINATE: u32 = 2008;
    /// [`task_get_emulation_vector`](super::Server::task_get_emulation_vector).
    pub const TASK_GET_EMULATION_VECTOR: u32 = 2009;
    /// [`task_set_emulation_vector`](super::Server::task_set_emulation_vector).
    pub const TASK_SET_EMULATION_VECTOR: u32 = 2010;
    /// [`task_threads`](super::Server::task_threads).
    pub const TASK_THREADS: u32 = 2011;
    /// [`task_info`](super::Server::task_info).
    pub const TASK_INFO: u32 = 2012;
    /// [`thread_terminate`](super::Server::thread_terminate).
    pub const THREAD_TERMINATE: u32 = 2016;
    /// [`thread_get_state`](super::Server::thread_get_state).
    pub const THREAD_GET_STATE: u32 = 2017;
    /// [`thread_set_state`](super::Server::thread_set_state).
    pub const THREAD_SET_STATE: u32 = 2018;
    /// [`thread_info`](super::Server::thread_info).
    pub const THREAD_INFO: u32 = 2019;
    /// [`vm_allocate`](super::Server::vm_allocate).
    pub const VM_ALLOCATE: u32 = 2021;
    /// [`vm_deallocate`](super::Server::vm_deallocate).
    pub const VM_DEALLOCATE: u32 = 2023;
    /// [`vm_protect`](super::Server::vm_protect).
    pub const VM_PROTECT: u32 = 2024;
    /// [`vm_inherit`](super::Server::vm_inherit).
    pub const VM_INHERIT: u32 = 2025;
    /// [`vm_read`](super::Server::vm_read).
    pub const VM_READ: u32 = 2026;
    /// [`vm_write`](super::Server::vm_write).
    pub const VM_WRITE: u32 = 2027;
    /// [`vm_copy`](super::Server::vm_copy).
    pub const VM_COPY: u32 = 2028;
    /// [`vm_region`](super::Server::vm_region).
    pub const VM_REGION: u32 = 2029;
    /// [`vm_statistics`](super::Server::vm_statistics).
    pub const VM_STATISTICS: u32 = 2030;
    /// [`mach_ports_register`](super::Server::mach_ports_register).
    pub const MACH_PORTS_REGISTER: u32 = 2033;
    /// [`mach_ports_lookup`](super::Server::mach_ports_lookup).
    pub const MACH_PORTS_LOOKUP: u32 = 2034;
    /// [`memory_object_data_provided`](super::Server::memory_object_data_provided).
    pub const MEMORY_OBJECT_DATA_PROVIDED: u32 = 2038;
    /// [`memory_object_data_unavailable`](super::Server::memory_object_data_unavailable).
    pub const MEMORY_OBJECT_DATA_UNAVAILABLE: u32 = 2039;
    /// [`memory_object_get_attributes`](super::Server::memory_object_get_attributes).
    pub const MEMORY_OBJECT_GET_ATTRIBUTES: u32 = 2040;
    /// [`vm_set_default_memory_manager`](super::Server::vm_set_default_memory_manager).
    pub const VM_SET_DEFAULT_MEMORY_MANAGER: u32 = 2041;
    /// [`memory_object_lock_request`](super::Server::memory_object_lock_request).
    pub const MEMORY_OBJECT_LOCK_REQUEST: u32 = 2044;
    /// [`task_suspend`](super::Server::task_suspend).
    pub const TASK_SUSPEND: u32 = 2056;
    /// [`task_resume`](super::Server::task_resume).
    pub const TASK_RESUME: u32 = 2057;
    /// [`task_get_special_port`](super::Server::task_get_special_port).
    pub const TASK_GET_SPECIAL_PORT: u32 = 2058;
    /// [`task_set_special_port`](super::Server::task_set_special_port).
    pub const TASK_SET_SPECIAL_PORT: u32 = 2059;
    /// [`thread_create`](super::Server::thread_create).
    pub const THREAD_CREATE: u32 = 2061;
    /// [`thread_suspend`](super::Server::thread_suspend).
    pub const THREAD_SUSPEND: u32 = 2062;
    /// [`thread_resume`](super::Server::thread_resume).
    pub const THREAD_RESUME: u32 = 2063;
    /// [`thread_abort`](super::Server::thread_abort).
    pub const THREAD_ABORT: u32 = 2064;
    /// [`thread_get_special_port`](super::Server::thread_get_special_port).
    pub const THREAD_GET_SPECIAL_PORT: u32 = 2067;
    /// [`thread_set_special_port`](super::Server::thread_set_special_port).
    pub const THREAD_SET_SPECIAL_PORT: u32 = 2068;
    /// [`task_set_emulation`](super::Server::task_set_emulation).
    pub const TASK_SET_EMULATION: u32 = 2070;
    /// [`task_ras_control`](super::Server::task_ras_control).
    pub const TASK_RAS_CONTROL: u32 = 2071;
    /// [`vm_map`](super::Server::vm_map).
    pub const VM_MAP: u32 = 2089;
    /// [`memory_object_data_error`](super::Server::memory_object_data_error).
    pub const MEMORY_OBJECT_DATA_ERROR: u32 = 2090;
    /// [`memory_object_set_attributes`](super::Server::memory_object_set_attributes).
    pub const MEMORY_OBJECT_SET_ATTRIBUTES: u32 = 2091;
    /// [`memory_object_destroy`](super::Server::memory_object_destroy).
    pub const MEMORY_OBJECT_DESTROY: u32 = 2092;
    /// [`memory_object_data_supply`](super::Server::memory_object_data_supply).
    pub const MEMORY_OBJECT_DATA_SUPPLY: u32 = 2093;
    /// [`memory_object_ready`](super::Server::memory_object_ready).
    pub const MEMORY_OBJECT_READY: u32 = 2094;
    /// [`memory_object_change_attributes`](super::Server::memory_object_change_attributes).
    pub const MEMORY_OBJECT_CHANGE_ATTRIBUTES: u32 = 2095;
    /// [`memory_object_set_cluster_size`](super::Server::memory_object_set_cluster_size).
    pub const MEMORY_OBJECT_SET_CLUSTER_SIZE: u32 = 2096;
    /// [`vm_machine_attribute`](super::Server::vm_machine_attribute).
    pub const VM_MACHINE_ATTRIBUTE: u32 = 2099;
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
    /// Makes a task, which inherits the memory of target_task as each region's inheritance says, or
    /// has no memory.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_create(&mut self, inherit_memory: u32) -> Result<u64, Error> {
        let mut message_ = [0; 64];
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
                u64::from(inherit_memory),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_CREATE,
                    reply_port: None,
                    reply: Some(2107),
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
            let child_task = reader_
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
            Some(child_task)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Ends a task: its threads, its memory and its rights.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_terminate(&mut self) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_TERMINATE,
                    reply_port: None,
                    reply: Some(2108),
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
    /// The addresses at which emulated system calls continue, from the number vector_start on.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_get_emulation_vector(&mut self) -> Result<(u32, Memory), Error> {
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
                    id: id::TASK_GET_EMULATION_VECTOR,
                    reply_port: None,
                    reply: Some(2109),
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
            let vector_start = reader_
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
                        name: Some(11),
                        bits: 64,
                        number: Number::Any,
                        inline: Some(false),
                        long: true,
                    },
                )?;
            let emulation_vector = reader_.pointer(descriptor_, 1)?;
            reader_.finish()?;
            Some((vector_start, emulation_vector))
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets the addresses at which the system calls with the numbers from vector_start on continue.
    /// 0: the call is not emulated.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_set_emulation_vector(
        &mut self,
        vector_start: u32,
        emulation_vector: Memory,
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
                u64::from(vector_start),
                4,
            );
        writer_
            .describe(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: emulation_vector.count * 1,
                    flags: 2,
                },
            );
        writer_.pointer(emulation_vector.address);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_SET_EMULATION_VECTOR,
                    reply_port: None,
                    reply: Some(2110),
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
    /// The threads of a task.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_threads(&mut self) -> Result<Memory, Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_THREADS,
                    reply_port: None,
                    reply: Some(2111),
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
                        name: Some(17),
                        bits: 64,
                        number: Number::Any,
                        inline: Some(false),
                        long: true,
                    },
                )?;
            let thread_list = reader_.pointer(descriptor_, 1)?;
            reader_.finish()?;
            Some(thread_list)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Information about a task. flavor: 1 basic, 2 events, 3 times of its threads.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_info(&mut self, flavor: u32) -> Result<Array<u32, 1024>, Error> {
        let mut message_ = [0; 4152];
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
                u64::from(flavor),
                4,
            );
        writer_.integer(1024);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_INFO,
                    reply_port: None,
                    reply: Some(2112),
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
                        name: Some(2),
                        bits: 32,
                        number: Number::UpTo(1024),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let task_info_out = reader_
                .array::<u32, 1024>(descriptor_.number.checked_mul(1)?)?;
            reader_.finish()?;
            Some(task_info_out)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Ends a thread.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_terminate(&mut self) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_TERMINATE,
                    reply_port: None,
                    reply: Some(2116),
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
    /// The registers of a stopped thread, by flavor.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_get_state(
        &mut self,
        flavor: u32,
    ) -> Result<Array<u32, 1024>, Error> {
        let mut message_ = [0; 4152];
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
                u64::from(flavor),
                4,
            );
        writer_.integer(1024);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_GET_STATE,
                    reply_port: None,
                    reply: Some(2117),
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
                        name: Some(2),
                        bits: 32,
                        number: Number::UpTo(1024),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let old_state = reader_
                .array::<u32, 1024>(descriptor_.number.checked_mul(1)?)?;
            reader_.finish()?;
            Some(old_state)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Replaces registers of a stopped thread, by flavor.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_set_state(
        &mut self,
        flavor: u32,
        new_state: &[u32],
    ) -> Result<(), Error> {
        if new_state.len() > 1024 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        let mut message_ = [0; 4152];
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
                u64::from(flavor),
                4,
            );
        writer_
            .describe(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: new_state.len() as u32,
                    flags: 1,
                },
            );
        writer_.data(new_state);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_SET_STATE,
                    reply_port: None,
                    reply: Some(2118),
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
    /// Information about a thread. flavor: 1 basic, 2 scheduling.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_info(&mut self, flavor: u32) -> Result<Array<u32, 1024>, Error> {
        let mut message_ = [0; 4152];
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
                u64::from(flavor),
                4,
            );
        writer_.integer(1024);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_INFO,
                    reply_port: None,
                    reply: Some(2119),
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
                        name: Some(2),
                        bits: 32,
                        number: Number::UpTo(1024),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let thread_info_out = reader_
                .array::<u32, 1024>(descriptor_.number.checked_mul(1)?)?;
            reader_.finish()?;
            Some(thread_info_out)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Memory of zeros at an address, or anywhere.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_allocate(
        &mut self,
        address: u64,
        size: u64,
        anywhere: u32,
    ) -> Result<u64, Error> {
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
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(anywhere),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_ALLOCATE,
                    reply_port: None,
                    reply: Some(2121),
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
        read_().ok_or(Error::TypeError)
    }
    /// Unmaps a range.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_deallocate(&mut self, address: u64, size: u64) -> Result<(), Error> {
        let mut message_ = [0; 64];
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
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_DEALLOCATE,
                    reply_port: None,
                    reply: Some(2123),
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
    /// Sets the rights to a range, or the most rights that it can get.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_protect(
        &mut self,
        address: u64,
        size: u64,
        set_maximum: u32,
        new_protection: u32,
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
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(set_maximum),
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
                u64::from(new_protection),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_PROTECT,
                    reply_port: None,
                    reply: Some(2124),
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
    /// Sets what a child task gets of a range: 0 share, 1 copy, 2 nothing.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_inherit(
        &mut self,
        address: u64,
        size: u64,
        new_inheritance: u32,
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
                u64::from(new_inheritance),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_INHERIT,
                    reply_port: None,
                    reply: Some(2125),
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
    /// Copies whole pages of a task's memory.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_read(&mut self, address: u64, size: u64) -> Result<Memory, Error> {
        let mut message_ = [0; 64];
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
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_READ,
                    reply_port: None,
                    reply: Some(2126),
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
                        name: Some(9),
                        bits: 8,
                        number: Number::Any,
                        inline: Some(false),
                        long: true,
                    },
                )?;
            let data = reader_.pointer(descriptor_, 1)?;
            reader_.finish()?;
            Some(data)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Replaces whole pages of a task's memory.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_write(&mut self, address: u64, data: Memory) -> Result<(), Error> {
        let mut message_ = [0; 64];
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
            .describe(
                &Descriptor {
                    name: 9,
                    bits: 8,
                    number: data.count * 1,
                    flags: 2,
                },
            );
        writer_.pointer(data.address);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_WRITE,
                    reply_port: None,
                    reply: Some(2127),
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
    /// Copies whole pages within a task's memory.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_copy(
        &mut self,
        source_address: u64,
        size: u64,
        dest_address: u64,
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
                source_address,
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
                dest_address,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_COPY,
                    reply_port: None,
                    reply: Some(2128),
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
    /// The region that contains an address, or the next one.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_region(
        &mut self,
        address: u64,
    ) -> Result<(u64, u64, u32, u32, u32, u32, u64, u64), Error> {
        let mut message_ = [0; 176];
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
                    id: id::VM_REGION,
                    reply_port: None,
                    reply: Some(2129),
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
            let protection = reader_
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
            let max_protection = reader_
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
            let inheritance = reader_
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
            let is_shared = reader_
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
            let object_name = reader_
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
            reader_.finish()?;
            Some((
                address,
                size,
                protection,
                max_protection,
                inheritance,
                is_shared,
                object_name,
                offset,
            ))
        };
        read_().ok_or(Error::TypeError)
    }
    /// The use of memory by the whole host.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_statistics(&mut self) -> Result<[u32; 13], Error> {
        let mut message_ = [0; 112];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_STATISTICS,
                    reply_port: None,
                    reply: Some(2130),
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
                        number: Number::Exactly(13),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let vm_stats = reader_.elements::<u32, 13>()?;
            reader_.finish()?;
            Some(vm_stats)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Stores up to four send rights, which child tasks inherit.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_ports_register(
        &mut self,
        init_port_set: Memory,
    ) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .describe(
                &Descriptor {
                    name: 19,
                    bits: 64,
                    number: init_port_set.count * 1,
                    flags: 2,
                },
            );
        writer_.pointer(init_port_set.address);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORTS_REGISTER,
                    reply_port: None,
                    reply: Some(2133),
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
    /// The send rights that mach_ports_register has stored.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_ports_lookup(&mut self) -> Result<Memory, Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MACH_PORTS_LOOKUP,
                    reply_port: None,
                    reply: Some(2134),
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
                        name: Some(17),
                        bits: 64,
                        number: Number::Any,
                        inline: Some(false),
                        long: true,
                    },
                )?;
            let init_port_set = reader_.pointer(descriptor_, 1)?;
            reader_.finish()?;
            Some(init_port_set)
        };
        read_().ok_or(Error::TypeError)
    }
    /// memory_object_data_supply as it was before: the pages are not precious, and there is no
    /// reply.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_data_provided(
        &mut self,
        offset: u64,
        data: Memory,
        lock_value: u32,
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
                offset,
                8,
            );
        writer_
            .describe(
                &Descriptor {
                    name: 9,
                    bits: 8,
                    number: data.count * 1,
                    flags: 2,
                },
            );
        writer_.pointer(data.address);
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(lock_value),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_DATA_PROVIDED,
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
    /// The pager has no data for a range of its object, which reads as zeros.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_data_unavailable(
        &mut self,
        offset: u64,
        size: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
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
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_DATA_UNAVAILABLE,
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
    /// The attributes of a memory object, and whether it is ready.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_get_attributes(
        &mut self,
    ) -> Result<(u32, u32, u32), Error> {
        let mut message_ = [0; 96];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MEMORY_OBJECT_GET_ATTRIBUTES,
                    reply_port: None,
                    reply: Some(2140),
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
            let object_ready = reader_
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
            let may_cache = reader_
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
            let copy_strategy = reader_
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
            Some((object_ready, may_cache, copy_strategy))
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets the port of the default pager, and returns the one before. The null port: returns it
    /// only.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_set_default_memory_manager(
        &mut self,
        default_manager: u64,
    ) -> Result<u64, Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 20,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                default_manager,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_SET_DEFAULT_MEMORY_MANAGER,
                    reply_port: None,
                    reply: Some(2141),
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
            let default_manager = reader_
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
            Some(default_manager)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Has pages of an object returned to the pager, removed, or locked against accesses.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_lock_request(
        &mut self,
        offset: u64,
        size: u64,
        should_return: u32,
        should_flush: u32,
        lock_value: u32,
        reply_to: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 128];
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
                    name: 2,
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
                u64::from(should_flush),
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
                u64::from(lock_value),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 21,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                reply_to,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_LOCK_REQUEST,
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
    /// Increments a task's suspend count. None of its threads runs until it is 0 again.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_suspend(&mut self) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_SUSPEND,
                    reply_port: None,
                    reply: Some(2156),
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
    /// Decrements a task's suspend count.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_resume(&mut self) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_RESUME,
                    reply_port: None,
                    reply: Some(2157),
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
    /// A special port of a task. which_port: 1 kernel, 3 exceptions, 4 bootstrap.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_get_special_port(
        &mut self,
        which_port: u32,
    ) -> Result<u64, Error> {
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
                u64::from(which_port),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_GET_SPECIAL_PORT,
                    reply_port: None,
                    reply: Some(2158),
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
            let special_port = reader_
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
            Some(special_port)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets a special port of a task.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_set_special_port(
        &mut self,
        which_port: u32,
        special_port: u64,
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
                u64::from(which_port),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 19,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                special_port,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_SET_SPECIAL_PORT,
                    reply_port: None,
                    reply: Some(2159),
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
    /// Makes a thread, which is suspended once and has registers of 0.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_create(&mut self) -> Result<u64, Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_CREATE,
                    reply_port: None,
                    reply: Some(2161),
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
            let child_thread = reader_
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
            Some(child_thread)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Increments a thread's suspend count. It does not run until the count is 0 again.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_suspend(&mut self) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_SUSPEND,
                    reply_port: None,
                    reply: Some(2162),
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
    /// Decrements a thread's suspend count.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_resume(&mut self) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_RESUME,
                    reply_port: None,
                    reply: Some(2163),
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
    /// Ends the message call or the wait of a thread with an error.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_abort(&mut self) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_ABORT,
                    reply_port: None,
                    reply: Some(2164),
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
    /// A special port of a thread. which_port: 1 kernel, 3 exceptions.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_get_special_port(
        &mut self,
        which_port: u32,
    ) -> Result<u64, Error> {
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
                u64::from(which_port),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_GET_SPECIAL_PORT,
                    reply_port: None,
                    reply: Some(2167),
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
            let special_port = reader_
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
            Some(special_port)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets a special port of a thread.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_set_special_port(
        &mut self,
        which_port: u32,
        special_port: u64,
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
                u64::from(which_port),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 19,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                special_port,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_SET_SPECIAL_PORT,
                    reply_port: None,
                    reply: Some(2168),
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
    /// Sets the address at which the system call of this number continues. 0: it is not emulated.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_set_emulation(
        &mut self,
        routine_entry_pt: u64,
        routine_number: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
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
                routine_entry_pt,
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
                u64::from(routine_number),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_SET_EMULATION,
                    reply_port: None,
                    reply: Some(2170),
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
    /// Registers a restartable atomic sequence of instructions.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_ras_control(
        &mut self,
        basepc: u64,
        boundspc: u64,
        flavor: u32,
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
                basepc,
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
                boundspc,
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
                u64::from(flavor),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_RAS_CONTROL,
                    reply_port: None,
                    reply: Some(2171),
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
    /// Maps a memory object, a copy of one, or zeros if the object is the null port.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_map(
        &mut self,
        address: u64,
        size: u64,
        mask: u64,
        anywhere: u32,
        memory_object: u64,
        offset: u64,
        copy: u32,
        cur_protection: u32,
        max_protection: u32,
        inheritance: u32,
    ) -> Result<u64, Error> {
        let mut message_ = [0; 192];
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
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                mask,
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
                u64::from(anywhere),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 19,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                memory_object,
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
                offset,
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
                u64::from(copy),
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
                u64::from(cur_protection),
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
                u64::from(max_protection),
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
                u64::from(inheritance),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_MAP,
                    reply_port: None,
                    reply: Some(2189),
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
        read_().ok_or(Error::TypeError)
    }
    /// The pager could not provide the data of a range of its object.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_data_error(
        &mut self,
        offset: u64,
        size: u64,
        error_value: u32,
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
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(error_value),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_DATA_ERROR,
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
    /// memory_object_ready as it was before. With object_ready 0 only the attributes change.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_set_attributes(
        &mut self,
        object_ready: u32,
        may_cache: u32,
        copy_strategy: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 80];
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
                u64::from(object_ready),
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
                u64::from(may_cache),
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
                u64::from(copy_strategy),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_SET_ATTRIBUTES,
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
    /// The pager gives its object up: every access to the object fails from now on.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_destroy(&mut self, reason: u32) -> Result<(), Error> {
        let mut message_ = [0; 48];
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
                u64::from(reason),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_DESTROY,
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
    /// The pager provides the data of a range, with the accesses that are locked. Pages that were
    /// not requested are taken if they are not in memory, and if memory is not short. A precious
    /// page returns to the pager even if it is not changed.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_data_supply(
        &mut self,
        offset: u64,
        data: Memory,
        lock_value: u32,
        precious: u32,
        reply_to: u64,
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
            .describe(
                &Descriptor {
                    name: 9,
                    bits: 8,
                    number: data.count * 1,
                    flags: 2 | if data.deallocate { message::DEALLOCATE } else { 0 },
                },
            );
        writer_.pointer(data.address);
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(lock_value),
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
                u64::from(precious),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 21,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                reply_to,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_DATA_SUPPLY,
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
    /// The pager is ready for requests for the data of its object.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_ready(
        &mut self,
        may_cache: u32,
        copy_strategy: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
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
                u64::from(may_cache),
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
                u64::from(copy_strategy),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_READY,
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
    /// Changes the attributes of a memory object.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_change_attributes(
        &mut self,
        may_cache: u32,
        copy_strategy: u32,
        reply_to: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 80];
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
                u64::from(may_cache),
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
                u64::from(copy_strategy),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 21,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                reply_to,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_CHANGE_ATTRIBUTES,
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
    /// Sets how many bytes a memory_object_data_request is for at most: from one page, which it is
    /// for if this is not called, to 32 pages. Other systems have no such call.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_set_cluster_size(
        &mut self,
        cluster_size: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 48];
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
                cluster_size,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_SET_CLUSTER_SIZE,
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
    /// Gets or sets an attribute of memory that depends on the machine, such as caching.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_machine_attribute(
        &mut self,
        address: u64,
        size: u64,
        attribute: u32,
        value: u32,
    ) -> Result<u32, Error> {
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
                u64::from(attribute),
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
                u64::from(value),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_MACHINE_ATTRIBUTE,
                    reply_port: None,
                    reply: Some(2199),
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
            let value = reader_
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
            Some(value)
        };
        read_().ok_or(Error::TypeError)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// Makes a task, which inherits the memory of target_task as each region's inheritance says, or
    /// has no memory.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_create(
        &mut self,
        target_task: u64,
        inherit_memory: u32,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Ends a task: its threads, its memory and its rights.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_terminate(
        &mut self,
        target_task: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The addresses at which emulated system calls continue, from the number vector_start on.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_get_emulation_vector(
        &mut self,
        task: u64,
    ) -> impl Future<Output = Result<(u32, Memory), Status>> + Send;
    /// Sets the addresses at which the system calls with the numbers from vector_start on continue.
    /// 0: the call is not emulated.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_set_emulation_vector(
        &mut self,
        task: u64,
        vector_start: u32,
        emulation_vector: Memory,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The threads of a task.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_threads(
        &mut self,
        target_task: u64,
    ) -> impl Future<Output = Result<Memory, Status>> + Send;
    /// Information about a task. flavor: 1 basic, 2 events, 3 times of its threads.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_info(
        &mut self,
        target_task: u64,
        flavor: u32,
        task_info_out_room: usize,
    ) -> impl Future<Output = Result<Array<u32, 1024>, Status>> + Send;
    /// Ends a thread.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_terminate(
        &mut self,
        target_thread: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The registers of a stopped thread, by flavor.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_get_state(
        &mut self,
        target_thread: u64,
        flavor: u32,
        old_state_room: usize,
    ) -> impl Future<Output = Result<Array<u32, 1024>, Status>> + Send;
    /// Replaces registers of a stopped thread, by flavor.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_set_state(
        &mut self,
        target_thread: u64,
        flavor: u32,
        new_state: Array<u32, 1024>,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Information about a thread. flavor: 1 basic, 2 scheduling.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_info(
        &mut self,
        target_thread: u64,
        flavor: u32,
        thread_info_out_room: usize,
    ) -> impl Future<Output = Result<Array<u32, 1024>, Status>> + Send;
    /// Memory of zeros at an address, or anywhere.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_allocate(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
        anywhere: u32,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Unmaps a range.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_deallocate(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets the rights to a range, or the most rights that it can get.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_protect(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
        set_maximum: u32,
        new_protection: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets what a child task gets of a range: 0 share, 1 copy, 2 nothing.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_inherit(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
        new_inheritance: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Copies whole pages of a task's memory.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_read(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
    ) -> impl Future<Output = Result<Memory, Status>> + Send;
    /// Replaces whole pages of a task's memory.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_write(
        &mut self,
        target_task: u64,
        address: u64,
        data: Memory,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Copies whole pages within a task's memory.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_copy(
        &mut self,
        target_task: u64,
        source_address: u64,
        size: u64,
        dest_address: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The region that contains an address, or the next one.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_region(
        &mut self,
        target_task: u64,
        address: u64,
    ) -> impl Future<
        Output = Result<(u64, u64, u32, u32, u32, u32, u64, u64), Status>,
    > + Send;
    /// The use of memory by the whole host.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_statistics(
        &mut self,
        target_task: u64,
    ) -> impl Future<Output = Result<[u32; 13], Status>> + Send;
    /// Stores up to four send rights, which child tasks inherit.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_ports_register(
        &mut self,
        target_task: u64,
        init_port_set: Memory,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The send rights that mach_ports_register has stored.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_ports_lookup(
        &mut self,
        target_task: u64,
    ) -> impl Future<Output = Result<Memory, Status>> + Send;
    /// memory_object_data_supply as it was before: the pages are not precious, and there is no
    /// reply.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_data_provided(
        &mut self,
        memory_control: u64,
        offset: u64,
        data: Memory,
        lock_value: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The pager has no data for a range of its object, which reads as zeros.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_data_unavailable(
        &mut self,
        memory_control: u64,
        offset: u64,
        size: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The attributes of a memory object, and whether it is ready.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_get_attributes(
        &mut self,
        memory_control: u64,
    ) -> impl Future<Output = Result<(u32, u32, u32), Status>> + Send;
    /// Sets the port of the default pager, and returns the one before. The null port: returns it
    /// only.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_set_default_memory_manager(
        &mut self,
        host_priv: u64,
        default_manager: u64,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Has pages of an object returned to the pager, removed, or locked against accesses.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_lock_request(
        &mut self,
        memory_control: u64,
        offset: u64,
        size: u64,
        should_return: u32,
        should_flush: u32,
        lock_value: u32,
        reply_to: u64,
        reply_to_type: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Increments a task's suspend count. None of its threads runs until it is 0 again.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_suspend(
        &mut self,
        target_task: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Decrements a task's suspend count.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_resume(
        &mut self,
        target_task: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// A special port of a task. which_port: 1 kernel, 3 exceptions, 4 bootstrap.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_get_special_port(
        &mut self,
        task: u64,
        which_port: u32,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Sets a special port of a task.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_set_special_port(
        &mut self,
        task: u64,
        which_port: u32,
        special_port: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Makes a thread, which is suspended once and has registers of 0.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_create(
        &mut self,
        parent_task: u64,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Increments a thread's suspend count. It does not run until the count is 0 again.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_suspend(
        &mut self,
        target_thread: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Decrements a thread's suspend count.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_resume(
        &mut self,
        target_thread: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Ends the message call or the wait of a thread with an error.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_abort(
        &mut self,
        target_thread: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// A special port of a thread. which_port: 1 kernel, 3 exceptions.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_get_special_port(
        &mut self,
        thread: u64,
        which_port: u32,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Sets a special port of a thread.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_set_special_port(
        &mut self,
        thread: u64,
        which_port: u32,
        special_port: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets the address at which the system call of this number continues. 0: it is not emulated.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_set_emulation(
        &mut self,
        target_port: u64,
        routine_entry_pt: u64,
        routine_number: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Registers a restartable atomic sequence of instructions.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_ras_control(
        &mut self,
        target_task: u64,
        basepc: u64,
        boundspc: u64,
        flavor: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Maps a memory object, a copy of one, or zeros if the object is the null port.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_map(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
        mask: u64,
        anywhere: u32,
        memory_object: u64,
        offset: u64,
        copy: u32,
        cur_protection: u32,
        max_protection: u32,
        inheritance: u32,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// The pager could not provide the data of a range of its object.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_data_error(
        &mut self,
        memory_control: u64,
        offset: u64,
        size: u64,
        error_value: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// memory_object_ready as it was before. With object_ready 0 only the attributes change.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_set_attributes(
        &mut self,
        memory_control: u64,
        object_ready: u32,
        may_cache: u32,
        copy_strategy: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The pager gives its object up: every access to the object fails from now on.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_destroy(
        &mut self,
        memory_control: u64,
        reason: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The pager provides the data of a range, with the accesses that are locked. Pages that were
    /// not requested are taken if they are not in memory, and if memory is not short. A precious
    /// page returns to the pager even if it is not changed.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_data_supply(
        &mut self,
        memory_control: u64,
        offset: u64,
        data: Memory,
        lock_value: u32,
        precious: u32,
        reply_to: u64,
        reply_to_type: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The pager is ready for requests for the data of its object.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_ready(
        &mut self,
        memory_control: u64,
        may_cache: u32,
        copy_strategy: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Changes the attributes of a memory object.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_change_attributes(
        &mut self,
        memory_control: u64,
        may_cache: u32,
        copy_strategy: u32,
        reply_to: u64,
        reply_to_type: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets how many bytes a memory_object_data_request is for at most: from one page, which it is
    /// for if this is not called, to 32 pages. Other systems have no such call.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_set_cluster_size(
        &mut self,
        memory_control: u64,
        cluster_size: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Gets or sets an attribute of memory that depends on the machine, such as caching.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_machine_attribute(
        &mut self,
        target_task: u64,
        address: u64,
        size: u64,
        attribute: u32,
        value: u32,
    ) -> impl Future<Output = Result<u32, Status>> + Send;
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
        id::TASK_CREATE => serve_task_create(server_, &header_, request_, reply_).await,
        id::TASK_TERMINATE => {
            serve_task_terminate(server_, &header_, request_, reply_).await
        }
        id::TASK_GET_EMULATION_VECTOR => {
            serve_task_get_emulation_vector(server_, &header_, request_, reply_).await
        }
        id::TASK_SET_EMULATION_VECTOR => {
            serve_task_set_emulation_vector(server_, &header_, request_, reply_).await
        }
        id::TASK_THREADS => serve_task_threads(server_, &header_, request_, reply_).await,
        id::TASK_INFO => serve_task_info(server_, &header_, request_, reply_).await,
        id::THREAD_TERMINATE => {
            serve_thread_terminate(server_, &header_, request_, reply_).await
        }
        id::THREAD_GET_STATE => {
            serve_thread_get_state(server_, &header_, request_, reply_).await
        }
        id::THREAD_SET_STATE => {
            serve_thread_set_state(server_, &header_, request_, reply_).await
        }
        id::THREAD_INFO => serve_thread_info(server_, &header_, request_, reply_).await,
        id::VM_ALLOCATE => serve_vm_allocate(server_, &header_, request_, reply_).await,
        id::VM_DEALLOCATE => {
            serve_vm_deallocate(server_, &header_, request_, reply_).await
        }
        id::VM_PROTECT => serve_vm_protect(server_, &header_, request_, reply_).await,
        id::VM_INHERIT => serve_vm_inherit(server_, &header_, request_, reply_).await,
        id::VM_READ => serve_vm_read(server_, &header_, request_, reply_).await,
        id::VM_WRITE => serve_vm_write(server_, &header_, request_, reply_).await,
        id::VM_COPY => serve_vm_copy(server_, &header_, request_, reply_).await,
        id::VM_REGION => serve_vm_region(server_, &header_, request_, reply_).await,
        id::VM_STATISTICS => {
            serve_vm_statistics(server_, &header_, request_, reply_).await
        }
        id::MACH_PORTS_REGISTER => {
            serve_mach_ports_register(server_, &header_, request_, reply_).await
        }
        id::MACH_PORTS_LOOKUP => {
            serve_mach_ports_lookup(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_DATA_PROVIDED => {
            serve_memory_object_data_provided(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_DATA_UNAVAILABLE => {
            serve_memory_object_data_unavailable(server_, &header_, request_, reply_)
                .await
        }
        id::MEMORY_OBJECT_GET_ATTRIBUTES => {
            serve_memory_object_get_attributes(server_, &header_, request_, reply_).await
        }
        id::VM_SET_DEFAULT_MEMORY_MANAGER => {
            serve_vm_set_default_memory_manager(server_, &header_, request_, reply_)
                .await
        }
        id::MEMORY_OBJECT_LOCK_REQUEST => {
            serve_memory_object_lock_request(server_, &header_, request_, reply_).await
        }
        id::TASK_SUSPEND => serve_task_suspend(server_, &header_, request_, reply_).await,
        id::TASK_RESUME => serve_task_resume(server_, &header_, request_, reply_).await,
        id::TASK_GET_SPECIAL_PORT => {
            serve_task_get_special_port(server_, &header_, request_, reply_).await
        }
        id::TASK_SET_SPECIAL_PORT => {
            serve_task_set_special_port(server_, &header_, request_, reply_).await
        }
        id::THREAD_CREATE => {
            serve_thread_create(server_, &header_, request_, reply_).await
        }
        id::THREAD_SUSPEND => {
            serve_thread_suspend(server_, &header_, request_, reply_).await
        }
        id::THREAD_RESUME => {
            serve_thread_resume(server_, &header_, request_, reply_).await
        }
        id::THREAD_ABORT => serve_thread_abort(server_, &header_, request_, reply_).await,
        id::THREAD_GET_SPECIAL_PORT => {
            serve_thread_get_special_port(server_, &header_, request_, reply_).await
        }
        id::THREAD_SET_SPECIAL_PORT => {
            serve_thread_set_special_port(server_, &header_, request_, reply_).await
        }
        id::TASK_SET_EMULATION => {
            serve_task_set_emulation(server_, &header_, request_, reply_).await
        }
        id::TASK_RAS_CONTROL => {
            serve_task_ras_control(server_, &header_, request_, reply_).await
        }
        id::VM_MAP => serve_vm_map(server_, &header_, request_, reply_).await,
        id::MEMORY_OBJECT_DATA_ERROR => {
            serve_memory_object_data_error(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_SET_ATTRIBUTES => {
            serve_memory_object_set_attributes(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_DESTROY => {
            serve_memory_object_destroy(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_DATA_SUPPLY => {
            serve_memory_object_data_supply(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_READY => {
            serve_memory_object_ready(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_CHANGE_ATTRIBUTES => {
            serve_memory_object_change_attributes(server_, &header_, request_, reply_)
                .await
        }
        id::MEMORY_OBJECT_SET_CLUSTER_SIZE => {
            serve_memory_object_set_cluster_size(server_, &header_, request_, reply_)
                .await
        }
        id::VM_MACHINE_ATTRIBUTE => {
            serve_vm_machine_attribute(server_, &header_, request_, reply_).await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_create<S: Server + Send>(
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
        let inherit_memory = reader_
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
        Some(inherit_memory)
    };
    let inherit_memory = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let child_task = server_.task_create(target_task, inherit_memory).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 19,
                bits: 64,
                number: 1,
                flags: 1,
            },
            child_task,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_terminate<S: Server + Send>(
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
    server_.task_terminate(target_task).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_get_emulation_vector<S: Server + Send>(
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
    let (vector_start, emulation_vector) = server_
        .task_get_emulation_vector(task)
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
            u64::from(vector_start),
            4,
        );
    writer_
        .describe(
            &Descriptor {
                name: 11,
                bits: 64,
                number: emulation_vector.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(emulation_vector.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_set_emulation_vector<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let vector_start = reader_
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
                    name: Some(11),
                    bits: 64,
                    number: Number::Any,
                    inline: Some(false),
                    long: true,
                },
            )?;
        let emulation_vector = reader_.pointer(descriptor_, 1)?;
        reader_.finish()?;
        Some((vector_start, emulation_vector))
    };
    let (vector_start, emulation_vector) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.task_set_emulation_vector(task, vector_start, emulation_vector).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_threads<S: Server + Send>(
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
    let thread_list = server_.task_threads(target_task).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 19,
                bits: 64,
                number: thread_list.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(thread_list.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_info<S: Server + Send>(
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
        let flavor = reader_
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
        let task_info_out_room = reader_.integer()?.min(1024) as usize;
        reader_.finish()?;
        Some((flavor, task_info_out_room))
    };
    let (flavor, task_info_out_room) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let task_info_out = server_
        .task_info(target_task, flavor, task_info_out_room)
        .await?;
    if task_info_out.len() > 1024 || task_info_out.len() > task_info_out_room * 1 {
        return Err(Status::ARRAY_TOO_LARGE);
    }
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: task_info_out.len() as u32,
                flags: 1,
            },
        );
    writer_.data(&task_info_out);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_terminate<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_terminate(target_thread).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_get_state<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        let flavor = reader_
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
        let old_state_room = reader_.integer()?.min(1024) as usize;
        reader_.finish()?;
        Some((flavor, old_state_room))
    };
    let (flavor, old_state_room) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let old_state = server_
        .thread_get_state(target_thread, flavor, old_state_room)
        .await?;
    if old_state.len() > 1024 || old_state.len() > old_state_room * 1 {
        return Err(Status::ARRAY_TOO_LARGE);
    }
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: old_state.len() as u32,
                flags: 1,
            },
        );
    writer_.data(&old_state);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_set_state<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        let flavor = reader_
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
                    number: Number::UpTo(1024),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let new_state = reader_.array::<u32, 1024>(descriptor_.number.checked_mul(1)?)?;
        reader_.finish()?;
        Some((flavor, new_state))
    };
    let (flavor, new_state) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_set_state(target_thread, flavor, new_state).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_info<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        let flavor = reader_
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
        let thread_info_out_room = reader_.integer()?.min(1024) as usize;
        reader_.finish()?;
        Some((flavor, thread_info_out_room))
    };
    let (flavor, thread_info_out_room) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let thread_info_out = server_
        .thread_info(target_thread, flavor, thread_info_out_room)
        .await?;
    if thread_info_out.len() > 1024 || thread_info_out.len() > thread_info_out_room * 1 {
        return Err(Status::ARRAY_TOO_LARGE);
    }
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: thread_info_out.len() as u32,
                flags: 1,
            },
        );
    writer_.data(&thread_info_out);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_allocate<S: Server + Send>(
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
        let anywhere = reader_
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
        Some((address, size, anywhere))
    };
    let (address, size, anywhere) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let address = server_.vm_allocate(target_task, address, size, anywhere).await?;
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
            address,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_deallocate<S: Server + Send>(
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
        reader_.finish()?;
        Some((address, size))
    };
    let (address, size) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.vm_deallocate(target_task, address, size).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_protect<S: Server + Send>(
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
        let set_maximum = reader_
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
        let new_protection = reader_
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
        Some((address, size, set_maximum, new_protection))
    };
    let (address, size, set_maximum, new_protection) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_.vm_protect(target_task, address, size, set_maximum, new_protection).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_inherit<S: Server + Send>(
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
        let new_inheritance = reader_
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
        Some((address, size, new_inheritance))
    };
    let (address, size, new_inheritance) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.vm_inherit(target_task, address, size, new_inheritance).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_read<S: Server + Send>(
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
        reader_.finish()?;
        Some((address, size))
    };
    let (address, size) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let data = server_.vm_read(target_task, address, size).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 9,
                bits: 8,
                number: data.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(data.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_write<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
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
        let data = reader_.pointer(descriptor_, 1)?;
        reader_.finish()?;
        Some((address, data))
    };
    let (address, data) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.vm_write(target_task, address, data).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_copy<S: Server + Send>(
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
        let source_address = reader_
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
        let dest_address = reader_
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
        Some((source_address, size, dest_address))
    };
    let (source_address, size, dest_address) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.vm_copy(target_task, source_address, size, dest_address).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_region<S: Server + Send>(
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
        reader_.finish()?;
        Some(address)
    };
    let address = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (
        address,
        size,
        protection,
        max_protection,
        inheritance,
        is_shared,
        object_name,
        offset,
    ) = server_.vm_region(target_task, address).await?;
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
            u64::from(protection),
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
            u64::from(max_protection),
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
            u64::from(inheritance),
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
            u64::from(is_shared),
            4,
        );
    writer_
        .value(
            &Descriptor {
                name: 17,
                bits: 64,
                number: 1,
                flags: 1,
            },
            object_name,
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
            offset,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_statistics<S: Server + Send>(
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
    let vm_stats = server_.vm_statistics(target_task).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: 13,
                flags: 1,
            },
        );
    writer_.data(&vm_stats);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_ports_register<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_task = header_.local;
    let read_ = move || {
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: Some(17),
                    bits: 64,
                    number: Number::Any,
                    inline: Some(false),
                    long: true,
                },
            )?;
        let init_port_set = reader_.pointer(descriptor_, 1)?;
        reader_.finish()?;
        Some(init_port_set)
    };
    let init_port_set = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_ports_register(target_task, init_port_set).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_ports_lookup<S: Server + Send>(
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
    let init_port_set = server_.mach_ports_lookup(target_task).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 19,
                bits: 64,
                number: init_port_set.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(init_port_set.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_data_provided<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
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
        let data = reader_.pointer(descriptor_, 1)?;
        let lock_value = reader_
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
        Some((offset, data, lock_value))
    };
    let (offset, data, lock_value) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.memory_object_data_provided(memory_control, offset, data, lock_value).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_data_unavailable<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
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
        reader_.finish()?;
        Some((offset, size))
    };
    let (offset, size) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.memory_object_data_unavailable(memory_control, offset, size).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_get_attributes<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (object_ready, may_cache, copy_strategy) = server_
        .memory_object_get_attributes(memory_control)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 0,
                bits: 32,
                number: 1,
                flags: 1,
            },
            u64::from(object_ready),
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
            u64::from(may_cache),
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
            u64::from(copy_strategy),
            4,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_set_default_memory_manager<S: Server + Send>(
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
        let default_manager = reader_
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
        Some(default_manager)
    };
    let default_manager = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let default_manager = server_
        .vm_set_default_memory_manager(host_priv, default_manager)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 20,
                bits: 64,
                number: 1,
                flags: 1,
            },
            default_manager,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_lock_request<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
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
        let should_return = reader_
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
        let lock_value = reader_
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
                    name: None,
                    bits: 64,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let reply_to_type = descriptor_.name;
        let reply_to = reader_.number(8)? as u64;
        reader_.finish()?;
        Some((
            offset,
            size,
            should_return,
            should_flush,
            lock_value,
            reply_to,
            reply_to_type,
        ))
    };
    let (
        offset,
        size,
        should_return,
        should_flush,
        lock_value,
        reply_to,
        reply_to_type,
    ) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_lock_request(
            memory_control,
            offset,
            size,
            should_return,
            should_flush,
            lock_value,
            reply_to,
            reply_to_type,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_suspend<S: Server + Send>(
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
    server_.task_suspend(target_task).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_resume<S: Server + Send>(
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
    server_.task_resume(target_task).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_get_special_port<S: Server + Send>(
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
        let which_port = reader_
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
        Some(which_port)
    };
    let which_port = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let special_port = server_.task_get_special_port(task, which_port).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 19,
                bits: 64,
                number: 1,
                flags: 1,
            },
            special_port,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_set_special_port<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let which_port = reader_
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
        let special_port = reader_
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
        Some((which_port, special_port))
    };
    let (which_port, special_port) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.task_set_special_port(task, which_port, special_port).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_create<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let parent_task = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let child_thread = server_.thread_create(parent_task).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 19,
                bits: 64,
                number: 1,
                flags: 1,
            },
            child_thread,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_suspend<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_suspend(target_thread).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_resume<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_resume(target_thread).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_abort<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_abort(target_thread).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_get_special_port<S: Server + Send>(
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
        let which_port = reader_
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
        Some(which_port)
    };
    let which_port = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let special_port = server_.thread_get_special_port(thread, which_port).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 19,
                bits: 64,
                number: 1,
                flags: 1,
            },
            special_port,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_set_special_port<S: Server + Send>(
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
        let which_port = reader_
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
        let special_port = reader_
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
        Some((which_port, special_port))
    };
    let (which_port, special_port) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_set_special_port(thread, which_port, special_port).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_set_emulation<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_port = header_.local;
    let read_ = move || {
        let routine_entry_pt = reader_
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
        let routine_number = reader_
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
        Some((routine_entry_pt, routine_number))
    };
    let (routine_entry_pt, routine_number) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.task_set_emulation(target_port, routine_entry_pt, routine_number).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_ras_control<S: Server + Send>(
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
        let basepc = reader_
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
        let boundspc = reader_
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
        let flavor = reader_
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
        Some((basepc, boundspc, flavor))
    };
    let (basepc, boundspc, flavor) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.task_ras_control(target_task, basepc, boundspc, flavor).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_map<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
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
        let mask = reader_
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
        let anywhere = reader_
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
        let memory_object = reader_
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
        let copy = reader_
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
        let cur_protection = reader_
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
        let max_protection = reader_
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
        let inheritance = reader_
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
        Some((
            address,
            size,
            mask,
            anywhere,
            memory_object,
            offset,
            copy,
            cur_protection,
            max_protection,
            inheritance,
        ))
    };
    let (
        address,
        size,
        mask,
        anywhere,
        memory_object,
        offset,
        copy,
        cur_protection,
        max_protection,
        inheritance,
    ) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let address = server_
        .vm_map(
            target_task,
            address,
            size,
            mask,
            anywhere,
            memory_object,
            offset,
            copy,
            cur_protection,
            max_protection,
            inheritance,
        )
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
            address,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_data_error<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
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
        let error_value = reader_
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
        Some((offset, size, error_value))
    };
    let (offset, size, error_value) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.memory_object_data_error(memory_control, offset, size, error_value).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_set_attributes<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
    let read_ = move || {
        let object_ready = reader_
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
        let may_cache = reader_
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
        let copy_strategy = reader_
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
        Some((object_ready, may_cache, copy_strategy))
    };
    let (object_ready, may_cache, copy_strategy) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_set_attributes(
            memory_control,
            object_ready,
            may_cache,
            copy_strategy,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_destroy<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
    let read_ = move || {
        let reason = reader_
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
        Some(reason)
    };
    let reason = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.memory_object_destroy(memory_control, reason).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_data_supply<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
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
        let data = reader_.pointer(descriptor_, 1)?;
        let lock_value = reader_
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
        let precious = reader_
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
        let reply_to_type = descriptor_.name;
        let reply_to = reader_.number(8)? as u64;
        reader_.finish()?;
        Some((offset, data, lock_value, precious, reply_to, reply_to_type))
    };
    let (offset, data, lock_value, precious, reply_to, reply_to_type) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_data_supply(
            memory_control,
            offset,
            data,
            lock_value,
            precious,
            reply_to,
            reply_to_type,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_ready<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
    let read_ = move || {
        let may_cache = reader_
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
        let copy_strategy = reader_
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
        Some((may_cache, copy_strategy))
    };
    let (may_cache, copy_strategy) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.memory_object_ready(memory_control, may_cache, copy_strategy).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_change_attributes<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
    let read_ = move || {
        let may_cache = reader_
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
        let copy_strategy = reader_
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
                    name: None,
                    bits: 64,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let reply_to_type = descriptor_.name;
        let reply_to = reader_.number(8)? as u64;
        reader_.finish()?;
        Some((may_cache, copy_strategy, reply_to, reply_to_type))
    };
    let (may_cache, copy_strategy, reply_to, reply_to_type) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_change_attributes(
            memory_control,
            may_cache,
            copy_strategy,
            reply_to,
            reply_to_type,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_set_cluster_size<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_control = header_.local;
    let read_ = move || {
        let cluster_size = reader_
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
        Some(cluster_size)
    };
    let cluster_size = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.memory_object_set_cluster_size(memory_control, cluster_size).await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_machine_attribute<S: Server + Send>(
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
        let attribute = reader_
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
        let value = reader_
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
        Some((address, size, attribute, value))
    };
    let (address, size, attribute, value) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let value = server_
        .vm_machine_attribute(target_task, address, size, attribute, value)
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
            u64::from(value),
            4,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
