//! Requests in their slots, pools and descriptions.

use super::*;
use crate::description::{Family, Geometry};
use crate::pools::{Piece, Pools};
use crate::request::{SEGMENTS, Slot};
use proptest::prelude::*;

fn operation() -> impl Strategy<Value = Operation> {
    proptest::sample::select(vec![
        Operation::Read,
        Operation::Write { through: false },
        Operation::Write { through: true },
        Operation::Flush,
        Operation::Discard,
    ])
}

proptest! {
    #[test]
    fn a_request_is_read_as_it_was_written(
        operation in operation(),
        (sector, sectors, offset) in any::<(u64, u32, u16)>(),
        pages in proptest::collection::vec(any::<(u16, u32)>(), 0..SEGMENTS),
    ) {
        let mut segments = Segments::default();
        for &(pool, page) in &pages {
            prop_assert!(segments.push(pool, page));
        }
        let slot = Slot::default();
        slot.write(&Request { operation, sector, sectors, offset, segments });
        let read = slot.read().unwrap();
        prop_assert_eq!((read.operation, read.sector, read.sectors, read.offset), (operation, sector, sectors, offset));
        prop_assert_eq!(read.segments.as_slice(), segments.as_slice());
        prop_assert_eq!(read.segments.pages(), pages.len() as u64);
    }

    /// The pieces of a request are the bytes of its pages, in their order, wherever the pool's runs
    /// begin.
    #[test]
    fn pieces_are_the_bytes_of_the_pages(
        runs in proptest::collection::vec(1u64..4, 1..6),
        pages in proptest::collection::vec(0u32..16, 1..12),
        offset in 0u16..8,
        tail in 0u64..8,
        longest in 1u64..20,
    ) {
        let offset = offset * 512;
        let total: u64 = runs.iter().sum();
        // Each run is at an address of its own; runs of even numbers are directly after another.
        let mut places = Vec::new();
        let mut address = 0x10_0000;
        for (number, pages) in runs.iter().enumerate() {
            address += if number % 2 == 0 { 0x10_0000 } else { 0 };
            for _ in 0..*pages {
                places.push(address);
                address += PAGE;
            }
        }
        let mut pools = Pools::default();
        let find = |offset: u64| {
            let mut end = 0;
            let run = runs.iter().find(|run| { end += *run * PAGE; offset < end });
            run.map(|_| (places[(offset / PAGE) as usize] + offset % PAGE, end - offset)).ok_or(())
        };
        prop_assert_eq!(pools.add(total * PAGE, find), Ok(Some(0)));
        let bytes = (pages.len() as u64 * PAGE - u64::from(offset)).saturating_sub(tail * SECTOR).max(SECTOR);
        let mut request = request(Operation::Read, 0, (bytes / SECTOR) as u32, &pages);
        request.offset = offset;
        let mut pieces = Vec::new();
        let is_inside = pages.iter().all(|&page| u64::from(page) < total);
        let resolved = pools.resolve(&request, longest * SECTOR, &mut pieces);
        prop_assert_eq!(resolved.is_some(), is_inside);
        if is_inside {
            prop_assert!(pieces.iter().all(|piece| (1..=longest * SECTOR).contains(&piece.length)));
            let sectors = pieces.iter().flat_map(|piece| (piece.address..piece.address + piece.length).step_by(512));
            let all = pages.iter().flat_map(|&page| (0..SECTORS).map(move |sector| (page, sector)));
            let expected = all.map(|(page, sector)| places[page as usize] + sector * SECTOR);
            let expected: Vec<u64> = expected.skip(usize::from(offset) / 512).take((bytes / SECTOR) as usize).collect();
            prop_assert_eq!(sectors.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_description_is_read_as_it_was_written(
        sectors in 0u64..1 << 50,
        (logical, physical) in (9u32..13, 9u32..13),
        (read_only, flushes, discard) in any::<(bool, bool, u32)>(),
        family in prop_oneof![Just(Family::Virtio), Just(Family::Nvme)],
        numbers in any::<(u16, u8, u8)>(),
    ) {
        let (cylinders, heads, track) = numbers;
        let geometry = Some(Geometry { cylinders, heads, sectors: track }).filter(|_| numbers != (0, 0, 0));
        let (logical, physical) = (1 << logical, (1 << physical).max(1 << logical));
        let sectors = sectors & !(u64::from(logical) / 512 - 1);
        let one = Description { family, sectors, logical, physical, read_only, flushes, discard, geometry };
        prop_assert_eq!(Description::from_words(one.words()), Some(one));
    }
}

#[test]
fn neighbouring_pages_are_one_segment() {
    let mut segments = Segments::default();
    for page in [7, 8, 9, 11, 10, 11] {
        assert!(segments.push(0, page));
    }
    let counts: Vec<_> = segments.as_slice().iter().map(|segment| (segment.page, segment.count)).collect();
    assert_eq!(counts, [(7, 3), (11, 1), (10, 2)]);
    let mut segments = Segments::default();
    assert!((0..SEGMENTS as u32).all(|page| segments.push(0, 2 * page)));
    assert!(!segments.push(0, 1000) && segments.push(0, 2 * SEGMENTS as u32 - 1));
}

#[test]
fn a_pool_whose_pages_are_not_at_pages_is_refused() {
    let mut pools = Pools::default();
    assert_eq!(pools.add(PAGE, |_| Ok::<_, ()>((512, PAGE))), Ok(None));
    assert_eq!(pools.add(PAGE, |_| Ok::<_, ()>((0, 512))), Ok(None));
    assert_eq!(pools.add(100, |_| Ok::<_, ()>((0, PAGE))), Ok(None));
    assert_eq!(pools.add(0, |_| Ok::<_, ()>((0, PAGE))), Ok(None));
    assert_eq!(pools.add(PAGE, |_| Err::<(u64, u64), _>(7)), Err(7));
    for number in 0..16 {
        assert_eq!(pools.add(PAGE, |_| Ok::<_, ()>((0, PAGE))), Ok(Some(number)));
    }
    assert_eq!(pools.add(PAGE, |_| Ok::<_, ()>((0, PAGE))), Ok(None), "there are sixteen");
    let mut pieces = Vec::new();
    let request = request(Operation::Read, 0, 8, &[0]);
    assert_eq!(pools.resolve(&request, u64::MAX, &mut pieces), Some(()));
    assert_eq!(pieces, [Piece { address: 0, length: PAGE }]);
}

#[test]
fn impossible_descriptions_are_refused() {
    let good = description(8).words();
    assert!(Description::from_words(good).is_some());
    for (word, value) in [(0, u64::MAX), (1, 0), (1, 256), (1, 513), (1, 1 << 40), (2, 3), (4, 1 << 32)] {
        let mut words = good;
        words[word] = value;
        assert_eq!(Description::from_words(words), None, "word {word}");
    }
    let mut words = good;
    (words[0], words[1]) = (9, 4096);
    assert_eq!(Description::from_words(words), None, "a part of a block");
}
