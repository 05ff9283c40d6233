//! The rules of the specification, one test for each.
use super::*;

const RWX: Rights = Rights::ALL;
const RW: Rights = Rights::READ_WRITE;
const R: Rights = Rights::READ;

#[test]
fn smoke() {
    let world = World::new(3);
    assert_eq!(world.map(0, 0x80_0000, 1, 0x80_0000, 12, RWX).raw(), 0x80_00c7);
    assert_eq!(world.at(1, 0x80_0123), Some((0x80_0123, RWX)));
    world.map(1, 0x80_0000, 2, 0x7000, 12, RW);
    assert_eq!(world.touch(2, 0x7000, Rights::WRITE), Some(0x80_0000));
    assert_eq!(world.touch(2, 0x7000, Rights::EXECUTE), None);
    assert_eq!(world.status(1, 0x80_0000, 12), RWX);
    assert_eq!(world.status(1, 0x80_0000, 12), Rights::NONE);
    world.unmap(1, 0x80_0000, 12, RWX, false);
    assert_eq!(world.at(2, 0x7000), None);
    assert_eq!(world.touch(2, 0x7000, Rights::WRITE), None);
    assert!(world.at(1, 0x80_0000).is_some());
    world.map(0, 0x4000_0000, 1, 0x4000_0000, 30, RWX);
    assert_eq!(world.page_bits(1, 0x4000_0000), 30);
    world.map(1, 0x4020_3000, 2, 0x9000, 12, R);
    assert_eq!(world.at(2, 0x9000), Some((0x4020_3000, R)));
    world.map(1, 0x4040_0000, 2, 0x40_0000, 21, R);
    world.unmap(1, 0x4040_1000, 12, RWX, true);
    assert_eq!(world.at(1, 0x4040_1000), None);
    assert_eq!(world.at(2, 0x40_1000), None);
    assert_eq!(world.at(2, 0x40_2000), Some((0x4040_2000, R)));
    assert_eq!(world.page_bits(1, 0x4060_0000), 21);
    world.end();
}
