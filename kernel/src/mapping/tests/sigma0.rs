//! What sigma0 itself uses of the memory that it has.
use super::super::table;
use super::*;
use crate::arch::page_entry::MemoryType;

/// sigma0's own pages, of 2 MiB.
const PAGES: u64 = 100;
const READ_WRITE: Rights = Rights::READ.or(Rights::WRITE);

/// sigma0 has read its pages from 1 GiB on, and written to the last one. Interrupts come all the
/// time.
fn world() -> World {
    let world = World::new(1);
    for page in 0..PAGES {
        use_page(&world, page);
    }
    world.touch(0, GIB + (PAGES - 1) * MIB2, Rights::WRITE);
    world.machine.interrupts(1, 1);
    world
}

fn use_page(world: &World, page: u64) {
    let address = GIB + page * MIB2;
    assert_eq!(sigma0_fault(world.spaces[0], VirtAddr::new(address)), Ok(true));
    world.touch(0, address, Rights::READ);
}

fn memory_type_of(world: &World, page: u64) -> Option<MemoryType> {
    let place = table::find(world.spaces[0], VirtAddr::new(GIB + page * MIB2), 1);
    place.entry.is_page(place.level).then(|| place.entry.memory_type(place.level))
}

/// The outcome of an operation, and how often it gave way; `between` is done each time.
fn in_turns<T>(
    mut operation: impl FnMut(Pin<&mut Cursor>) -> Progress<T>,
    mut between: impl FnMut(u64),
) -> (T, u64) {
    let mut cursor = pin!(Cursor::new());
    let mut turns = 0;
    loop {
        match operation(cursor.as_mut()) {
            Progress::Done(result) => return (result, turns),
            Progress::Preempted => turns += 1,
        }
        assert!(cursor.is_active());
        between(turns);
    }
}

/// Rules: 8.6.
#[test]
fn k2_its_use_is_looked_through_in_pieces() {
    let world = world();
    let fpage = Fpage::memory(GIB, 30).with_rights(Rights::NONE);
    let look = |cursor: Pin<&mut Cursor>| unmap(cursor, world.spaces[0], fpage, false);
    let (status, turns) = in_turns(look, |_| ());
    assert!(status.contains(READ_WRITE), "also that of the last page: {status:?}");
    assert!(turns > PAGES / 4, "{turns} turns");
    // The status has been reset. A new use is seen, wherever the walk stands, by this call or the
    // next one.
    assert_eq!(world.status(0, GIB, 30), Rights::NONE);
    let (status, _) = in_turns(look, |turn| {
        if turn == 10 {
            world.touch(0, GIB, Rights::WRITE);
        }
    });
    assert!(status.or(world.status(0, GIB, 30)).contains(Rights::WRITE));
    world.end();
}

#[test]
fn k2_its_pages_get_another_type_in_pieces() {
    let world = world();
    let region = x2::Region::containing(GIB, 30);
    let set =
        |cursor: Pin<&mut Cursor>, memory_type| set_memory_type(cursor, world.spaces[0], region, memory_type);
    let uncacheable = |cursor: Pin<&mut Cursor>| set(cursor, MemoryType::UNCACHEABLE);
    let (result, turns) = in_turns(uncacheable, |_| {
        // A page that sigma0 uses again meanwhile has the new type.
        use_page(&world, 0);
        assert_eq!(memory_type_of(&world, 0), Some(MemoryType::UNCACHEABLE));
    });
    assert_eq!(result, Ok(()));
    assert!(turns > PAGES / 4, "{turns} turns");
    for page in 0..PAGES {
        assert!(memory_type_of(&world, page).is_none_or(|of| of == MemoryType::UNCACHEABLE), "page {page}");
    }
    // Another call sets another type in the midst of the first. The call that ends last has set its
    // type for all pages.
    (0..PAGES).for_each(|page| use_page(&world, page));
    let (result, turns) = in_turns(
        |cursor| set(cursor, MemoryType::WRITE_THROUGH),
        |turn| {
            if turn == 10 {
                World::finish(|cursor| set(cursor, MemoryType::WRITE_COMBINING)).unwrap();
                (0..PAGES).for_each(|page| use_page(&world, page));
            }
        },
    );
    assert_eq!(result, Ok(()));
    assert!(turns > 10, "{turns} turns");
    for page in 0..PAGES {
        let found = memory_type_of(&world, page);
        assert!(found.is_none_or(|of| of == MemoryType::WRITE_THROUGH), "page {page}: {found:?}");
    }
    World::finish(|cursor| set(cursor, MemoryType::USUAL)).unwrap();
    world.end();
}
