use crate::Error;
use crate::capability::{Place, Places};
use crate::registers::Part;
use proptest::prelude::*;

/// The configuration space of a device with all four parts. The list also has capabilities that are
/// not for parts (MSI-X, access through configuration space), and a second place for the common
/// part.
fn space() -> [u32; 64] {
    let mut words = [0; 64];
    (words[1], words[13]) = (1 << 20, 0x98);
    let mut capability = |at: usize, next: u32, rest: &[u32]| {
        words[at / 4] |= next << 8;
        for (word, value) in words[at / 4..].iter_mut().zip(rest) {
            *word |= value;
        }
    };
    let place = |kind: u32, size: u32| kind << 24 | size << 16 | 9;
    capability(0x98, 0x84, &[0x11 | 2 << 16, 1, 0x801]);
    capability(0x84, 0x70, &[place(5, 20), 0, 0, 0, 0]);
    capability(0x70, 0x60, &[place(2, 20), 4, 0x3000, 0x1000, 4]);
    capability(0x60, 0x50, &[place(4, 16), 4, 0x2000, 0x1000]);
    capability(0x50, 0x40, &[place(3, 16), 4, 0x1000, 0x1000]);
    capability(0x40, 0xc0, &[place(1, 16), 4, 0, 0x1000]);
    capability(0xc0, 0, &[place(1, 16), 0, 0, 0x1000]);
    words
}

fn find(words: &[u32; 64]) -> Result<Places, Error> {
    Places::find(|register| Ok(words[usize::from(register / 4)]))
}

#[test]
fn the_parts_are_found_and_the_first_place_is_preferred() {
    let places = find(&space()).expect("a modern device");
    let place = |offset| Place { base_address: 4, offset, length: 0x1000 };
    assert_eq!(Part::ALL.map(|part| places.of(part)), [0, 0x3000, 0x1000, 0x2000].map(place));
    assert_eq!(places.notify_multiplier, 4);
}

#[test]
fn a_function_without_the_parts_is_no_modern_device() {
    let without = |change: fn(&mut [u32; 64])| {
        let mut words = space();
        change(&mut words);
        find(&words)
    };
    let changes: [fn(&mut [u32; 64]); 6] = [
        |words| words[1] = 0,
        |words| words[13] = 0,
        // One of the three parts that every device must have is too small, or of an unknown type.
        |words| (words[0x4c / 4], words[0xcc / 4]) = (0x37, 0x37),
        |words| words[0x7c / 4] = 1,
        |words| words[0x50 / 4] |= 0x80 << 24,
        // A part names a base address register that does not exist.
        |words| words[0x74 / 4] = 6,
    ];
    assert!(changes.iter().all(|&change| without(change) == Err(Error::NotModern)));
    // A device may have no configuration of its own, and then has no part for it.
    let without = without(|words| words[0x6c / 4] = 0).expect("a modern device");
    assert_eq!(without.of(Part::Device).length, 0);
}

#[test]
fn an_error_of_the_reader_is_passed_on() {
    assert_eq!(Places::find(|_| Err(Error::NoReset)), Err(Error::NoReset));
}

#[test]
fn a_list_that_is_a_loop_ends() {
    let mut words = space();
    words[0xc0 / 4] |= 0x98 << 8;
    assert!(find(&words).is_ok());
}

proptest! {
    #[test]
    fn any_configuration_space_gives_places_or_an_error(
        words in prop::collection::vec(any::<u32>(), 64),
        kinds in any::<bool>(),
    ) {
        let mut words: [u32; 64] = words.try_into().unwrap();
        words[1] |= 1 << 20;
        if kinds {
            words.iter_mut().skip(16).step_by(4).for_each(|word| *word = *word & 0x0700_ff00 | 9);
        }
        if let Ok(places) = find(&words) {
            for part in Part::ALL {
                let Place { base_address, offset, length } = places.of(part);
                prop_assert!(base_address < 6 && offset.checked_add(length).is_some());
            }
        }
    }
}
