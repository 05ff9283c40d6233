//! The registers of a simulated device.

use crate::registers::{Part, Registers, Width};
use crate::setup::{
    CONFIGURATION_VECTOR, DEVICE_FEATURES, DEVICE_FEATURES_HALF, DRIVER_FEATURES, DRIVER_FEATURES_HALF,
    FEATURES_OK, GENERATION, QUEUE, QUEUE_ENABLE, QUEUE_NOTIFY, QUEUE_SIZE, QUEUE_VECTOR, QUEUES, STATUS,
};
use std::collections::HashMap;

/// A simulated device with two queues of at most 64 descriptors, and four interrupt messages.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) offered: u64,
    pub(super) accepted: u64,
    /// Features that the device offers and then refuses.
    pub(super) refused: u64,
    pub(super) status: u32,
    pub(super) halves: [u32; 2],
    pub(super) queue: u32,
    /// The values that were written to the registers of each queue, by queue and offset.
    pub(super) queues: HashMap<(u32, u32), u32>,
    pub(super) notify_offset: u32,
    pub(super) notified: Vec<(u32, u32)>,
    pub(super) configuration: Vec<u8>,
    /// Whether the configuration changes at each read of it.
    pub(super) is_restless: bool,
    pub(super) generation: u32,
    pub(super) ignores_reset: bool,
    /// All values that were written to the status register.
    pub(super) history: Vec<u32>,
}

impl Model {
    pub(super) fn new(offered: u64) -> Model {
        Model {
            offered,
            accepted: 0,
            refused: 0,
            status: 0xf,
            halves: [0; 2],
            queue: 0,
            queues: HashMap::new(),
            notify_offset: 1,
            notified: Vec::new(),
            configuration: vec![1, 2, 3, 4],
            is_restless: false,
            generation: 0,
            ignores_reset: false,
            history: Vec::new(),
        }
    }

    fn half(value: u64, half: u32) -> u32 {
        value.checked_shr(32 * half).unwrap_or(0) as u32
    }
}

impl Registers for &mut Model {
    fn read(&mut self, part: Part, offset: u32, width: Width) -> u32 {
        assert!(offset.is_multiple_of(width.bytes()) && offset + width.bytes() <= self.length(part));
        match (part, offset) {
            (Part::Common, DEVICE_FEATURES) => Model::half(self.offered, self.halves[0]),
            (Part::Common, QUEUES) => 2,
            (Part::Common, STATUS) => self.status,
            (Part::Common, GENERATION) => {
                self.generation += u32::from(self.is_restless);
                self.generation & 0xff
            }
            (Part::Common, QUEUE_SIZE) => 64,
            (Part::Common, QUEUE_NOTIFY) => self.notify_offset,
            (Part::Common, QUEUE_VECTOR | CONFIGURATION_VECTOR) => {
                let vector = self.queues[&(self.queue, offset)];
                if vector < 4 { vector } else { 0xffff }
            }
            (Part::Device, _) => self.configuration[offset as usize].into(),
            other => panic!("read {other:?}"),
        }
    }

    fn write(&mut self, part: Part, offset: u32, width: Width, value: u32) {
        assert!(offset.is_multiple_of(width.bytes()) && offset + width.bytes() <= self.length(part));
        match (part, offset) {
            (Part::Common, DEVICE_FEATURES_HALF) => self.halves[0] = value,
            (Part::Common, DRIVER_FEATURES_HALF) => self.halves[1] = value,
            (Part::Common, DRIVER_FEATURES) => {
                let shift = 32 * self.halves[1];
                self.accepted = self.accepted & !(0xffff_ffff << shift) | u64::from(value) << shift;
            }
            (Part::Common, STATUS) => {
                self.history.push(value);
                let is_bad = self.accepted & (self.refused | !self.offered) != 0;
                self.status = match value {
                    0 if self.ignores_reset => self.status,
                    value if is_bad => value & !FEATURES_OK,
                    value => value,
                };
            }
            (Part::Common, QUEUE) => self.queue = value,
            (Part::Common, QUEUE_ENABLE) => assert_eq!(self.queues.insert((self.queue, offset), value), None),
            (Part::Common, _) => drop(self.queues.insert((self.queue, offset), value)),
            (Part::Notify, _) => self.notified.push((offset, value)),
            other => panic!("written {other:?}"),
        }
    }

    fn length(&self, part: Part) -> u32 {
        match part {
            Part::Common => 0x38,
            Part::Notify => 16,
            Part::Interrupt => 1,
            Part::Device => self.configuration.len() as u32,
        }
    }

    fn notify_multiplier(&self) -> u32 {
        4
    }
}
