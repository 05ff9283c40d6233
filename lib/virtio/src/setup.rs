//! Starting a device (3.1), and the operations of a driver on a device that runs.

use crate::memory::QueueMemory;
use crate::registers::{Part, Registers, Width};
use crate::{Error, features};

/// Offsets of registers in the common part (4.1.4.3).
pub(crate) const DEVICE_FEATURES_HALF: u32 = 0;
pub(crate) const DEVICE_FEATURES: u32 = 4;
pub(crate) const DRIVER_FEATURES_HALF: u32 = 8;
pub(crate) const DRIVER_FEATURES: u32 = 0xc;
pub(crate) const CONFIGURATION_VECTOR: u32 = 0x10;
pub(crate) const QUEUES: u32 = 0x12;
pub(crate) const STATUS: u32 = 0x14;
pub(crate) const GENERATION: u32 = 0x15;
pub(crate) const QUEUE: u32 = 0x16;
pub(crate) const QUEUE_SIZE: u32 = 0x18;
pub(crate) const QUEUE_VECTOR: u32 = 0x1a;
pub(crate) const QUEUE_ENABLE: u32 = 0x1c;
pub(crate) const QUEUE_NOTIFY: u32 = 0x1e;
pub(crate) const QUEUE_DESCRIPTORS: u32 = 0x20;
pub(crate) const QUEUE_AVAILABLE: u32 = 0x28;
pub(crate) const QUEUE_USED: u32 = 0x30;

/// Bits of the status register.
pub(crate) const ACKNOWLEDGE: u32 = 1;
pub(crate) const DRIVER: u32 = 2;
pub(crate) const DRIVER_OK: u32 = 4;
pub(crate) const FEATURES_OK: u32 = 8;
pub(crate) const NEEDS_RESET: u32 = 0x40;
pub(crate) const FAILED: u32 = 0x80;

/// The number by which driver and device say that there is no interrupt message.
const NO_VECTOR: u16 = 0xffff;
/// How often `reset` reads the status before it gives up.
const RESET_READS: u32 = 1_000_000;
/// How often `configuration` reads the configuration before it gives up.
const CONFIGURATION_READS: u32 = 100;

/// A device that is being set up, and does not take requests yet.
#[derive(Debug)]
pub struct Setup<R> {
    registers: R,
    features: u64,
}

/// The register by which the device is notified of requests in one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notify {
    offset: u32,
    queue: u16,
}

fn common<R: Registers>(registers: &mut R, offset: u32, width: Width) -> u32 {
    registers.read(Part::Common, offset, width)
}

fn set_common<R: Registers>(registers: &mut R, offset: u32, width: Width, value: u32) {
    registers.write(Part::Common, offset, width, value);
}

/// Resets the device, and waits until the device says that the reset has happened.
fn reset<R: Registers>(registers: &mut R) -> Result<(), Error> {
    set_common(registers, STATUS, Width::Byte, 0);
    let is_reset = (0..RESET_READS).any(|_| common(registers, STATUS, Width::Byte) == 0);
    if is_reset { Ok(()) } else { Err(Error::NoReset) }
}

impl<R: Registers> Setup<R> {
    /// Resets the device and agrees with it on features: those of `wanted` that the device offers,
    /// and those that this library requires.
    ///
    /// # Errors
    /// `NoReset`: the device has not completed the reset. `Features`: the device does not offer a
    /// feature that this library requires, or refuses the chosen ones.
    pub fn begin(mut registers: R, wanted: u64) -> Result<Setup<R>, Error> {
        reset(&mut registers)?;
        set_common(&mut registers, STATUS, Width::Byte, ACKNOWLEDGE);
        set_common(&mut registers, STATUS, Width::Byte, ACKNOWLEDGE | DRIVER);
        let mut offered = 0;
        for half in [0, 1] {
            set_common(&mut registers, DEVICE_FEATURES_HALF, Width::Word, half);
            offered |= u64::from(common(&mut registers, DEVICE_FEATURES, Width::Word)) << (32 * half);
        }
        let features = offered & (wanted | features::VERSION_1 | features::ACCESS_PLATFORM);
        for half in [0, 1] {
            set_common(&mut registers, DRIVER_FEATURES_HALF, Width::Word, half);
            let part = (features >> (32 * half)) as u32;
            set_common(&mut registers, DRIVER_FEATURES, Width::Word, part);
        }
        let mut setup = Setup { registers, features };
        setup.add_status(FEATURES_OK);
        let is_accepted = common(&mut setup.registers, STATUS, Width::Byte) & FEATURES_OK != 0;
        if features & features::VERSION_1 == 0 || !is_accepted {
            setup.add_status(FAILED);
            return Err(Error::Features);
        }
        Ok(setup)
    }

    fn add_status(&mut self, bits: u32) {
        let status = common(&mut self.registers, STATUS, Width::Byte);
        set_common(&mut self.registers, STATUS, Width::Byte, status | bits);
    }

    /// The features that the device and this driver have agreed on.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// How many queues the device has.
    pub fn queues(&mut self) -> u16 {
        common(&mut self.registers, QUEUES, Width::Half) as u16
    }

    /// The most descriptors that the queue can have; 0: the device has no such queue.
    pub fn queue_size(&mut self, queue: u16) -> u16 {
        if queue >= self.queues() {
            return 0;
        }
        set_common(&mut self.registers, QUEUE, Width::Half, queue.into());
        common(&mut self.registers, QUEUE_SIZE, Width::Half) as u16
    }

    /// Tells the device the memory of a queue. With `vector`, the device sends that interrupt
    /// message when it has completed a request. Returns the register by which the device is
    /// notified.
    ///
    /// # Errors
    /// `NoQueue`: there is no such queue, or it can only have fewer descriptors than the memory
    /// has. `NoVector`: the device has not accepted the message. `Broken`: the device says that the
    /// register for notification is outside of its registers.
    pub fn set_queue(
        &mut self,
        queue: u16,
        memory: &QueueMemory<'_>,
        vector: Option<u16>,
    ) -> Result<Notify, Error> {
        let size = memory.layout.size();
        if self.queue_size(queue) < size {
            return Err(Error::NoQueue);
        }
        let registers = &mut self.registers;
        set_common(registers, QUEUE_SIZE, Width::Half, size.into());
        set_vector(registers, QUEUE_VECTOR, vector)?;
        let addresses = memory.addresses;
        for (register, address) in [
            (QUEUE_DESCRIPTORS, addresses.descriptors),
            (QUEUE_AVAILABLE, addresses.available),
            (QUEUE_USED, addresses.used),
        ] {
            set_common(registers, register, Width::Word, address as u32);
            set_common(registers, register + 4, Width::Word, (address >> 32) as u32);
        }
        let place = common(registers, QUEUE_NOTIFY, Width::Half);
        let offset = place.checked_mul(registers.notify_multiplier());
        let is_inside = |offset: &u32| {
            offset.checked_add(2).is_some_and(|end| end <= registers.length(Part::Notify))
                && offset.is_multiple_of(2)
        };
        let offset = offset.filter(is_inside).ok_or(Error::Broken)?;
        set_common(registers, QUEUE_ENABLE, Width::Half, 1);
        Ok(Notify { offset, queue })
    }

    /// Selects the interrupt message that the device sends when its configuration has changed.
    ///
    /// # Errors
    /// `NoVector`: the device has not accepted the message.
    pub fn set_configuration_vector(&mut self, vector: u16) -> Result<(), Error> {
        set_vector(&mut self.registers, CONFIGURATION_VECTOR, Some(vector))
    }

    /// Reads the device's configuration, like [`Device::configuration`].
    ///
    /// # Errors
    /// Those of [`Device::configuration`].
    pub fn configuration(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        configuration(&mut self.registers, offset, bytes)
    }

    /// Writes bytes of the device's configuration from `offset` on. What this does depends on the
    /// type of the device.
    ///
    /// # Errors
    /// `Configuration`: the configuration is too short. Nothing has been written then.
    pub fn set_configuration(&mut self, offset: u32, bytes: &[u8]) -> Result<(), Error> {
        check_configuration(&self.registers, offset, bytes.len())?;
        for (offset, &byte) in (offset..).zip(bytes) {
            self.registers.write(Part::Device, offset, Width::Byte, byte.into());
        }
        Ok(())
    }

    /// Starts the device, which takes requests from now on.
    pub fn start(mut self) -> Device<R> {
        self.add_status(DRIVER_OK);
        Device { registers: self.registers }
    }
}

fn set_vector<R: Registers>(registers: &mut R, register: u32, vector: Option<u16>) -> Result<(), Error> {
    let vector = u32::from(vector.unwrap_or(NO_VECTOR));
    set_common(registers, register, Width::Half, vector);
    // A device that cannot use the message has `NO_VECTOR` in the register instead.
    let is_set = common(registers, register, Width::Half) == vector;
    if is_set { Ok(()) } else { Err(Error::NoVector) }
}

/// Checks that the configuration has `count` bytes from `offset` on.
fn check_configuration<R: Registers>(registers: &R, offset: u32, count: usize) -> Result<(), Error> {
    let end = u32::try_from(count).ok().and_then(|count| offset.checked_add(count));
    let is_inside = end.is_some_and(|end| end <= registers.length(Part::Device));
    if is_inside { Ok(()) } else { Err(Error::Configuration) }
}

fn configuration<R: Registers>(registers: &mut R, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
    check_configuration(registers, offset, bytes.len())?;
    for _ in 0..CONFIGURATION_READS {
        let before = common(registers, GENERATION, Width::Byte);
        for (offset, byte) in (offset..).zip(bytes.iter_mut()) {
            *byte = registers.read(Part::Device, offset, Width::Byte) as u8;
        }
        if common(registers, GENERATION, Width::Byte) == before {
            return Ok(());
        }
    }
    Err(Error::Configuration)
}

/// A device that was started, and takes requests.
#[derive(Debug)]
pub struct Device<R> {
    registers: R,
}

impl<R: Registers> Device<R> {
    /// Notifies the device of requests in a queue.
    pub fn notify(&mut self, notify: Notify) {
        self.registers.write(Part::Notify, notify.offset, Width::Half, notify.queue.into());
    }

    /// Whether the device has failed, so that it does nothing more until it is reset.
    pub fn needs_reset(&mut self) -> bool {
        common(&mut self.registers, STATUS, Width::Byte) & NEEDS_RESET != 0
    }

    /// Reads the device's configuration from `offset` on, with all bytes from one moment.
    ///
    /// # Errors
    /// `Configuration`: the configuration is too short, or has changed during each attempt.
    pub fn configuration(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Error> {
        configuration(&mut self.registers, offset, bytes)
    }

    /// Resets the device, which then uses no memory any more. Returns its registers.
    ///
    /// # Errors
    /// `NoReset`: the device has not completed the reset, and may still use memory.
    pub fn reset(mut self) -> Result<R, Error> {
        reset(&mut self.registers)?;
        Ok(self.registers)
    }
}
