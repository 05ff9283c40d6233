// Written by mig from the definition of `mach_host`. Do not edit.

/// Mach's calls on the host, its processors and processor sets, and on scheduling.
#[allow(unused_imports, reason = "not every interface needs everything")]
use message::{
    Array, Call, Data, Descriptor, Error, Expected, Format, Header, Memory, Number,
    Reader, Request, Status, AsyncTransport, Writer,
};
/// The layout of messages.
pub const FORMAT: Format = Format::MACH64;
/// Bytes of the largest reply.
pub const REPLY_BYTES: usize = 4168;
/// Ids of requests.
pub mod id {
    /// [`host_processors`](super::Server::host_processors).
    pub const HOST_PROCESSORS: u32 = 2600;
    /// [`processor_start`](super::Server::processor_start).
    pub const PROCESSOR_START: u32 = 2603;
    /// [`processor_exit`](super::Server::processor_exit).
    pub const PROCESSOR_EXIT: u32 = 2604;
    /// [`processor_set_default`](super::Server::processor_set_default).
    pub const PROCESSOR_SET_DEFAULT: u32 = 2606;
    /// [`processor_set_create`](super::Server::processor_set_create).
    pub const PROCESSOR_SET_CREATE: u32 = 2608;
    /// [`processor_set_destroy`](super::Server::processor_set_destroy).
    pub const PROCESSOR_SET_DESTROY: u32 = 2609;
    /// [`processor_assign`](super::Server::processor_assign).
    pub const PROCESSOR_ASSIGN: u32 = 2611;
    /// [`processor_get_assignment`](super::Server::processor_get_assignment).
    pub const PROCESSOR_GET_ASSIGNMENT: u32 = 2612;
    /// [`thread_assign`](super::Server::thread_assign).
    pub const THREAD_ASSIGN: u32 = 2613;
    /// [`thread_assign_default`](super::Server::thread_assign_default).
    pub const THREAD_ASSIGN_DEFAULT: u32 = 2614;
    /// [`thread_get_assignment`](super::Server::thread_get_assignment).
    pub const THREAD_GET_ASSIGNMENT: u32 = 2615;
    /// [`task_assign`](super::Server::task_assign).
    pub const TASK_ASSIGN: u32 = 2616;
    /// [`task_assign_default`](super::Server::task_assign_default).
    pub const TASK_ASSIGN_DEFAULT: u32 = 2617;
    /// [`task_get_assignment`](super::Server::task_get_assignment).
    pub const TASK_GET_ASSIGNMENT: u32 = 2618;
    /// [`thread_priority`](super::Server::thread_priority).
    pub const THREAD_PRIORITY: u32 = 2620;
    /// [`thread_max_priority`](super::Server::thread_max_priority).
    pub const THREAD_MAX_PRIORITY: u32 = 2621;
    /// [`task_priority`](super::Server::task_priority).
    pub const TASK_PRIORITY: u32 = 2622;
    /// [`processor_set_max_priority`](super::Server::processor_set_max_priority).
    pub const PROCESSOR_SET_MAX_PRIORITY: u32 = 2623;
    /// [`thread_policy`](super::Server::thread_policy).
    pub const THREAD_POLICY: u32 = 2624;
    /// [`processor_set_policy_enable`](super::Server::processor_set_policy_enable).
    pub const PROCESSOR_SET_POLICY_ENABLE: u32 = 2625;
    /// [`processor_set_policy_disable`](super::Server::processor_set_policy_disable).
    pub const PROCESSOR_SET_POLICY_DISABLE: u32 = 2626;
    /// [`processor_set_tasks`](super::Server::processor_set_tasks).
    pub const PROCESSOR_SET_TASKS: u32 = 2627;
    /// [`processor_set_threads`](super::Server::processor_set_threads).
    pub const PROCESSOR_SET_THREADS: u32 = 2628;
    /// [`host_processor_sets`](super::Server::host_processor_sets).
    pub const HOST_PROCESSOR_SETS: u32 = 2629;
    /// [`host_processor_set_priv`](super::Server::host_processor_set_priv).
    pub const HOST_PROCESSOR_SET_PRIV: u32 = 2630;
    /// [`thread_depress_abort`](super::Server::thread_depress_abort).
    pub const THREAD_DEPRESS_ABORT: u32 = 2631;
    /// [`host_set_time`](super::Server::host_set_time).
    pub const HOST_SET_TIME: u32 = 2632;
    /// [`host_adjust_time`](super::Server::host_adjust_time).
    pub const HOST_ADJUST_TIME: u32 = 2633;
    /// [`host_get_time`](super::Server::host_get_time).
    pub const HOST_GET_TIME: u32 = 2634;
    /// [`host_reboot`](super::Server::host_reboot).
    pub const HOST_REBOOT: u32 = 2635;
    /// [`vm_wire`](super::Server::vm_wire).
    pub const VM_WIRE: u32 = 2636;
    /// [`thread_wire`](super::Server::thread_wire).
    pub const THREAD_WIRE: u32 = 2637;
    /// [`host_info`](super::Server::host_info).
    pub const HOST_INFO: u32 = 2638;
    /// [`processor_info`](super::Server::processor_info).
    pub const PROCESSOR_INFO: u32 = 2639;
    /// [`processor_set_info`](super::Server::processor_set_info).
    pub const PROCESSOR_SET_INFO: u32 = 2640;
    /// [`processor_control`](super::Server::processor_control).
    pub const PROCESSOR_CONTROL: u32 = 2641;
    /// [`host_get_time64`](super::Server::host_get_time64).
    pub const HOST_GET_TIME64: u32 = 2643;
    /// [`host_set_time64`](super::Server::host_set_time64).
    pub const HOST_SET_TIME64: u32 = 2644;
    /// [`host_adjust_time64`](super::Server::host_adjust_time64).
    pub const HOST_ADJUST_TIME64: u32 = 2645;
    /// [`host_get_kernel_version`](super::Server::host_get_kernel_version).
    pub const HOST_GET_KERNEL_VERSION: u32 = 2646;
    /// [`host_get_uptime64`](super::Server::host_get_uptime64).
    pub const HOST_GET_UPTIME64: u32 = 2647;
    /// [`processor_set_processors`](super::Server::processor_set_processors).
    pub const PROCESSOR_SET_PROCESSORS: u32 = 2648;
    /// [`task_max_priority`](super::Server::task_max_priority).
    pub const TASK_MAX_PRIORITY: u32 = 2649;
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
    /// The control ports of all processors.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_processors(&mut self) -> Result<Memory, Error> {
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
                    id: id::HOST_PROCESSORS,
                    reply_port: None,
                    reply: Some(2700),
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
            let processor_list = reader_.pointer(descriptor_, 1)?;
            reader_.finish()?;
            Some(processor_list)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Starts a processor.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_start(&mut self) -> Result<(), Error> {
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
                    id: id::PROCESSOR_START,
                    reply_port: None,
                    reply: Some(2703),
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
    /// Stops a processor.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_exit(&mut self) -> Result<(), Error> {
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
                    id: id::PROCESSOR_EXIT,
                    reply_port: None,
                    reply: Some(2704),
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
    /// The name port of the default processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_default(&mut self) -> Result<u64, Error> {
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
                    id: id::PROCESSOR_SET_DEFAULT,
                    reply_port: None,
                    reply: Some(2706),
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
            let default_set = reader_
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
            Some(default_set)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Makes a processor set without processors.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_create(&mut self) -> Result<(u64, u64), Error> {
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
                    id: id::PROCESSOR_SET_CREATE,
                    reply_port: None,
                    reply: Some(2708),
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
            let new_set = reader_
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
            let new_name = reader_
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
            Some((new_set, new_name))
        };
        read_().ok_or(Error::TypeError)
    }
    /// Ends a processor set. Its processors, tasks and threads go to the default set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_destroy(&mut self) -> Result<(), Error> {
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
                    id: id::PROCESSOR_SET_DESTROY,
                    reply_port: None,
                    reply: Some(2709),
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
    /// Moves a processor into a processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_assign(
        &mut self,
        new_set: u64,
        wait: u32,
    ) -> Result<(), Error> {
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
                new_set,
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
                u64::from(wait),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::PROCESSOR_ASSIGN,
                    reply_port: None,
                    reply: Some(2711),
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
    /// The processor set of a processor.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_get_assignment(&mut self) -> Result<u64, Error> {
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
                    id: id::PROCESSOR_GET_ASSIGNMENT,
                    reply_port: None,
                    reply: Some(2712),
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
            let assigned_set = reader_
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
            Some(assigned_set)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Assigns a thread to a processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_assign(&mut self, new_set: u64) -> Result<(), Error> {
        let mut message_ = [0; 48];
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
                new_set,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_ASSIGN,
                    reply_port: None,
                    reply: Some(2713),
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
    /// Assigns a thread to the default processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_assign_default(&mut self) -> Result<(), Error> {
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
                    id: id::THREAD_ASSIGN_DEFAULT,
                    reply_port: None,
                    reply: Some(2714),
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
    /// The processor set of a thread.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_get_assignment(&mut self) -> Result<u64, Error> {
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
                    id: id::THREAD_GET_ASSIGNMENT,
                    reply_port: None,
                    reply: Some(2715),
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
            let assigned_set = reader_
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
            Some(assigned_set)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Assigns a task, and with assign_threads also its threads, to a processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_assign(
        &mut self,
        new_set: u64,
        assign_threads: u32,
    ) -> Result<(), Error> {
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
                new_set,
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
                u64::from(assign_threads),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_ASSIGN,
                    reply_port: None,
                    reply: Some(2716),
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
    /// Assigns a task, and with assign_threads also its threads, to the default processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_assign_default(
        &mut self,
        assign_threads: u32,
    ) -> Result<(), Error> {
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
                u64::from(assign_threads),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_ASSIGN_DEFAULT,
                    reply_port: None,
                    reply: Some(2717),
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
    /// The processor set of a task.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_get_assignment(&mut self) -> Result<u64, Error> {
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
                    id: id::TASK_GET_ASSIGNMENT,
                    reply_port: None,
                    reply: Some(2718),
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
            let assigned_set = reader_
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
            Some(assigned_set)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets a thread's base priority, and with set_max its most urgent one.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_priority(
        &mut self,
        priority: u32,
        set_max: u32,
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
                u64::from(priority),
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
                u64::from(set_max),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_PRIORITY,
                    reply_port: None,
                    reply: Some(2720),
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
    /// Sets a thread's most urgent priority. The caller has the control port of its processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_max_priority(
        &mut self,
        processor_set: u64,
        max_priority: u32,
    ) -> Result<(), Error> {
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
                processor_set,
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
                u64::from(max_priority),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_MAX_PRIORITY,
                    reply_port: None,
                    reply: Some(2721),
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
    /// Sets the priority of a task's new threads, and with change_threads of all its threads.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_priority(
        &mut self,
        priority: u32,
        change_threads: u32,
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
                u64::from(priority),
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
                u64::from(change_threads),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_PRIORITY,
                    reply_port: None,
                    reply: Some(2722),
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
    /// Sets the most urgent priority of new threads of a set, and with change_threads of all its
    /// threads.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_max_priority(
        &mut self,
        max_priority: u32,
        change_threads: u32,
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
                u64::from(max_priority),
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
                u64::from(change_threads),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::PROCESSOR_SET_MAX_PRIORITY,
                    reply_port: None,
                    reply: Some(2723),
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
    /// Sets a thread's scheduling policy: 1 time sharing, 2 fixed priority with a time slice of
    /// data milliseconds.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_policy(&mut self, policy: u32, data: u32) -> Result<(), Error> {
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
                u64::from(policy),
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
                u64::from(data),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_POLICY,
                    reply_port: None,
                    reply: Some(2724),
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
    /// Allows a scheduling policy to the threads of a processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_policy_enable(
        &mut self,
        policy: u32,
    ) -> Result<(), Error> {
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
                u64::from(policy),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::PROCESSOR_SET_POLICY_ENABLE,
                    reply_port: None,
                    reply: Some(2725),
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
    /// Forbids a scheduling policy to the threads of a processor set. With change_threads, threads
    /// that have it get time sharing.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_policy_disable(
        &mut self,
        policy: u32,
        change_threads: u32,
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
                u64::from(policy),
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
                u64::from(change_threads),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::PROCESSOR_SET_POLICY_DISABLE,
                    reply_port: None,
                    reply: Some(2726),
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
    /// The tasks of a processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_tasks(&mut self) -> Result<Memory, Error> {
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
                    id: id::PROCESSOR_SET_TASKS,
                    reply_port: None,
                    reply: Some(2727),
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
            let task_list = reader_.pointer(descriptor_, 1)?;
            reader_.finish()?;
            Some(task_list)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The threads of a processor set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_threads(&mut self) -> Result<Memory, Error> {
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
                    id: id::PROCESSOR_SET_THREADS,
                    reply_port: None,
                    reply: Some(2728),
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
    /// The name ports of all processor sets.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_processor_sets(&mut self) -> Result<Memory, Error> {
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
                    id: id::HOST_PROCESSOR_SETS,
                    reply_port: None,
                    reply: Some(2729),
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
            let processor_sets = reader_.pointer(descriptor_, 1)?;
            reader_.finish()?;
            Some(processor_sets)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The control port of a processor set whose name port the caller has.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_processor_set_priv(
        &mut self,
        set_name: u64,
    ) -> Result<u64, Error> {
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
                set_name,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_PROCESSOR_SET_PRIV,
                    reply_port: None,
                    reply: Some(2730),
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
            let set = reader_
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
            Some(set)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Ends a depression of a thread's priority.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_depress_abort(&mut self) -> Result<(), Error> {
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
                    id: id::THREAD_DEPRESS_ABORT,
                    reply_port: None,
                    reply: Some(2731),
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
    /// Sets the time of day.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_set_time(&mut self, new_time: &[u64; 2]) -> Result<(), Error> {
        let mut message_ = [0; 56];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .describe(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 2,
                    flags: 1,
                },
            );
        writer_.data(new_time);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_SET_TIME,
                    reply_port: None,
                    reply: Some(2732),
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
    /// Corrects the time of day gradually, and returns what was left of the last correction.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_adjust_time(
        &mut self,
        new_adjustment: &[u64; 2],
    ) -> Result<[u64; 2], Error> {
        let mut message_ = [0; 72];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .describe(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 2,
                    flags: 1,
                },
            );
        writer_.data(new_adjustment);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_ADJUST_TIME,
                    reply_port: None,
                    reply: Some(2733),
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
                        name: Some(11),
                        bits: 64,
                        number: Number::Exactly(2),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let old_adjustment = reader_.elements::<u64, 2>()?;
            reader_.finish()?;
            Some(old_adjustment)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The time of day.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_get_time(&mut self) -> Result<[u64; 2], Error> {
        let mut message_ = [0; 72];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_GET_TIME,
                    reply_port: None,
                    reply: Some(2734),
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
                        name: Some(11),
                        bits: 64,
                        number: Number::Exactly(2),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let current_time = reader_.elements::<u64, 2>()?;
            reader_.finish()?;
            Some(current_time)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Halts or restarts the machine.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_reboot(&mut self, options: u32) -> Result<(), Error> {
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
                u64::from(options),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_REBOOT,
                    reply_port: None,
                    reply: Some(2735),
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
    /// Keeps a range of memory resident. No access: ends that.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_wire(
        &mut self,
        task: u64,
        address: u64,
        size: u64,
        access: u32,
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
                u64::from(access),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_WIRE,
                    reply_port: None,
                    reply: Some(2736),
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
    /// Gives a thread the privilege to use reserved memory.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn thread_wire(&mut self, thread: u64, wired: u32) -> Result<(), Error> {
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
                thread,
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
                u64::from(wired),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::THREAD_WIRE,
                    reply_port: None,
                    reply: Some(2737),
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
    /// Information about the host. flavor: 1 basic, 2 processor slots, 3 scheduling, 4 load.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_info(&mut self, flavor: u32) -> Result<Array<u32, 1024>, Error> {
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
                    id: id::HOST_INFO,
                    reply_port: None,
                    reply: Some(2738),
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
            let host_info_out = reader_
                .array::<u32, 1024>(descriptor_.number.checked_mul(1)?)?;
            reader_.finish()?;
            Some(host_info_out)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Information about a processor.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_info(
        &mut self,
        flavor: u32,
    ) -> Result<(u64, Array<u32, 1024>), Error> {
        let mut message_ = [0; 4168];
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
                    id: id::PROCESSOR_INFO,
                    reply_port: None,
                    reply: Some(2739),
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
            let host = reader_
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
            let processor_info_out = reader_
                .array::<u32, 1024>(descriptor_.number.checked_mul(1)?)?;
            reader_.finish()?;
            Some((host, processor_info_out))
        };
        read_().ok_or(Error::TypeError)
    }
    /// Information about a processor set. flavor: 1 basic, 2 scheduling.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_info(
        &mut self,
        flavor: u32,
    ) -> Result<(u64, Array<u32, 1024>), Error> {
        let mut message_ = [0; 4168];
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
                    id: id::PROCESSOR_SET_INFO,
                    reply_port: None,
                    reply: Some(2740),
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
            let host = reader_
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
            let info_out = reader_
                .array::<u32, 1024>(descriptor_.number.checked_mul(1)?)?;
            reader_.finish()?;
            Some((host, info_out))
        };
        read_().ok_or(Error::TypeError)
    }
    /// A command to a processor that depends on the machine.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_control(
        &mut self,
        processor_cmd: &[u32],
    ) -> Result<(), Error> {
        if processor_cmd.len() > 1024 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        let mut message_ = [0; 4136];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .describe(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: processor_cmd.len() as u32,
                    flags: 1,
                },
            );
        writer_.data(processor_cmd);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::PROCESSOR_CONTROL,
                    reply_port: None,
                    reply: Some(2741),
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
    /// The time of day with nanoseconds.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_get_time64(&mut self) -> Result<[u64; 2], Error> {
        let mut message_ = [0; 72];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_GET_TIME64,
                    reply_port: None,
                    reply: Some(2743),
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
                        name: Some(11),
                        bits: 64,
                        number: Number::Exactly(2),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let current_time = reader_.elements::<u64, 2>()?;
            reader_.finish()?;
            Some(current_time)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets the time of day with nanoseconds.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_set_time64(&mut self, new_time: &[u64; 2]) -> Result<(), Error> {
        let mut message_ = [0; 56];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .describe(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 2,
                    flags: 1,
                },
            );
        writer_.data(new_time);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_SET_TIME64,
                    reply_port: None,
                    reply: Some(2744),
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
    /// Corrects the time of day gradually, and returns what was left of the last correction.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_adjust_time64(
        &mut self,
        new_adjustment: &[u64; 2],
    ) -> Result<[u64; 2], Error> {
        let mut message_ = [0; 72];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .describe(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 2,
                    flags: 1,
                },
            );
        writer_.data(new_adjustment);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_ADJUST_TIME64,
                    reply_port: None,
                    reply: Some(2745),
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
                        name: Some(11),
                        bits: 64,
                        number: Number::Exactly(2),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let old_adjustment = reader_.elements::<u64, 2>()?;
            reader_.finish()?;
            Some(old_adjustment)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The name and the version of the system.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_get_kernel_version(&mut self) -> Result<Array<u8, 512>, Error> {
        let mut message_ = [0; 568];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_GET_KERNEL_VERSION,
                    reply_port: None,
                    reply: Some(2746),
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
                        name: Some(12),
                        bits: 8,
                        number: Number::Exactly(512),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let kernel_version = reader_.text::<512>(512)?;
            reader_.finish()?;
            Some(kernel_version)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The time since the machine started.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn host_get_uptime64(&mut self) -> Result<[u64; 2], Error> {
        let mut message_ = [0; 72];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::HOST_GET_UPTIME64,
                    reply_port: None,
                    reply: Some(2747),
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
                        name: Some(11),
                        bits: 64,
                        number: Number::Exactly(2),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let uptime = reader_.elements::<u64, 2>()?;
            reader_.finish()?;
            Some(uptime)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The name ports of the processors of a set.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn processor_set_processors(&mut self) -> Result<Memory, Error> {
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
                    id: id::PROCESSOR_SET_PROCESSORS,
                    reply_port: None,
                    reply: Some(2748),
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
            let processors_list = reader_.pointer(descriptor_, 1)?;
            reader_.finish()?;
            Some(processors_list)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets the most urgent priority of a task, and as the flags say its priority and that of its
    /// threads.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn task_max_priority(
        &mut self,
        task: u64,
        max_priority: u32,
        set_priority: u32,
        change_threads: u32,
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
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(max_priority),
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
                u64::from(set_priority),
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
                u64::from(change_threads),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::TASK_MAX_PRIORITY,
                    reply_port: None,
                    reply: Some(2749),
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
    /// The control ports of all processors.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_processors(
        &mut self,
        host_priv: u64,
    ) -> impl Future<Output = Result<Memory, Status>> + Send;
    /// Starts a processor.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_start(
        &mut self,
        processor: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Stops a processor.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_exit(
        &mut self,
        processor: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The name port of the default processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_default(
        &mut self,
        host: u64,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Makes a processor set without processors.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_create(
        &mut self,
        host: u64,
    ) -> impl Future<Output = Result<(u64, u64), Status>> + Send;
    /// Ends a processor set. Its processors, tasks and threads go to the default set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_destroy(
        &mut self,
        set: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Moves a processor into a processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_assign(
        &mut self,
        processor: u64,
        new_set: u64,
        wait: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The processor set of a processor.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_get_assignment(
        &mut self,
        processor: u64,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Assigns a thread to a processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_assign(
        &mut self,
        thread: u64,
        new_set: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Assigns a thread to the default processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_assign_default(
        &mut self,
        thread: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The processor set of a thread.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_get_assignment(
        &mut self,
        thread: u64,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Assigns a task, and with assign_threads also its threads, to a processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_assign(
        &mut self,
        task: u64,
        new_set: u64,
        assign_threads: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Assigns a task, and with assign_threads also its threads, to the default processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_assign_default(
        &mut self,
        task: u64,
        assign_threads: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The processor set of a task.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_get_assignment(
        &mut self,
        task: u64,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Sets a thread's base priority, and with set_max its most urgent one.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_priority(
        &mut self,
        thread: u64,
        priority: u32,
        set_max: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets a thread's most urgent priority. The caller has the control port of its processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_max_priority(
        &mut self,
        thread: u64,
        processor_set: u64,
        max_priority: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets the priority of a task's new threads, and with change_threads of all its threads.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_priority(
        &mut self,
        task: u64,
        priority: u32,
        change_threads: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets the most urgent priority of new threads of a set, and with change_threads of all its
    /// threads.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_max_priority(
        &mut self,
        processor_set: u64,
        max_priority: u32,
        change_threads: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets a thread's scheduling policy: 1 time sharing, 2 fixed priority with a time slice of
    /// data milliseconds.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_policy(
        &mut self,
        thread: u64,
        policy: u32,
        data: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Allows a scheduling policy to the threads of a processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_policy_enable(
        &mut self,
        processor_set: u64,
        policy: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Forbids a scheduling policy to the threads of a processor set. With change_threads, threads
    /// that have it get time sharing.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_policy_disable(
        &mut self,
        processor_set: u64,
        policy: u32,
        change_threads: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The tasks of a processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_tasks(
        &mut self,
        processor_set: u64,
    ) -> impl Future<Output = Result<Memory, Status>> + Send;
    /// The threads of a processor set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_threads(
        &mut self,
        processor_set: u64,
    ) -> impl Future<Output = Result<Memory, Status>> + Send;
    /// The name ports of all processor sets.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_processor_sets(
        &mut self,
        host: u64,
    ) -> impl Future<Output = Result<Memory, Status>> + Send;
    /// The control port of a processor set whose name port the caller has.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_processor_set_priv(
        &mut self,
        host_priv: u64,
        set_name: u64,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Ends a depression of a thread's priority.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_depress_abort(
        &mut self,
        thread: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets the time of day.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_set_time(
        &mut self,
        host_priv: u64,
        new_time: [u64; 2],
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Corrects the time of day gradually, and returns what was left of the last correction.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_adjust_time(
        &mut self,
        host_priv: u64,
        new_adjustment: [u64; 2],
    ) -> impl Future<Output = Result<[u64; 2], Status>> + Send;
    /// The time of day.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_get_time(
        &mut self,
        host: u64,
    ) -> impl Future<Output = Result<[u64; 2], Status>> + Send;
    /// Halts or restarts the machine.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_reboot(
        &mut self,
        host_priv: u64,
        options: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Keeps a range of memory resident. No access: ends that.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_wire(
        &mut self,
        host: u64,
        task: u64,
        address: u64,
        size: u64,
        access: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Gives a thread the privilege to use reserved memory.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn thread_wire(
        &mut self,
        host_priv: u64,
        thread: u64,
        wired: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Information about the host. flavor: 1 basic, 2 processor slots, 3 scheduling, 4 load.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_info(
        &mut self,
        host: u64,
        flavor: u32,
        host_info_out_room: usize,
    ) -> impl Future<Output = Result<Array<u32, 1024>, Status>> + Send;
    /// Information about a processor.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_info(
        &mut self,
        processor: u64,
        flavor: u32,
        processor_info_out_room: usize,
    ) -> impl Future<Output = Result<(u64, Array<u32, 1024>), Status>> + Send;
    /// Information about a processor set. flavor: 1 basic, 2 scheduling.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_info(
        &mut self,
        set_name: u64,
        flavor: u32,
        info_out_room: usize,
    ) -> impl Future<Output = Result<(u64, Array<u32, 1024>), Status>> + Send;
    /// A command to a processor that depends on the machine.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_control(
        &mut self,
        processor: u64,
        processor_cmd: Array<u32, 1024>,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The time of day with nanoseconds.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_get_time64(
        &mut self,
        host: u64,
    ) -> impl Future<Output = Result<[u64; 2], Status>> + Send;
    /// Sets the time of day with nanoseconds.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_set_time64(
        &mut self,
        host_priv: u64,
        new_time: [u64; 2],
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Corrects the time of day gradually, and returns what was left of the last correction.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_adjust_time64(
        &mut self,
        host_priv: u64,
        new_adjustment: [u64; 2],
    ) -> impl Future<Output = Result<[u64; 2], Status>> + Send;
    /// The name and the version of the system.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_get_kernel_version(
        &mut self,
        host: u64,
    ) -> impl Future<Output = Result<Array<u8, 512>, Status>> + Send;
    /// The time since the machine started.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn host_get_uptime64(
        &mut self,
        host: u64,
    ) -> impl Future<Output = Result<[u64; 2], Status>> + Send;
    /// The name ports of the processors of a set.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn processor_set_processors(
        &mut self,
        set_name: u64,
    ) -> impl Future<Output = Result<Memory, Status>> + Send;
    /// Sets the most urgent priority of a task, and as the flags say its priority and that of its
    /// threads.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn task_max_priority(
        &mut self,
        host: u64,
        task: u64,
        max_priority: u32,
        set_priority: u32,
        change_threads: u32,
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
        id::HOST_PROCESSORS => {
            serve_host_processors(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_START => {
            serve_processor_start(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_EXIT => {
            serve_processor_exit(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_DEFAULT => {
            serve_processor_set_default(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_CREATE => {
            serve_processor_set_create(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_DESTROY => {
            serve_processor_set_destroy(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_ASSIGN => {
            serve_processor_assign(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_GET_ASSIGNMENT => {
            serve_processor_get_assignment(server_, &header_, request_, reply_).await
        }
        id::THREAD_ASSIGN => {
            serve_thread_assign(server_, &header_, request_, reply_).await
        }
        id::THREAD_ASSIGN_DEFAULT => {
            serve_thread_assign_default(server_, &header_, request_, reply_).await
        }
        id::THREAD_GET_ASSIGNMENT => {
            serve_thread_get_assignment(server_, &header_, request_, reply_).await
        }
        id::TASK_ASSIGN => serve_task_assign(server_, &header_, request_, reply_).await,
        id::TASK_ASSIGN_DEFAULT => {
            serve_task_assign_default(server_, &header_, request_, reply_).await
        }
        id::TASK_GET_ASSIGNMENT => {
            serve_task_get_assignment(server_, &header_, request_, reply_).await
        }
        id::THREAD_PRIORITY => {
            serve_thread_priority(server_, &header_, request_, reply_).await
        }
        id::THREAD_MAX_PRIORITY => {
            serve_thread_max_priority(server_, &header_, request_, reply_).await
        }
        id::TASK_PRIORITY => {
            serve_task_priority(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_MAX_PRIORITY => {
            serve_processor_set_max_priority(server_, &header_, request_, reply_).await
        }
        id::THREAD_POLICY => {
            serve_thread_policy(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_POLICY_ENABLE => {
            serve_processor_set_policy_enable(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_POLICY_DISABLE => {
            serve_processor_set_policy_disable(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_TASKS => {
            serve_processor_set_tasks(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_THREADS => {
            serve_processor_set_threads(server_, &header_, request_, reply_).await
        }
        id::HOST_PROCESSOR_SETS => {
            serve_host_processor_sets(server_, &header_, request_, reply_).await
        }
        id::HOST_PROCESSOR_SET_PRIV => {
            serve_host_processor_set_priv(server_, &header_, request_, reply_).await
        }
        id::THREAD_DEPRESS_ABORT => {
            serve_thread_depress_abort(server_, &header_, request_, reply_).await
        }
        id::HOST_SET_TIME => {
            serve_host_set_time(server_, &header_, request_, reply_).await
        }
        id::HOST_ADJUST_TIME => {
            serve_host_adjust_time(server_, &header_, request_, reply_).await
        }
        id::HOST_GET_TIME => {
            serve_host_get_time(server_, &header_, request_, reply_).await
        }
        id::HOST_REBOOT => serve_host_reboot(server_, &header_, request_, reply_).await,
        id::VM_WIRE => serve_vm_wire(server_, &header_, request_, reply_).await,
        id::THREAD_WIRE => serve_thread_wire(server_, &header_, request_, reply_).await,
        id::HOST_INFO => serve_host_info(server_, &header_, request_, reply_).await,
        id::PROCESSOR_INFO => {
            serve_processor_info(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_INFO => {
            serve_processor_set_info(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_CONTROL => {
            serve_processor_control(server_, &header_, request_, reply_).await
        }
        id::HOST_GET_TIME64 => {
            serve_host_get_time64(server_, &header_, request_, reply_).await
        }
        id::HOST_SET_TIME64 => {
            serve_host_set_time64(server_, &header_, request_, reply_).await
        }
        id::HOST_ADJUST_TIME64 => {
            serve_host_adjust_time64(server_, &header_, request_, reply_).await
        }
        id::HOST_GET_KERNEL_VERSION => {
            serve_host_get_kernel_version(server_, &header_, request_, reply_).await
        }
        id::HOST_GET_UPTIME64 => {
            serve_host_get_uptime64(server_, &header_, request_, reply_).await
        }
        id::PROCESSOR_SET_PROCESSORS => {
            serve_processor_set_processors(server_, &header_, request_, reply_).await
        }
        id::TASK_MAX_PRIORITY => {
            serve_task_max_priority(server_, &header_, request_, reply_).await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_processors<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host_priv = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let processor_list = server_.host_processors(host_priv).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 19,
                bits: 64,
                number: processor_list.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(processor_list.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_start<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.processor_start(processor).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_exit<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.processor_exit(processor).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_default<S: Server + Send>(
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
    let default_set = server_.processor_set_default(host).await?;
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
            default_set,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_create<S: Server + Send>(
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
    let (new_set, new_name) = server_.processor_set_create(host).await?;
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
            new_set,
            8,
        );
    writer_
        .value(
            &Descriptor {
                name: 19,
                bits: 64,
                number: 1,
                flags: 1,
            },
            new_name,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_destroy<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let set = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.processor_set_destroy(set).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_assign<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor = header_.local;
    let read_ = move || {
        let new_set = reader_
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
        let wait = reader_
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
        Some((new_set, wait))
    };
    let (new_set, wait) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.processor_assign(processor, new_set, wait).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_get_assignment<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let assigned_set = server_.processor_get_assignment(processor).await?;
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
            assigned_set,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_assign<S: Server + Send>(
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
        let new_set = reader_
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
        Some(new_set)
    };
    let new_set = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_assign(thread, new_set).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_assign_default<S: Server + Send>(
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
    server_.thread_assign_default(thread).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_get_assignment<S: Server + Send>(
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
    let assigned_set = server_.thread_get_assignment(thread).await?;
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
            assigned_set,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_assign<S: Server + Send>(
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
        let new_set = reader_
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
        let assign_threads = reader_
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
        Some((new_set, assign_threads))
    };
    let (new_set, assign_threads) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.task_assign(task, new_set, assign_threads).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_assign_default<S: Server + Send>(
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
        let assign_threads = reader_
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
        Some(assign_threads)
    };
    let assign_threads = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.task_assign_default(task, assign_threads).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_get_assignment<S: Server + Send>(
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
    let assigned_set = server_.task_get_assignment(task).await?;
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
            assigned_set,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_priority<S: Server + Send>(
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
        let priority = reader_
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
        let set_max = reader_
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
        Some((priority, set_max))
    };
    let (priority, set_max) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_priority(thread, priority, set_max).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_max_priority<S: Server + Send>(
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
        let processor_set = reader_
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
        let max_priority = reader_
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
        Some((processor_set, max_priority))
    };
    let (processor_set, max_priority) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_max_priority(thread, processor_set, max_priority).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_priority<S: Server + Send>(
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
        let priority = reader_
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
        let change_threads = reader_
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
        Some((priority, change_threads))
    };
    let (priority, change_threads) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.task_priority(task, priority, change_threads).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_max_priority<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor_set = header_.local;
    let read_ = move || {
        let max_priority = reader_
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
        let change_threads = reader_
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
        Some((max_priority, change_threads))
    };
    let (max_priority, change_threads) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .processor_set_max_priority(processor_set, max_priority, change_threads)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_policy<S: Server + Send>(
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
        let policy = reader_
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
        let data = reader_
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
        Some((policy, data))
    };
    let (policy, data) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_policy(thread, policy, data).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_policy_enable<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor_set = header_.local;
    let read_ = move || {
        let policy = reader_
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
        Some(policy)
    };
    let policy = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.processor_set_policy_enable(processor_set, policy).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_policy_disable<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor_set = header_.local;
    let read_ = move || {
        let policy = reader_
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
        let change_threads = reader_
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
        Some((policy, change_threads))
    };
    let (policy, change_threads) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.processor_set_policy_disable(processor_set, policy, change_threads).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_tasks<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor_set = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let task_list = server_.processor_set_tasks(processor_set).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 19,
                bits: 64,
                number: task_list.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(task_list.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_threads<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor_set = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let thread_list = server_.processor_set_threads(processor_set).await?;
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
async fn serve_host_processor_sets<S: Server + Send>(
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
    let processor_sets = server_.host_processor_sets(host).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 19,
                bits: 64,
                number: processor_sets.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(processor_sets.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_processor_set_priv<S: Server + Send>(
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
        let set_name = reader_
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
        Some(set_name)
    };
    let set_name = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let set = server_.host_processor_set_priv(host_priv, set_name).await?;
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
            set,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_depress_abort<S: Server + Send>(
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
    server_.thread_depress_abort(thread).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_set_time<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host_priv = header_.local;
    let read_ = move || {
        reader_
            .expect(
                &Expected {
                    name: Some(11),
                    bits: 64,
                    number: Number::Exactly(2),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let new_time = reader_.elements::<u64, 2>()?;
        reader_.finish()?;
        Some(new_time)
    };
    let new_time = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.host_set_time(host_priv, new_time).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_adjust_time<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host_priv = header_.local;
    let read_ = move || {
        reader_
            .expect(
                &Expected {
                    name: Some(11),
                    bits: 64,
                    number: Number::Exactly(2),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let new_adjustment = reader_.elements::<u64, 2>()?;
        reader_.finish()?;
        Some(new_adjustment)
    };
    let new_adjustment = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let old_adjustment = server_.host_adjust_time(host_priv, new_adjustment).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 2,
                flags: 1,
            },
        );
    writer_.data(&old_adjustment);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_get_time<S: Server + Send>(
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
    let current_time = server_.host_get_time(host).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 2,
                flags: 1,
            },
        );
    writer_.data(&current_time);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_reboot<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host_priv = header_.local;
    let read_ = move || {
        let options = reader_
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
        Some(options)
    };
    let options = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.host_reboot(host_priv, options).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_wire<S: Server + Send>(
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
        let access = reader_
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
        Some((task, address, size, access))
    };
    let (task, address, size, access) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.vm_wire(host, task, address, size, access).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_thread_wire<S: Server + Send>(
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
        let thread = reader_
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
        let wired = reader_
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
        Some((thread, wired))
    };
    let (thread, wired) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.thread_wire(host_priv, thread, wired).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_info<S: Server + Send>(
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
        let host_info_out_room = reader_.integer()?.min(1024) as usize;
        reader_.finish()?;
        Some((flavor, host_info_out_room))
    };
    let (flavor, host_info_out_room) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let host_info_out = server_.host_info(host, flavor, host_info_out_room).await?;
    if host_info_out.len() > 1024 || host_info_out.len() > host_info_out_room * 1 {
        return Err(Status::ARRAY_TOO_LARGE);
    }
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: host_info_out.len() as u32,
                flags: 1,
            },
        );
    writer_.data(&host_info_out);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_info<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor = header_.local;
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
        let processor_info_out_room = reader_.integer()?.min(1024) as usize;
        reader_.finish()?;
        Some((flavor, processor_info_out_room))
    };
    let (flavor, processor_info_out_room) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (host, processor_info_out) = server_
        .processor_info(processor, flavor, processor_info_out_room)
        .await?;
    if processor_info_out.len() > 1024
        || processor_info_out.len() > processor_info_out_room * 1
    {
        return Err(Status::ARRAY_TOO_LARGE);
    }
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
            host,
            8,
        );
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: processor_info_out.len() as u32,
                flags: 1,
            },
        );
    writer_.data(&processor_info_out);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_info<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let set_name = header_.local;
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
        let info_out_room = reader_.integer()?.min(1024) as usize;
        reader_.finish()?;
        Some((flavor, info_out_room))
    };
    let (flavor, info_out_room) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (host, info_out) = server_
        .processor_set_info(set_name, flavor, info_out_room)
        .await?;
    if info_out.len() > 1024 || info_out.len() > info_out_room * 1 {
        return Err(Status::ARRAY_TOO_LARGE);
    }
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
            host,
            8,
        );
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: info_out.len() as u32,
                flags: 1,
            },
        );
    writer_.data(&info_out);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_control<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let processor = header_.local;
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
        let processor_cmd = reader_
            .array::<u32, 1024>(descriptor_.number.checked_mul(1)?)?;
        reader_.finish()?;
        Some(processor_cmd)
    };
    let processor_cmd = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.processor_control(processor, processor_cmd).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_get_time64<S: Server + Send>(
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
    let current_time = server_.host_get_time64(host).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 2,
                flags: 1,
            },
        );
    writer_.data(&current_time);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_set_time64<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host_priv = header_.local;
    let read_ = move || {
        reader_
            .expect(
                &Expected {
                    name: Some(11),
                    bits: 64,
                    number: Number::Exactly(2),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let new_time = reader_.elements::<u64, 2>()?;
        reader_.finish()?;
        Some(new_time)
    };
    let new_time = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.host_set_time64(host_priv, new_time).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_adjust_time64<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host_priv = header_.local;
    let read_ = move || {
        reader_
            .expect(
                &Expected {
                    name: Some(11),
                    bits: 64,
                    number: Number::Exactly(2),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let new_adjustment = reader_.elements::<u64, 2>()?;
        reader_.finish()?;
        Some(new_adjustment)
    };
    let new_adjustment = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let old_adjustment = server_.host_adjust_time64(host_priv, new_adjustment).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 2,
                flags: 1,
            },
        );
    writer_.data(&old_adjustment);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_get_kernel_version<S: Server + Send>(
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
    let kernel_version = server_.host_get_kernel_version(host).await?;
    if kernel_version.len() >= 512 {
        return Err(Status::ARRAY_TOO_LARGE);
    }
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 12,
                bits: 8,
                number: 512,
                flags: 1,
            },
        );
    writer_.text(&kernel_version, 512);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_host_get_uptime64<S: Server + Send>(
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
    let uptime = server_.host_get_uptime64(host).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 2,
                flags: 1,
            },
        );
    writer_.data(&uptime);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_processor_set_processors<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let set_name = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let processors_list = server_.processor_set_processors(set_name).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 19,
                bits: 64,
                number: processors_list.count * 1,
                flags: 2,
            },
        );
    writer_.pointer(processors_list.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_task_max_priority<S: Server + Send>(
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
        let max_priority = reader_
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
        let set_priority = reader_
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
        let change_threads = reader_
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
        Some((task, max_priority, set_priority, change_threads))
    };
    let (task, max_priority, set_priority, change_threads) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .task_max_priority(host, task, max_priority, set_priority, change_threads)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
