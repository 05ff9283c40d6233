//! The search for what is free in the crate's bitmaps, compared with a search bit by bit.

use rsext4::bitmap::{BlockBitmap, InodeBitmap};

/// Bytes of which few or many bits are set, or all of some bytes.
fn bytes(round: u32, state: &mut u64) -> Vec<u8> {
    let mut byte = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let [_, _, _, _, one, other, third, _] = state.to_le_bytes();
        match round % 4 {
            0 => one,
            1 => one | other,
            2 => one & other & third,
            _ => [0, 0xff][usize::from(one) % 2],
        }
    };
    (0..24 + round % 3).map(|_| byte()).collect()
}

#[test]
fn the_first_of_what_is_free_is_found() {
    let mut state = 1;
    for round in 0..300 {
        let mut data = bytes(round, &mut state);
        let number = 150 + round % 70;
        let blocks = BlockBitmap::new(&mut data, number);
        for count in [1, 2, 3, 7, 8, 9, 40, 64, 65, 150] {
            let fits = |start: &u32| (0..count).all(|at| blocks.is_free(start + at) == Some(true));
            assert_eq!(blocks.find_contiguous_free(count), (0..number).find(fits), "{round} {count}");
        }
        let inodes = InodeBitmap::new(&mut data, number);
        for from in [0, 1, 10, 63, 64, number - 1, number] {
            let expected = (from..number).find(|&at| inodes.is_free(at) == Some(true));
            assert_eq!(inodes.find_first_free_from(from), expected, "{round} {from}");
        }
    }
}
