//! What an input device says about itself (5.8.5.2): its name, and which events it has.

use virtio::Error;
use virtio::registers::Registers;
use virtio::setup::Setup;

/// The registers of the configuration: what is selected, the length of the answer, the answer.
const SELECT: u32 = 0;
const LENGTH: u32 = 2;
const ANSWER: u32 = 8;
/// The size of the longest answer in bytes.
const LONGEST: usize = 128;

/// What can be selected: the device's name, and the codes of a type of events, a bit for each.
const NAME: u8 = 1;
const CODES: u8 = 0x11;

/// The types of events: keys, and lights.
const KEYS: u8 = 1;
const LIGHTS: u8 = 0x11;

/// The keys that every keyboard has, and no mouse: those of the letters Q, A and Z, and Enter.
const LEAST_KEYS: [usize; 4] = [16, 30, 44, 28];

/// An answer of the device.
struct Answer {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Answer {
    fn read<R: Registers>(device: &mut Setup<R>, select: u8, which: u8) -> Result<Answer, Error> {
        let (mut bytes, mut length) = ([0; LONGEST], [0]);
        device.set_configuration(SELECT, &[select, which])?;
        device.configuration(LENGTH, &mut length)?;
        let length = usize::from(length[0]).min(LONGEST);
        device.configuration(ANSWER, &mut bytes[..length])?;
        Ok(Answer { bytes, length })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn has_bit(&self, bit: usize) -> bool {
        self.bytes().get(bit / 8).is_some_and(|byte| byte & 1 << (bit % 8) != 0)
    }
}

/// Whether the device is a keyboard.
///
/// # Errors
/// `Configuration`: the device has no configuration of an input device.
pub fn is_keyboard<R: Registers>(device: &mut Setup<R>) -> Result<bool, Error> {
    let keys = Answer::read(device, CODES, KEYS)?;
    Ok(LEAST_KEYS.iter().all(|&key| keys.has_bit(key)))
}

/// Whether the device has any lights.
///
/// # Errors
/// `Configuration`: the device has no configuration of an input device.
pub fn has_lights<R: Registers>(device: &mut Setup<R>) -> Result<bool, Error> {
    let lights = Answer::read(device, CODES, LIGHTS)?;
    Ok(lights.bytes().iter().any(|&byte| byte != 0))
}

/// Passes the device's name to `take`. Bytes that are no text are left out.
///
/// # Errors
/// `Configuration`: the device has no configuration of an input device.
pub fn name<R: Registers>(device: &mut Setup<R>, take: impl FnOnce(&str)) -> Result<(), Error> {
    let answer = Answer::read(device, NAME, 0)?;
    let text = answer.bytes().utf8_chunks().next().map_or("", |chunk| chunk.valid());
    take(text.trim_end_matches('\0'));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtio::features::VERSION_1;
    use virtio::registers::{Part, Width};

    /// A device that describes itself, and accepts every feature.
    #[derive(Default)]
    struct Model {
        status: u32,
        selected: [u8; 2],
        name: Vec<u8>,
        keys: Vec<u8>,
        lights: Vec<u8>,
        half: u32,
    }

    impl Model {
        fn answer(&self) -> &[u8] {
            match self.selected {
                [NAME, 0] => &self.name,
                [CODES, KEYS] => &self.keys,
                [CODES, LIGHTS] => &self.lights,
                _ => &[],
            }
        }
    }

    impl Registers for &mut Model {
        fn read(&mut self, part: Part, offset: u32, width: Width) -> u32 {
            match (part, offset, width) {
                (Part::Common, 0x14, _) => self.status,
                (Part::Common, 4, _) if self.half == 1 => (VERSION_1 >> 32) as u32,
                (Part::Device, LENGTH, Width::Byte) => self.answer().len() as u32,
                (Part::Device, ANSWER.., Width::Byte) => {
                    self.answer().get((offset - ANSWER) as usize).copied().unwrap_or(0).into()
                }
                _ => 0,
            }
        }

        fn write(&mut self, part: Part, offset: u32, _: Width, value: u32) {
            match (part, offset) {
                (Part::Common, 0x14) => self.status = value,
                (Part::Common, 0) => self.half = value,
                (Part::Device, 0 | 1) => self.selected[offset as usize] = value as u8,
                _ => {}
            }
        }

        fn length(&self, _: Part) -> u32 {
            ANSWER + LONGEST as u32
        }

        fn notify_multiplier(&self) -> u32 {
            0
        }
    }

    fn bits(bits: &[usize]) -> Vec<u8> {
        let mut bytes = vec![0; 70];
        bits.iter().for_each(|bit| bytes[bit / 8] |= 1 << (bit % 8));
        bytes
    }

    fn with<T>(mut model: Model, run: impl FnOnce(&mut Setup<&mut Model>) -> T) -> T {
        run(&mut Setup::begin(&mut model, 0).expect("the model starts"))
    }

    #[test]
    fn a_keyboard_has_letters_and_a_mouse_has_none() {
        let keyboard = Model { keys: bits(&[1, 16, 28, 30, 44, 103]), lights: vec![7], ..Model::default() };
        assert_eq!(with(keyboard, |device| (is_keyboard(device), has_lights(device))), (Ok(true), Ok(true)));
        let mouse = Model { keys: bits(&[0x110, 0x111]), ..Model::default() };
        assert_eq!(with(mouse, |device| (is_keyboard(device), has_lights(device))), (Ok(false), Ok(false)));
    }

    #[test]
    fn a_name_is_text_of_any_length() {
        for (bytes, expected) in [
            (&b"QEMU Virtio Keyboard"[..], "QEMU Virtio Keyboard"),
            (b"with an end\0\0", "with an end"),
            (b"damaged\xff text", "damaged"),
            (b"", ""),
        ] {
            let model = Model { name: bytes.to_vec(), ..Model::default() };
            let mut found = String::new();
            with(model, |device| name(device, |text| found = text.into())).expect("it has one");
            assert_eq!(found, expected);
        }
        let model = Model { name: vec![b'a'; 255], ..Model::default() };
        with(model, |device| name(device, |text| assert_eq!(text.len(), LONGEST))).expect("it has one");
    }
}
