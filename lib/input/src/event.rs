//! Input events, as Linux numbers them (`linux/input-event-codes.h`).

/// The size in bytes of an event in the ring.
pub const SIZE: usize = 8;

/// The type of events that separate groups of other events.
pub const SYNCHRONISATION: u16 = 0;
/// The code of the event of that type which says that events before it were lost.
pub const DROPPED: u16 = 3;
/// The type of events of keys.
pub const KEY: u16 = 1;
/// The value of an event: the key was released.
pub const RELEASED: i32 = 0;
/// The value of an event: the key was pressed.
pub const PRESSED: i32 = 1;
/// The value of an event: the key is held, and stands for the same once more.
pub const REPEATED: i32 = 2;

/// The bit of the light that is on with Num Lock.
pub const NUM_LOCK_LIGHT: u32 = 1 << 0;
/// The bit of the light that is on with Caps Lock.
pub const CAPS_LOCK_LIGHT: u32 = 1 << 1;
/// The bit of the light that is on with Scroll Lock.
pub const SCROLL_LOCK_LIGHT: u32 = 1 << 2;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The type: [`KEY`], [`SYNCHRONISATION`], or another one that Linux has.
    pub kind: u16,
    /// What the event is about. Its meaning depends on the type; for keys see
    /// [`code`](crate::code).
    pub code: u16,
    /// What has happened.
    pub value: i32,
}

impl Event {
    /// The event that tells the client that events before it were lost.
    pub const LOST: Event = Event { kind: SYNCHRONISATION, code: DROPPED, value: 0 };

    /// The event of a key that was pressed or released, or is repeated because it is held.
    pub const fn key(code: u16, value: i32) -> Event {
        Event { kind: KEY, code, value }
    }

    /// The bytes of the event in the ring.
    pub fn bytes(self) -> [u8; SIZE] {
        let word = u64::from(self.kind) | u64::from(self.code) << 16 | u64::from(self.value as u32) << 32;
        word.to_le_bytes()
    }

    /// The event that these bytes stand for.
    pub fn from_bytes(bytes: [u8; SIZE]) -> Event {
        let word = u64::from_le_bytes(bytes);
        Event { kind: word as u16, code: (word >> 16) as u16, value: (word >> 32) as i32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_low_byte_comes_first() {
        assert_eq!(Event::key(0x102, -2).bytes(), [1, 0, 2, 1, 0xfe, 0xff, 0xff, 0xff]);
    }

    proptest! {
        #[test]
        fn an_event_survives_the_ring(kind: u16, code: u16, value: i32) {
            let event = Event { kind, code, value };
            prop_assert_eq!(Event::from_bytes(event.bytes()), event);
        }
    }
}
