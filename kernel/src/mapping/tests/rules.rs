//! The rules of the specification, a test for each.
use super::check::check;
use super::*;
use x2::Region;

const RWX: Rights = Rights::ALL;
const RW: Rights = Rights::READ_WRITE;
const RX: Rights = Rights::READ_EXECUTE;
const R: Rights = Rights::READ;
const NONE: Rights = Rights::NONE;

impl World {
    /// A map item into a window.
    fn map_to(&self, item: MapItem, window: Fpage) -> Fpage {
        self.try_map(1, 2, item, window).unwrap()
    }

    fn check(&self) {
        check(&self.spaces, &[0, GIB, 2 * GIB, 3 * GIB]);
    }
}

fn item(source: u64, bits: u32, send_base: u64) -> MapItem {
    MapItem::map(Fpage::memory(source, bits).with_rights(RWX), send_base)
}

#[test]
fn pages_come_and_go() {
    let world = World::new(2);
    assert_eq!(world.map(0, 0x80_0000, 1, 0x80_0000, 12, RWX).raw(), 0x80_00c7);
    assert_eq!(world.at(1, 0x80_0123), Some((0x80_0123, RWX)));
    world.map(1, 0x80_0000, 2, 0x7000, 12, RW);
    assert_eq!(world.touch(2, 0x7000, Rights::WRITE), Some(0x80_0000));
    assert_eq!(world.touch(2, 0x7000, Rights::EXECUTE), None);
    world.unmap(1, 0x80_0000, 12, RWX, false);
    assert_eq!(world.at(2, 0x7000), None);
    assert_eq!(world.touch(2, 0x7000, Rights::WRITE), None, "no processor remembers");
    assert!(world.at(1, 0x80_0000).is_some());
    world.end();
}

/// Rules: 7.32, 7.33.
#[test]
fn rule_7_33_placement() {
    let world = World::new(2);
    // Space 1 has everything at its own address.
    let everything = MapItem::map(Fpage::COMPLETE.with_rights(RWX), 0);
    for (base, bits) in [(0x20_0000, 21), (0x4000_0000, 21), (0x1200_0000, 25)] {
        world.map(0, base, 1, base, bits, RWX);
    }
    let small = |base| Fpage::memory(base, 12);
    // (item, window, where in space 2, what is there)
    let examples = [
        (item(0x4000_0000, 12, 0x7fff_3000), Fpage::COMPLETE, 0x7fff_3000, 0x4000_0000),
        (item(0x4000_0000, 12, 0x5000), Fpage::memory(0x10_0000, 16), 0x10_5000, 0x4000_0000),
        (item(0x4000_1000, 12, 0x2_5000), Fpage::memory(0x10_0000, 16), 0x10_5000, 0x4000_1000),
        (item(0x20_0000, 21, 0x345_6000), small(0x70_0000), 0x70_0000, 0x25_6000),
        (item(0x30_0000, 16, 0x123_4000), Fpage::memory(0x90_0000, 16), 0x90_f000, 0x30_f000),
        (MapItem::map(everything.fpage, 0x1234_5000), small(0x80_0000), 0x80_0000, 0x1234_5000),
        (item(0x20_0000, 13, 0x5000), Fpage::memory(0x40_0000, 16), 0x40_5000, 0x20_1000),
    ];
    for (item, window, target, memory) in examples {
        let delivered = world.map_to(item, window);
        assert_eq!(world.at(2, target), Some((memory, RWX)), "{item:?} to {window:?}");
        assert!(delivered.region().unwrap().contains(target), "{delivered:?}");
        world.check();
    }
    assert_eq!(world.map_to(everything, Fpage::COMPLETE), Fpage::COMPLETE.with_rights(RWX));
    assert_eq!(world.at(2, 0x20_3000), Some((0x20_3000, RWX)));
    assert_eq!(world.at(2, 0x13ff_f000), Some((0x13ff_f000, RWX)));
    world.check();
    world.end();
}

/// Rules: 7.34.
#[test]
fn rule_7_34_rights_are_those_of_both_and_add_up() {
    let world = World::new(2);
    world.map(0, GIB, 1, GIB, 12, RX);
    assert_eq!(world.map(1, GIB, 2, 0x5000, 12, RW).rights(), R);
    assert_eq!(world.at(2, 0x5000), Some((GIB, R)));
    // The same item, with more rights, from the same parent: the page has both sets.
    assert_eq!(world.map(1, GIB, 2, 0x5000, 12, RX).rights(), RX);
    assert_eq!(world.at(2, 0x5000), Some((GIB, RX)));
    // Fewer rights take nothing away from the mapping that is there.
    world.map(1, GIB, 2, 0x5000, 12, R);
    assert_eq!(world.at(2, 0x5000), Some((GIB, RX)));
    // A right that the sender does not have makes no mapping.
    assert_eq!(world.map(1, GIB, 2, 0x6000, 12, Rights::WRITE), Fpage::NIL);
    assert_eq!(world.map(1, GIB, 2, 0x6000, 12, NONE), Fpage::NIL);
    assert_eq!(world.at(2, 0x6000), None);
    // The processor cannot forbid reading.
    assert_eq!(world.map(1, GIB, 2, 0x6000, 12, Rights::EXECUTE).rights(), RX);
    world.end();
}

/// Rules: 7.34.
#[test]
fn rule_7_34_more_rights_on_a_part_of_a_large_page() {
    let world = World::new(2);
    world.map(0, GIB, 1, GIB, 21, RWX);
    world.map(1, GIB, 2, 0x20_0000, 21, R);
    world.map(1, GIB + 0x3000, 2, 0x20_3000, 12, RW);
    assert_eq!(world.at(2, 0x20_3000), Some((GIB + 0x3000, RW)));
    assert_eq!(world.at(2, 0x20_4000), Some((GIB + 0x4000, R)));
    assert_eq!(world.page_bits(2, 0x20_3000), 12);
    // In the other direction, too, the small page keeps its rights.
    world.map(1, GIB, 2, 0x20_0000, 21, RX);
    assert_eq!(world.at(2, 0x20_3000), Some((GIB + 0x3000, RWX)));
    assert_eq!(world.at(2, 0x20_4000), Some((GIB + 0x4000, RX)));
    world.check();
    world.end();
}

/// Rules: 7.34, 8.2d.
#[test]
fn rule_7_34_what_the_holder_has_given_up_comes_again() {
    for (bits, held) in [(12, 12), (21, 12), (21, 21)] {
        let world = World::new(2);
        world.map(0, GIB, 1, GIB, bits, RWX);
        world.map(1, GIB, 2, 0x5000, 12, RWX);
        assert_eq!(world.touch(1, GIB, Rights::WRITE), Some(GIB));
        world.unmap(1, GIB, held, Rights::WRITE, true);
        assert_eq!(world.at(1, GIB), Some((GIB, RX)));
        assert_eq!(world.at(2, 0x5000), Some((GIB, RX)));
        assert_eq!(world.touch(1, GIB, Rights::WRITE), None);
        assert_eq!(world.map(0, GIB, 1, GIB, 12, RWX).rights(), RWX);
        assert_eq!(world.touch(1, GIB, Rights::WRITE), Some(GIB), "{held} of {bits} bits");
        assert_eq!(world.at(2, 0x5000), Some((GIB, RX)), "what was derived stays as it is");
        world.check();
        world.end();
    }
}

/// Rules: 7.35.
#[test]
fn rule_7_35_no_effect_and_no_error() {
    let mut world = World::new(2);
    let kip = Region { base: 0x9000, size_log2: 12 };
    let utcb = Region { base: 0x20_0000, size_log2: 14 };
    world.map(0, GIB, 1, GIB, 21, RWX);
    for space in [1, 2] {
        world.spaces[space].set_areas(Some(kip), Some(utcb));
        let frame = PhysAddr::new(0x123_4000);
        world.spaces[space].insert_kernel_frame(VirtAddr::new(kip.base), frame, RX).unwrap();
    }
    let nothing = [
        (MapItem::map(Fpage::NIL, 0x5000), Fpage::COMPLETE),
        (item(GIB, 12, 0x5000), Fpage::NIL),
        (item(GIB, 12, 0x5000), Fpage::from_raw(0x5000 | 11 << 4)),
        (MapItem::map(Fpage::from_raw(GIB | 11 << 4 | 7), 0x5000), Fpage::COMPLETE),
        (item(GIB, 12, 0x5000), Fpage::COMPLETE_IO),
        (item(GIB, 12, 0x5000), Fpage::memory(1 << 47, 21)),
        (item(GIB, 12, 0), Fpage::memory(crate::arch::USER_END, 12)),
        (item(GIB, 12, 0), Fpage::memory(u64::MAX, 12)),
        // The items have pages that the sender does not have, among them its KIP.
        (item(GIB + MIB2, 12, 0x5000), Fpage::COMPLETE),
        (item(0x9000, 12, 0x5000), Fpage::COMPLETE),
        (item(u64::MAX, 21, 0x5000), Fpage::COMPLETE),
        // The target is the KIP or the UTCB area.
        (item(GIB, 12, 0x9000), Fpage::COMPLETE),
        (item(GIB, 12, 0x20_3000), Fpage::COMPLETE),
    ];
    for (item, window) in nothing {
        assert_eq!(world.map_to(item, window), Fpage::NIL, "{item:?} {window:?}");
        assert_eq!(world.try_map(1, 1, item, window).unwrap(), Fpage::NIL, "to itself");
    }
    assert_eq!(world.at(2, 0x5000), None);
    assert_eq!(world.at(2, 0x9000), Some((0x123_4000, RX)));
    // An item that covers an area goes around it, in smaller pages.
    world.map(1, GIB, 2, 0x20_0000, 21, RWX);
    assert_eq!(world.at(2, 0x20_3000), None);
    assert_eq!(world.at(2, 0x20_4000), Some((GIB + 0x4000, RWX)));
    assert_eq!(world.unmap(2, 0, 32, RWX, true), NONE);
    assert_eq!(world.at(2, 0x20_4000), None);
    assert_eq!(world.at(2, 0x9000), Some((0x123_4000, RX)));
    for space in [1, 2] {
        let memory = world.spaces[space];
        assert_eq!(memory.remove_kernel_frame(VirtAddr::new(kip.base)), Some(PhysAddr::new(0x123_4000)));
        assert_eq!(memory.remove_kernel_frame(VirtAddr::new(kip.base)), None);
    }
    world.destroy(1);
    world.end();
}

/// Rules: 7.36.
#[test]
fn rule_7_36_holes_keep_what_is_there() {
    let world = World::new(2);
    world.map(0, GIB, 1, GIB, 12, RWX);
    world.map(0, GIB + 0x2000, 1, GIB + 0x2000, 12, RWX);
    world.map(0, 2 * GIB, 2, 0x40_0000, 14, R);
    world.map(1, GIB, 2, 0x40_0000, 14, RWX);
    assert_eq!(world.at(2, 0x40_0000), Some((GIB, RWX)));
    assert_eq!(world.at(2, 0x40_1000), Some((2 * GIB + 0x1000, R)));
    assert_eq!(world.at(2, 0x40_2000), Some((GIB + 0x2000, RWX)));
    assert_eq!(world.at(2, 0x40_3000), Some((2 * GIB + 0x3000, R)));
    world.end();
}

/// Rules: 7.37.
#[test]
fn rule_7_37_overmapping_at_any_mixture_of_sizes() {
    let sizes = [12, 21, 30];
    for below in sizes {
        for above in sizes {
            let world = World::new(3);
            world.map(0, GIB, 1, GIB, 30, RWX);
            world.map(1, GIB, 2, 3 * GIB, below, RWX);
            world.map(2, 3 * GIB, 3, 5 * GIB, below, RW);
            world.map(0, 2 * GIB, 1, 2 * GIB, 30, RWX);
            world.map(1, 2 * GIB, 2, 3 * GIB, above, RX);
            assert_eq!(world.at(2, 3 * GIB), Some((2 * GIB, RX)), "{above} over {below}");
            assert_eq!(world.at(3, 5 * GIB), None, "what was derived is gone");
            let behind = 1 << above;
            let kept = above < below;
            assert_eq!(world.at(2, 3 * GIB + behind), kept.then_some((GIB + behind, RWX)));
            assert_eq!(world.at(3, 5 * GIB + behind), kept.then_some((GIB + behind, RW)));
            // A page of 1 GiB over small ones comes in pages of 2 MiB.
            let bits = if (below, above) == (12, 30) { 21 } else { above };
            assert_eq!(world.page_bits(2, 3 * GIB), bits);
            assert_eq!(world.page_bits(1, GIB), 30, "the parent's page stays whole");
            world.check();
            world.end();
        }
    }
}

/// Rules: 7.37.
#[test]
fn rule_7_37_a_large_page_replaces_many_small_ones() {
    let world = World::new(2);
    for page in 0..512 {
        world.map(0, 2 * GIB + (page % 7) * KIB4, 1, GIB + page * KIB4, 12, R);
    }
    world.map(0, GIB, 1, GIB, 21, RW);
    assert_eq!((world.at(1, GIB + 0x5000), world.page_bits(1, GIB)), (Some((GIB + 0x5000, RW)), 21));
    assert_eq!(usage().0, 2, "the page and the root");
    world.end();
}

/// Rules: 7.38.
#[test]
fn rule_7_38_delivered_is_where_the_pages_went() {
    let world = World::new(2);
    world.map(0, GIB, 1, GIB, 21, RX);
    let delivered = world.map_to(item(GIB, 21, 0x5000), Fpage::memory(0x1_0000, 16));
    assert_eq!(delivered, Fpage::memory(0x1_0000, 16).with_rights(RX));
    assert_eq!(world.at(2, 0x1_5000), Some((GIB + 0x5000, RX)));
    assert_eq!(world.map_to(item(GIB, 21, 0x5000), Fpage::NIL), Fpage::NIL);
    world.end();
}

/// Rules: 7.39.
#[test]
fn rule_7_39_grant_moves_the_page_and_keeps_the_children() {
    let mut world = World::new(4);
    world.map(0, GIB, 1, GIB, 12, RWX);
    world.map(1, GIB, 2, 0x2000, 12, RWX);
    world.map(2, 0x2000, 3, 0x3000, 12, RW);
    let nodes = usage().0;
    assert_eq!(world.grant(2, 0x2000, 4, 0x4000, 12, RX).rights(), RX);
    assert_eq!(usage().0, nodes);
    assert_eq!(world.at(2, 0x2000), None);
    assert_eq!(world.at(4, 0x4000), Some((GIB, RX)));
    // The child is the grantee's now, and no longer the grantor's.
    world.destroy(2);
    assert_eq!(world.at(2, 0x3000), Some((GIB, RW)));
    world.unmap(3, 0x4000, 12, RWX, false);
    assert_eq!(world.at(2, 0x3000), None);
    // The grandparent can still take the page back.
    world.unmap(1, GIB, 12, RWX, false);
    assert_eq!(world.at(3, 0x4000), None);
    world.check();
    world.end();
}

/// Rules: 7.39.
#[test]
fn rule_7_39_grant_of_a_part_of_a_large_page() {
    let world = World::new(4);
    world.map(0, GIB, 1, GIB, 21, RWX);
    world.map(1, GIB, 2, 0x20_0000, 21, RWX);
    world.map(2, 0x20_0000, 3, 0x40_0000, 21, RWX);
    world.map(2, 0x20_5000, 3, 0x9000, 12, RWX);
    world.grant(2, 0x20_5000, 4, 0x5000, 12, RWX);
    assert_eq!(world.at(2, 0x20_5000), None);
    assert_eq!(world.at(2, 0x20_6000), Some((GIB + 0x6000, RWX)));
    assert_eq!(world.at(3, 0x40_5000), Some((GIB + 0x5000, RWX)));
    assert_eq!(world.page_bits(3, 0x40_0000), 21, "derived pages are not split");
    world.check();
    // What was derived from the part is the grantee's, at every size, and only that.
    world.unmap(2, 0x20_0000, 21, Rights::WRITE, false);
    assert_eq!(world.at(3, 0x9000), Some((GIB + 0x5000, RWX)));
    assert_eq!(world.at(3, 0x40_5000), Some((GIB + 0x5000, RWX)));
    assert_eq!(world.at(3, 0x40_6000), Some((GIB + 0x6000, RX)));
    world.unmap(4, 0x5000, 12, RWX, false);
    assert_eq!((world.at(3, 0x9000), world.at(3, 0x40_5000)), (None, None));
    assert_eq!(world.at(3, 0x40_6000), Some((GIB + 0x6000, RX)));
    assert!(world.at(4, 0x5000).is_some());
    world.unmap(1, GIB, 21, RWX, false);
    assert_eq!((world.at(4, 0x5000), world.at(2, 0x20_6000), world.at(3, 0x40_6000)), (None, None, None));
    world.check();
    world.end();
}

/// Rules: 7.39.
#[test]
fn rule_7_39_sigma0_keeps_what_it_grants() {
    let world = World::new(2);
    world.grant(0, GIB, 1, GIB, 12, RWX);
    world.grant(0, GIB, 2, GIB, 12, RWX);
    assert!(world.at(1, GIB).is_some() && world.at(2, GIB).is_some());
    world.end();
}

/// Rules: 7.39.
#[test]
fn a_page_that_is_granted_is_not_mapped_by_map_page() {
    let world = World::new(2);
    world.map(0, GIB, 1, GIB, 12, RWX);
    let fpage = Fpage::memory(GIB, 12).with_rights(RWX);
    assert!(!world.map_page(1, 2, MapItem::grant(fpage, 0x2000)));
    assert_eq!(world.at(2, 0x2000), None);
    assert!(world.map_page(1, 2, MapItem::map(fpage, 0x2000)));
    assert_eq!(world.at(2, 0x2000), Some((GIB, RWX)));
    world.check();
    world.end();
}

/// A page that travels between spaces 1 and 2, `depth` times.
fn deep(world: &World, depth: u64) {
    world.map(0, GIB, 1, 0, 12, RWX);
    for step in 0..depth {
        let (from, to) = if step % 2 == 0 { (1, 2) } else { (2, 1) };
        world.map(from, step / 2 * KIB4, to, (step / 2 + u64::from(from == 2)) * KIB4, 12, RWX);
    }
}

/// Rules: 7.40, 7.25, ABI 19.9.
#[test]
fn rule_7_40_depth_is_unbounded_and_preemptible() {
    let world = World::new(2);
    deep(&world, 30_000);
    // Every poll finds an interrupt.
    world.machine.interrupts(1, 1);
    let mut preempted = 0;
    let mut cursor = pin!(Cursor::new());
    let fpage = Fpage::memory(0, 12).with_rights(RWX);
    while let Progress::Preempted = unmap(cursor.as_mut(), world.spaces[1], fpage, false) {
        preempted += 1;
        assert!(cursor.is_active());
    }
    assert!(preempted > 1000);
    assert!(!cursor.is_active());
    assert_eq!(world.at(1, 0), Some((GIB, RWX)));
    assert_eq!(usage().0, 3, "the page, the root, one part of it");
    world.check();
    world.end();
}

/// Rules: 7.40.
#[test]
fn rule_7_40_fan_out_is_unbounded() {
    let world = World::new(3);
    world.map(0, GIB, 1, GIB, 21, RWX);
    for page in 0..20_000 {
        world.map(1, GIB + page % 2 * KIB4, 2, page * KIB4, 12, RWX);
    }
    // Another page is mapped over the target meanwhile.
    world.map(0, 2 * GIB, 2, 7 * KIB4, 12, RWX);
    world.machine.interrupts(99, 2);
    world.unmap(1, GIB, 12, RWX, false);
    for page in 0..20_000 {
        assert_eq!(world.at(2, page * KIB4).is_some(), page % 2 == 1);
    }
    assert_eq!(world.at(2, 7 * KIB4), Some((2 * GIB, RWX)));
    world.unmap(0, GIB, 30, RWX, false);
    assert_eq!((world.at(1, GIB), world.at(2, KIB4)), (None, None));
    world.check();
    world.end();
}

/// Rules: 8.1.
#[test]
fn rule_8_1_unusable_fpages_do_nothing() {
    let world = World::new(1);
    world.map(0, GIB, 1, 0, 21, RWX);
    for raw in
        [0, 7, 0x1007, 3 << 4 | 7, 11 << 4 | 7, 2 << 4 | 7, 16 << 10 | 2 << 4 | 7, 20 << 10 | 2 << 4 | 7]
    {
        let status = World::finish(|cursor| unmap(cursor, world.spaces[1], Fpage::from_raw(raw), true));
        assert_eq!(status, NONE);
    }
    assert_eq!(world.page_bits(1, 0), 21);
    world.unmap(1, 0x1f_ffff, 21, RWX, true);
    assert_eq!(world.at(1, 0), None);
    world.end();
}

/// Rules: 8.3.
#[test]
fn rule_8_3_rights_are_revoked_from_everything_derived() {
    let world = World::new(3);
    world.map(0, GIB, 1, GIB, 12, RWX);
    world.map(1, GIB, 2, 0x2000, 12, RWX);
    world.map(2, 0x2000, 3, 0x3000, 12, RW);
    world.touch(3, 0x3000, Rights::WRITE);
    world.unmap(1, GIB, 12, Rights::WRITE, false);
    assert_eq!(
        (world.at(1, GIB), world.at(2, 0x2000), world.at(3, 0x3000)),
        (Some((GIB, RWX)), Some((GIB, RX)), Some((GIB, R)))
    );
    assert_eq!(world.touch(3, 0x3000, Rights::WRITE), None, "no processor remembers");
    world.unmap(1, GIB, 12, Rights::EXECUTE, true);
    assert_eq!((world.at(1, GIB), world.at(2, 0x2000)), (Some((GIB, RW)), Some((GIB, R))));
    world.unmap(1, GIB, 12, NONE, true);
    assert_eq!(world.at(1, GIB), Some((GIB, RW)));
    world.unmap(1, GIB, 12, R, false);
    assert_eq!((world.at(1, GIB), world.at(2, 0x2000), world.at(3, 0x3000)), (Some((GIB, RW)), None, None));
    world.end();
}

/// Rules: 8.4.
#[test]
fn rule_8_4_large_pages_are_split() {
    for own_bits in [21, 30] {
        let world = World::new(3);
        world.map(0, GIB, 1, GIB, own_bits, RWX);
        world.map(1, GIB, 2, 2 * GIB, own_bits, RWX);
        world.map(2, 2 * GIB, 3, 3 * GIB, own_bits, RWX);
        world.unmap(1, GIB + 0x4000, 13, RWX, false);
        assert_eq!(world.page_bits(1, GIB), own_bits);
        for (space, base) in [(2, 2 * GIB), (3, 3 * GIB)] {
            assert_eq!((world.at(space, base + 0x4000), world.at(space, base + 0x5000)), (None, None));
            assert_eq!(world.at(space, base + 0x6000), Some((GIB + 0x6000, RWX)));
            assert_eq!(world.page_bits(space, base + 0x6000), 12);
            assert_eq!(world.page_bits(space, base + MIB2), if own_bits == 30 { 21 } else { 0 });
        }
        world.check();
        world.unmap(1, GIB + 0x1000, 12, Rights::WRITE, true);
        assert_eq!(world.at(1, GIB + 0x1000), Some((GIB + 0x1000, RX)));
        assert_eq!(world.at(3, 3 * GIB + 0x1000), Some((GIB + 0x1000, RX)));
        assert_eq!(world.at(1, GIB + 0x4000), Some((GIB + 0x4000, RWX)));
        world.check();
        world.end();
    }
}

/// Rules: 8.5.
#[test]
fn rule_8_5_status_is_the_union_of_own_and_derived() {
    let world = World::new(3);
    world.map(0, GIB, 1, GIB, 13, RW);
    world.map(1, GIB, 2, 0x2000, 12, RW);
    world.map(2, 0x2000, 3, 0x3000, 12, RW);
    assert_eq!(world.status(1, GIB, 13), NONE);
    world.touch(3, 0x3000, Rights::READ);
    assert_eq!(world.status(1, GIB, 13), R);
    world.touch(3, 0x3000, Rights::WRITE);
    world.touch(1, GIB + 0x1000, Rights::READ);
    assert_eq!(world.status(1, GIB, 12), RW);
    assert_eq!(world.status(1, GIB + 0x1000, 12), R);
    world.end();
}

/// Rules: 8.6.
#[test]
fn rule_8_6_each_invoker_has_its_own_status() {
    let world = World::new(3);
    world.map(0, GIB, 1, GIB, 12, RW);
    world.map(1, GIB, 2, 0x2000, 12, RW);
    world.map(2, 0x2000, 3, 0x3000, 12, RW);
    world.touch(3, 0x3000, Rights::WRITE);
    for (space, address) in [(2, 0x2000), (1, GIB), (3, 0x3000)] {
        assert_eq!(world.status(space, address, 12), RW);
        assert_eq!(world.status(space, address, 12), NONE);
    }
    world.touch(3, 0x3000, Rights::READ);
    for (space, address) in [(3, 0x3000), (2, 0x2000), (1, GIB)] {
        assert_eq!(world.status(space, address, 12), R);
    }
    // The status of a page that is removed is not lost.
    world.touch(3, 0x3000, Rights::WRITE);
    assert_eq!(world.unmap(3, 0x3000, 12, RWX, true), RW);
    assert_eq!(world.status(2, 0x2000, 12), RW);
    world.unmap(2, 0x2000, 12, RWX, true);
    assert_eq!(world.status(1, GIB, 12), RW);
    assert_eq!(world.status(1, GIB, 12), NONE);
    world.end();
}

/// Rules: 8.6.
#[test]
fn rule_8_6_pieces_of_a_large_page_keep_their_own_status() {
    let mut world = World::new(2);
    world.map(0, GIB, 1, GIB, 21, RW);
    world.map(1, GIB + 0x3000, 2, 0x3000, 12, RW);
    world.map(1, GIB + 0x4000, 2, 0x4000, 12, RW);
    world.touch(2, 0x3000, Rights::WRITE);
    world.destroy(2);
    assert_eq!(world.status(1, GIB + 0x4000, 12), NONE);
    assert_eq!(world.status(1, GIB + 0x3000, 12), RW);
    assert_eq!(world.status(1, GIB, 21), NONE);
    // The holder's own accesses are known for the whole page only.
    world.touch(1, GIB + 0x9000, Rights::WRITE);
    assert_eq!(world.status(1, GIB + 0x4000, 12), RW);
    assert_eq!(world.status(1, GIB, 21), RW);
    assert_eq!(world.status(1, GIB + 0x4000, 12), NONE);
    world.end();
}

/// Rules: 8.7.
#[test]
fn rule_8_7_reading_an_executable_page_may_be_executing_it() {
    let world = World::new(2);
    world.map(0, GIB, 1, GIB, 12, RWX);
    world.map(0, GIB, 2, GIB, 12, RW);
    for space in [1, 2] {
        world.touch(space, GIB, Rights::READ);
    }
    assert_eq!(world.status(1, GIB, 12), RX);
    assert_eq!(world.status(2, GIB, 12), R);
    world.end();
}

/// Rules: 8.8.
#[test]
fn rule_8_8_areas_have_no_status() {
    let world = World::new(1);
    world.spaces[1].set_areas(None, Some(Region { base: 0x4000, size_log2: 14 }));
    world.spaces[1].insert_kernel_frame(VirtAddr::new(0x5000), PhysAddr::new(0x123_4000), RW).unwrap();
    world.touch(1, 0x5000, Rights::WRITE);
    assert_eq!(world.unmap(1, 0x4000, 14, RWX, true), NONE);
    assert_eq!(world.at(1, 0x5000), Some((0x123_4000, RW)));
    world.end();
}

/// Rules: 6.6.
#[test]
fn rule_6_6_kernel_frames_never_replace_a_users_page() {
    let world = World::new(1);
    world.map(0, GIB, 1, 0x20_0000, 21, RWX);
    let memory = world.spaces[1];
    let (address, frame) = (VirtAddr::new(0x20_3000), PhysAddr::new(0x123_4000));
    assert_eq!(memory.insert_kernel_frame(address, frame, RW), Err(OutOfMemory));
    assert_eq!(memory.kernel_frame(address), None);
    assert_eq!(memory.remove_kernel_frame(address), None);
    world.unmap(1, 0x20_3000, 12, RWX, true);
    memory.insert_kernel_frame(address, frame, RW).unwrap();
    assert_eq!(memory.kernel_frame(address), Some(frame));
    assert_eq!(memory.kernel_frame(VirtAddr::new(0x20_4000)), None);
    assert_eq!(memory.insert_kernel_frame(address, frame, RW), Err(OutOfMemory));
    assert_eq!(memory.remove_kernel_frame(address), Some(frame));
    world.end();
}

#[test]
fn a_processor_that_cannot_forbid_execution() {
    let world = World::new(2);
    crate::arch::page_entry::configure(false, false);
    world.map(0, GIB, 1, GIB, 30, RW);
    assert_eq!((world.at(1, GIB), world.page_bits(1, GIB)), (Some((GIB, RWX)), 21));
    world.spaces[2].set_owned(true);
    let item = x2::extension::MapItem::new(
        x2::extension::MapOperation::Map,
        Fpage::memory(0x5000, 12).with_rights(RW),
        1,
        GIB,
    );
    for rights in [RWX, RWX, RX] {
        World::finish(|cursor| control(cursor, world.spaces[1], world.spaces[2], &item, false)).unwrap();
        assert_eq!(world.at(2, 0x5000), Some((GIB, RWX)));
        world.unmap(1, GIB, 12, RWX.without(rights), true);
    }
    world.end();
}

/// Rules: ABI 2.
#[test]
fn sigma0_has_everything_but_the_kernels_memory() {
    let world = World::new(1);
    let sigma0 = world.spaces[0];
    assert_eq!(sigma0_fault(sigma0, VirtAddr::new(0x12_3456)), Ok(true));
    assert_eq!(world.at(0, 0x12_3456), Some((0x12_3456, RWX)));
    assert_eq!(world.page_bits(0, 0), 21);
    assert_eq!(sigma0_fault(sigma0, VirtAddr::new(0xfd_0000_1000)), Ok(true), "devices too");
    assert_eq!(sigma0_fault(sigma0, VirtAddr::new(KERNEL.start.value())), Ok(false));
    assert_eq!(sigma0_fault(sigma0, VirtAddr::new(KERNEL.end.value() - 1)), Ok(false));
    assert_eq!(sigma0_fault(sigma0, VirtAddr::new(crate::arch::USER_END)), Ok(false));
    assert_eq!(sigma0_fault(sigma0, VirtAddr::new(1 << 46)), Ok(false), "beyond what nodes can name");
    sigma0.set_areas(Some(Region { base: 0x7000_0000, size_log2: 12 }), None);
    assert_eq!(sigma0_fault(sigma0, VirtAddr::new(0x7000_0000)), Ok(false), "its KIP is not memory");
    assert_eq!(sigma0_fault(sigma0, VirtAddr::new(0x7000_1000)), Ok(true));
    // sigma0 cannot give the kernel's memory away, either.
    world.map(0, 0, 1, 0, 30, RWX);
    assert_eq!(world.at(1, KERNEL.start.value()), None);
    assert_eq!(world.at(1, KERNEL.end.value()), Some((KERNEL.end.value(), RWX)));
    assert_eq!(world.page_bits(1, 0), 21);
    let frame = PhysAddr::new(KERNEL.start.value());
    sigma0.insert_kernel_frame(VirtAddr::new(0x7000_0000), frame, RX).unwrap();
    world.touch(0, 0x7000_0000, R);
    assert_eq!(world.status(0, 0x4000_0000, 30), NONE);
    world.touch(0, 0x7000_1000, R);
    assert_eq!(world.status(0, 0x4000_0000, 30), RX);
    assert_eq!(world.status(0, 0x4000_0000, 30), NONE);
    // Nothing is mapped into the space, nor taken from it.
    let back = MapItem::map(Fpage::memory(0, 12).with_rights(RWX), 0x12_3000);
    assert_eq!(world.try_map(1, 0, back, Fpage::COMPLETE).unwrap(), Fpage::NIL);
    world.unmap(0, 0, 64, RWX, true);
    assert_eq!(world.at(1, KERNEL.end.value()), None);
    assert!(world.at(0, 0x12_3456).is_some());
    world.end();
}

/// Rules: 5.16.
#[test]
fn destruction_revokes_everything_derived() {
    let mut world = World::new(3);
    world.map(0, GIB, 1, GIB, 30, RWX);
    world.map(1, GIB, 2, 0, 22, RWX);
    world.map(2, 0x1000, 3, 0x1000, 12, RWX);
    world.map(2, 0x20_0000, 3, 0x20_0000, 21, RWX);
    world.machine.interrupts(7, 2);
    world.destroy(1);
    assert_eq!((world.at(1, 0), world.at(2, 0x1000), world.at(2, 0x20_0000)), (None, None, None));
    assert_eq!(usage().0, 0);
    world.end();
}

/// A page from which another is derived is not unmapped by the short form: what is derived goes,
/// too. Rules: 8.1, 8.3.
#[test]
fn unmap_page_leaves_derived_pages_to_the_general_way() {
    let world = World::new(2);
    world.map(0, GIB, 1, 0x1000, 12, RWX);
    world.map(0, GIB + 0x1000, 1, 0x2000, 12, RWX);
    world.map(1, 0x1000, 2, 0x2000, 12, RWX);
    let fpage = Fpage::memory(0x1000, 12).with_rights(RWX);
    for flush in [false, true] {
        assert_eq!(world.unmap_page(1, fpage, flush), None);
    }
    assert_eq!(world.at(2, 0x2000).map(|(_, rights)| rights), Some(RWX), "nothing was done");
    world.unmap_in_general(1, fpage, false);
    assert_eq!(world.at(2, 0x2000), None);
    assert!(world.unmap_page(1, fpage, true).is_some(), "nothing is derived any more");
    assert_eq!(world.at(1, 0x1000), None);
    world.end();
}

/// The last page of a table is flushed by the short form only if the table then stays.
#[test]
fn unmap_page_with_flush_leaves_tables_that_go_to_the_general_way() {
    let world = World::new(1);
    let page = |address| Fpage::memory(address, 12).with_rights(RWX);
    for address in [0x1000, 0x20_1000] {
        world.map(0, GIB + address, 1, address, 12, RWX);
        assert_eq!(world.unmap_page(1, page(address), true), None);
        world.unmap_in_general(1, page(address), true);
        // Now the table is the space's spare one.
        world.map(0, GIB + address, 1, address, 12, RWX);
        world.map(0, GIB + address, 1, address + 0x1000, 12, RWX);
        assert!(world.unmap_page(1, page(address), true).is_some());
    }
    world.end();
}
