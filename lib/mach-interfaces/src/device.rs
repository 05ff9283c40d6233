// Written by mig from the definition of `device`. Do not edit.

/// Calls on devices.
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
    /// [`device_open`](super::Server::device_open).
    pub const DEVICE_OPEN: u32 = 2800;
    /// [`device_close`](super::Server::device_close).
    pub const DEVICE_CLOSE: u32 = 2801;
    /// [`device_write`](super::Server::device_write).
    pub const DEVICE_WRITE: u32 = 2802;
    /// [`device_write_inband`](super::Server::device_write_inband).
    pub const DEVICE_WRITE_INBAND: u32 = 2803;
    /// [`device_read`](super::Server::device_read).
    pub const DEVICE_READ: u32 = 2804;
    /// [`device_read_inband`](super::Server::device_read_inband).
    pub const DEVICE_READ_INBAND: u32 = 2805;
    /// [`device_map`](super::Server::device_map).
    pub const DEVICE_MAP: u32 = 2809;
    /// [`device_set_status`](super::Server::device_set_status).
    pub const DEVICE_SET_STATUS: u32 = 2810;
    /// [`device_get_status`](super::Server::device_get_status).
    pub const DEVICE_GET_STATUS: u32 = 2811;
    /// [`device_set_filter`](super::Server::device_set_filter).
    pub const DEVICE_SET_FILTER: u32 = 2812;
    /// [`device_intr_register`](super::Server::device_intr_register).
    pub const DEVICE_INTR_REGISTER: u32 = 2813;
    /// [`device_intr_ack`](super::Server::device_intr_ack).
    pub const DEVICE_INTR_ACK: u32 = 2814;
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
    /// Opens the device of this name.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_open(&mut self, mode: u32, name: &[u8]) -> Result<u64, Error> {
        if name.len() >= 128 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        let mut message_ = [0; 184];
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
                u64::from(mode),
                4,
            );
        writer_
            .describe(
                &Descriptor {
                    name: 12,
                    bits: 1024,
                    number: 1,
                    flags: 3,
                },
            );
        writer_.text(&name, 128);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::DEVICE_OPEN,
                    reply_port: None,
                    reply: Some(2900),
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
            let device = reader_
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
            Some(device)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Closes a device.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_close(&mut self) -> Result<(), Error> {
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
                    id: id::DEVICE_CLOSE,
                    reply_port: None,
                    reply: Some(2901),
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
    /// Writes data to a device.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_write(
        &mut self,
        mode: u32,
        recnum: u64,
        data: Memory,
    ) -> Result<u32, Error> {
        let mut message_ = [0; 80];
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
                u64::from(mode),
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
                recnum,
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
                    id: id::DEVICE_WRITE,
                    reply_port: None,
                    reply: Some(2902),
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
            let bytes_written = reader_
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
            Some(bytes_written)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Writes data in the message to a device.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_write_inband(
        &mut self,
        mode: u32,
        recnum: u64,
        data: &[u8],
    ) -> Result<u32, Error> {
        if data.len() > 128 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        let mut message_ = [0; 200];
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
                u64::from(mode),
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
                recnum,
                8,
            );
        writer_
            .describe(
                &Descriptor {
                    name: 8,
                    bits: 8,
                    number: data.len() as u32,
                    flags: 1,
                },
            );
        writer_.data(data);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::DEVICE_WRITE_INBAND,
                    reply_port: None,
                    reply: Some(2903),
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
            let bytes_written = reader_
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
            Some(bytes_written)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Reads data from a device.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_read(
        &mut self,
        mode: u32,
        recnum: u64,
        bytes_wanted: u32,
    ) -> Result<Memory, Error> {
        let mut message_ = [0; 80];
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
                u64::from(mode),
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
                recnum,
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
                u64::from(bytes_wanted),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::DEVICE_READ,
                    reply_port: None,
                    reply: Some(2904),
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
    /// Reads data into the message from a device.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_read_inband(
        &mut self,
        mode: u32,
        recnum: u64,
        bytes_wanted: u32,
    ) -> Result<Array<u8, 128>, Error> {
        let mut message_ = [0; 184];
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
                u64::from(mode),
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
                recnum,
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
                u64::from(bytes_wanted),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::DEVICE_READ_INBAND,
                    reply_port: None,
                    reply: Some(2905),
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
                        name: Some(8),
                        bits: 8,
                        number: Number::UpTo(128),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let data = reader_.array::<u8, 128>(descriptor_.number.checked_mul(1)?)?;
            reader_.finish()?;
            Some(data)
        };
        read_().ok_or(Error::TypeError)
    }
    /// A memory object that shows a device's memory.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_map(
        &mut self,
        prot: u32,
        offset: u64,
        size: u64,
        unmap: u32,
    ) -> Result<u64, Error> {
        let mut message_ = [0; 96];
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
                u64::from(prot),
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
                u64::from(unmap),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::DEVICE_MAP,
                    reply_port: None,
                    reply: Some(2909),
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
            let pager = reader_
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
            Some(pager)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Sets the state of a device, by flavor.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_set_status(
        &mut self,
        flavor: u32,
        status: &[u32],
    ) -> Result<(), Error> {
        if status.len() > 1024 {
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
                    number: status.len() as u32,
                    flags: 1,
                },
            );
        writer_.data(status);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::DEVICE_SET_STATUS,
                    reply_port: None,
                    reply: Some(2910),
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
    /// The state of a device, by flavor.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_get_status(
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
                    id: id::DEVICE_GET_STATUS,
                    reply_port: None,
                    reply: Some(2911),
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
            let status = reader_.array::<u32, 1024>(descriptor_.number.checked_mul(1)?)?;
            reader_.finish()?;
            Some(status)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Has packets that a filter accepts sent to a port.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_set_filter(
        &mut self,
        receive_port: u64,
        receive_port_type: u32,
        priority: u32,
        filter: &[u16],
    ) -> Result<(), Error> {
        if filter.len() > 128 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        let mut message_ = [0; 328];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: receive_port_type,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                receive_port,
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
                u64::from(priority),
                4,
            );
        writer_
            .describe(
                &Descriptor {
                    name: 1,
                    bits: 16,
                    number: filter.len() as u32,
                    flags: 1,
                },
            );
        writer_.data(filter);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::DEVICE_SET_FILTER,
                    reply_port: None,
                    reply: Some(2912),
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
    /// Has interrupts of a device sent to a port.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_intr_register(
        &mut self,
        id: u32,
        flags: u32,
        receive_port: u64,
        receive_port_type: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 80];
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
                u64::from(flags),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: receive_port_type,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                receive_port,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::DEVICE_INTR_REGISTER,
                    reply_port: None,
                    reply: Some(2913),
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
    /// Acknowledges an interrupt of a device.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn device_intr_ack(
        &mut self,
        receive_port: u64,
        receive_port_type: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 48];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: receive_port_type,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                receive_port,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::DEVICE_INTR_ACK,
                    reply_port: None,
                    reply: Some(2914),
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
    /// Opens the device of this name.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_open(
        &mut self,
        master_port: u64,
        reply_port: u64,
        mode: u32,
        name: Array<u8, 128>,
    ) -> impl Future<Output = Result<(u64, u32), Status>> + Send;
    /// Closes a device.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_close(
        &mut self,
        device: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Writes data to a device.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_write(
        &mut self,
        device: u64,
        reply_port: u64,
        mode: u32,
        recnum: u64,
        data: Memory,
    ) -> impl Future<Output = Result<u32, Status>> + Send;
    /// Writes data in the message to a device.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_write_inband(
        &mut self,
        device: u64,
        reply_port: u64,
        mode: u32,
        recnum: u64,
        data: Array<u8, 128>,
    ) -> impl Future<Output = Result<u32, Status>> + Send;
    /// Reads data from a device.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_read(
        &mut self,
        device: u64,
        reply_port: u64,
        mode: u32,
        recnum: u64,
        bytes_wanted: u32,
    ) -> impl Future<Output = Result<Memory, Status>> + Send;
    /// Reads data into the message from a device.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_read_inband(
        &mut self,
        device: u64,
        reply_port: u64,
        mode: u32,
        recnum: u64,
        bytes_wanted: u32,
    ) -> impl Future<Output = Result<Array<u8, 128>, Status>> + Send;
    /// A memory object that shows a device's memory.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_map(
        &mut self,
        device: u64,
        prot: u32,
        offset: u64,
        size: u64,
        unmap: u32,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Sets the state of a device, by flavor.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_set_status(
        &mut self,
        device: u64,
        flavor: u32,
        status: Array<u32, 1024>,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The state of a device, by flavor.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_get_status(
        &mut self,
        device: u64,
        flavor: u32,
        status_room: usize,
    ) -> impl Future<Output = Result<Array<u32, 1024>, Status>> + Send;
    /// Has packets that a filter accepts sent to a port.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_set_filter(
        &mut self,
        device: u64,
        receive_port: u64,
        priority: u32,
        filter: Array<u16, 128>,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Has interrupts of a device sent to a port.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_intr_register(
        &mut self,
        device: u64,
        id: u32,
        flags: u32,
        receive_port: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Acknowledges an interrupt of a device.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn device_intr_ack(
        &mut self,
        device: u64,
        receive_port: u64,
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
        id::DEVICE_OPEN => serve_device_open(server_, &header_, request_, reply_).await,
        id::DEVICE_CLOSE => serve_device_close(server_, &header_, request_, reply_).await,
        id::DEVICE_WRITE => serve_device_write(server_, &header_, request_, reply_).await,
        id::DEVICE_WRITE_INBAND => {
            serve_device_write_inband(server_, &header_, request_, reply_).await
        }
        id::DEVICE_READ => serve_device_read(server_, &header_, request_, reply_).await,
        id::DEVICE_READ_INBAND => {
            serve_device_read_inband(server_, &header_, request_, reply_).await
        }
        id::DEVICE_MAP => serve_device_map(server_, &header_, request_, reply_).await,
        id::DEVICE_SET_STATUS => {
            serve_device_set_status(server_, &header_, request_, reply_).await
        }
        id::DEVICE_GET_STATUS => {
            serve_device_get_status(server_, &header_, request_, reply_).await
        }
        id::DEVICE_SET_FILTER => {
            serve_device_set_filter(server_, &header_, request_, reply_).await
        }
        id::DEVICE_INTR_REGISTER => {
            serve_device_intr_register(server_, &header_, request_, reply_).await
        }
        id::DEVICE_INTR_ACK => {
            serve_device_intr_ack(server_, &header_, request_, reply_).await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_open<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let master_port = header_.local;
    let reply_port = header_.remote;
    let read_ = move || {
        let mode = reader_
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
        reader_
            .expect(
                &Expected {
                    name: Some(12),
                    bits: 1024,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: true,
                },
            )?;
        let name = reader_.text::<128>(128)?;
        reader_.finish()?;
        Some((mode, name))
    };
    let (mode, name) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let (device, device_type) = server_
        .device_open(master_port, reply_port, mode, name)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: device_type,
                bits: 64,
                number: 1,
                flags: 1,
            },
            device,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_close<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.device_close(device).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_write<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
    let reply_port = header_.remote;
    let read_ = move || {
        let mode = reader_
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
        let recnum = reader_
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
        Some((mode, recnum, data))
    };
    let (mode, recnum, data) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let bytes_written = server_
        .device_write(device, reply_port, mode, recnum, data)
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
            u64::from(bytes_written),
            4,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_write_inband<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
    let reply_port = header_.remote;
    let read_ = move || {
        let mode = reader_
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
        let recnum = reader_
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
                    name: Some(8),
                    bits: 8,
                    number: Number::UpTo(128),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let data = reader_.array::<u8, 128>(descriptor_.number.checked_mul(1)?)?;
        reader_.finish()?;
        Some((mode, recnum, data))
    };
    let (mode, recnum, data) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let bytes_written = server_
        .device_write_inband(device, reply_port, mode, recnum, data)
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
            u64::from(bytes_written),
            4,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_read<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
    let reply_port = header_.remote;
    let read_ = move || {
        let mode = reader_
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
        let recnum = reader_
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
        let bytes_wanted = reader_
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
        Some((mode, recnum, bytes_wanted))
    };
    let (mode, recnum, bytes_wanted) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let data = server_
        .device_read(device, reply_port, mode, recnum, bytes_wanted)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 9,
                bits: 8,
                number: data.count * 1,
                flags: 6,
            },
        );
    writer_.pointer(data.address);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_read_inband<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
    let reply_port = header_.remote;
    let read_ = move || {
        let mode = reader_
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
        let recnum = reader_
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
        let bytes_wanted = reader_
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
        Some((mode, recnum, bytes_wanted))
    };
    let (mode, recnum, bytes_wanted) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let data = server_
        .device_read_inband(device, reply_port, mode, recnum, bytes_wanted)
        .await?;
    if data.len() > 128 {
        return Err(Status::ARRAY_TOO_LARGE);
    }
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 8,
                bits: 8,
                number: data.len() as u32,
                flags: 1,
            },
        );
    writer_.data(&data);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_map<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
    let read_ = move || {
        let prot = reader_
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
        let unmap = reader_
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
        Some((prot, offset, size, unmap))
    };
    let (prot, offset, size, unmap) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let pager = server_.device_map(device, prot, offset, size, unmap).await?;
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
            pager,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_set_status<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
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
        let status = reader_.array::<u32, 1024>(descriptor_.number.checked_mul(1)?)?;
        reader_.finish()?;
        Some((flavor, status))
    };
    let (flavor, status) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.device_set_status(device, flavor, status).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_get_status<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
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
        let status_room = reader_.integer()?.min(1024) as usize;
        reader_.finish()?;
        Some((flavor, status_room))
    };
    let (flavor, status_room) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let status = server_.device_get_status(device, flavor, status_room).await?;
    if status.len() > 1024 || status.len() > status_room * 1 {
        return Err(Status::ARRAY_TOO_LARGE);
    }
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: status.len() as u32,
                flags: 1,
            },
        );
    writer_.data(&status);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_set_filter<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, None)
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
    let read_ = move || {
        let receive_port = reader_
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
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: Some(1),
                    bits: 16,
                    number: Number::UpTo(128),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let filter = reader_.array::<u16, 128>(descriptor_.number.checked_mul(1)?)?;
        reader_.finish()?;
        Some((receive_port, priority, filter))
    };
    let (receive_port, priority, filter) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.device_set_filter(device, receive_port, priority, filter).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_intr_register<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, None)
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
    let read_ = move || {
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
        let receive_port = reader_
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
        Some((id, flags, receive_port))
    };
    let (id, flags, receive_port) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.device_intr_register(device, id, flags, receive_port).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_device_intr_ack<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, None)
        .ok_or(Status::BAD_ARGUMENTS)?;
    let device = header_.local;
    let read_ = move || {
        let receive_port = reader_
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
        Some(receive_port)
    };
    let receive_port = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.device_intr_ack(device, receive_port).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
