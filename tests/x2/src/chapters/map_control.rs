//! Tests of MapControl (docs/src/architecture.md, K8; docs/src/reference/extensions.md,
//! "MapControl").

use crate::framework::arena::{self, read_at, write_at};
use crate::framework::confined;
use crate::framework::fixture::{Space, await_state, new_id, spawn};
use crate::framework::tests;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::{extension, kip, space, syscall, thread, utcb};
use x2::control::ThreadState;
use x2::extension::{MapAnswer, MapItem, MapOperation, SpaceOption};
use x2::protocol;
use x2::{ErrorCode, Fpage, Rights, ThreadId, Time};

tests! {
    MCT0001 [EXT 4.1] "the owner maps its pages into the space" maps;
    MCT0002 [EXT 4.1] "rights are the item's and the owner's both" rights;
    MCT0003 [EXT 4.2] "unmap takes pages away and tells what they were" unmaps;
    MCT0004 [EXT 4.2] "protect reduces rights and never adds any" protects;
    MCT0005 [EXT 4.2] "referenced and dirty are told, and cleared when asked" status;
    MCT0006 [EXT 4.1] "a run is many pages in one item" run;
    MCT0007 [EXT 4.3] "a batch ends at the first wrong item; earlier ones stand" wrong_item;
    MCT0008 [EXT 4.4] "only the owner may" owner_only;
    MCT0009 [EXT 4.4] "items must be the caller's own memory, aligned, not too many" items_array;
    MCT0010 [EXT 4.5] "KIP, UTCB area and addresses beyond the user's are refused" forbidden_targets;
    MCT0011 [EXT 4.6] "physical addresses are told to callers that may see them" physical;
    MCT0012 [EXT 4.1] "a page that the owner does not hold is left out" holes;
    MCT0013 [EXT 4.1] "the owner's Unmap reaches what it mapped so" unmap_reaches;
    MCT0014 [EXT 4.1] "a page mapped by a message is replaced, and large pages are used" large_pages;
    MCT0015 [EXT 4.4] "512 items are one batch" full_batch;
    MCT0016 [EXT 4.7] "on its own space the caller queries and reduces what is derived from its pages" own_space;
    MCT0017 [EXT 4.1] "one item in registers does what it does in memory" in_registers;
    MCT0018 [EXT 4.3] "one wrong item among thousands is named, and all others are carried out" wrong_among_thousands;
    MCT0019 [EXT 4.8, ABI 19.9] "a long batch gives way to interrupts, and is carried out whole" gives_way;
}

/// An address at which nothing is mapped in a space that a test has made.
const FAR: u64 = 0x4000_0000_0000;

fn target(address: u64, rights: Rights) -> Fpage {
    Fpage::memory(address, 12).with_rights(rights)
}

fn one(space: &Space, item: MapItem) -> Result<u64, Option<ErrorCode>> {
    let mut items = [item];
    extension::map_control(space.first, &mut items).map(|()| items[0].answer).map_err(|(done, error)| {
        assert_eq!(done, 0);
        error
    })
}

fn map(space: &Space, page: arena::Page, address: u64, rights: Rights) {
    let item = MapItem::new(MapOperation::Map, target(address, rights), 1, page.address);
    assert_eq!(one(space, item), Ok(1 << 32), "one page was mapped");
}

fn query(space: &Space, address: u64) -> MapAnswer {
    MapAnswer(one(space, MapItem::new(MapOperation::Query, target(address, Rights::NONE), 1, 0)).unwrap())
}

/// Makes a thread in `space` that accesses memory as it is told: label 1 reads, label 2 writes (MR1
/// address, MR2 value). It answers with the word that is at the address afterwards.
fn worker(space: &Space) -> ThreadId {
    let owner = utcb::my_global_id();
    let thread = confined::spawn(space, move || {
        loop {
            let request = ipc::receive(owner).expect("the test goes on");
            let address = request.word(0);
            if request.tag.label() == 2 {
                write_at(address, request.word(1));
            }
            let value = read_at(address);
            ipc::send(owner, Message::with_words(0, &[value])).expect("the owner is in reach");
        }
    });
    await_state(thread, ThreadState::Waiting);
    thread
}

fn read(worker: ThreadId, address: u64) -> u64 {
    ipc::call(worker, Message::with_words(1, &[address, 0])).unwrap().word(0)
}

fn write(worker: ThreadId, address: u64, value: u64) {
    assert_eq!(ipc::call(worker, Message::with_words(2, &[address, value])).unwrap().word(0), value);
}

/// Makes the worker access memory so that it faults; this thread is its pager. Returns the access
/// that was not allowed.
fn fault(worker: ThreadId, label: u64, address: u64) -> Rights {
    extension::set_handlers(worker, None, Some(utcb::my_global_id())).unwrap();
    let report = ipc::call(worker, Message::with_words(label, &[address, 1])).unwrap();
    assert_eq!((protocol::of(report.tag), report.word(0)), (protocol::PAGE_FAULT, address));
    protocol::fault_access(report.tag)
}

fn maps() {
    let space = confined::space();
    let page = arena::page();
    page.write(5, 0xbeef);
    map(&space, page, FAR, Rights::READ_WRITE);
    let worker = worker(&space);
    assert_eq!(read(worker, FAR + 40), 0xbeef);
    write(worker, FAR + 48, 0xcafe);
    assert_eq!(page.read(6), 0xcafe);
}

fn rights() {
    let space = confined::space();
    let page = arena::page();
    map(&space, page, FAR, Rights::READ);
    let worker = worker(&space);
    assert_eq!(read(worker, FAR), 0);
    assert_eq!(query(&space, FAR).rights(), Rights::READ.bits());
    assert_eq!(fault(worker, 2, FAR), Rights::WRITE);
    let limited = arena::page();
    // SAFETY: the page stays readable.
    unsafe { space::flush(&mut [limited.fpage(Rights::WRITE)]) };
    map(&space, limited, FAR + 4096, Rights::READ_WRITE);
    assert_eq!(query(&space, FAR + 4096).rights(), Rights::READ.bits(), "the owner may not write either");
    // SAFETY: the page is not used any more; the next test that gets it has all rights to it.
    unsafe { space::flush(&mut [limited.fpage(Rights::ALL)]) };
}

fn unmaps() {
    let space = confined::space();
    map(&space, arena::page(), FAR, Rights::READ_WRITE);
    let worker = worker(&space);
    assert_eq!(read(worker, FAR), 0);
    let item = MapItem::new(MapOperation::Unmap, target(FAR, Rights::NONE), 1, 0);
    let answer = MapAnswer(one(&space, item).unwrap());
    assert!(answer.is_mapped() && answer.rights() & Rights::READ_WRITE.bits() == Rights::READ_WRITE.bits());
    assert_eq!(one(&space, item), Ok(0), "nothing is there any more");
    assert_eq!(fault(worker, 1, FAR), Rights::READ);
}

fn protects() {
    let space = confined::space();
    map(&space, arena::page(), FAR, Rights::READ_WRITE);
    let worker = worker(&space);
    write(worker, FAR, 3);
    let protect = |rights| one(&space, MapItem::new(MapOperation::Protect, target(FAR, rights), 1, 0));
    protect(Rights::READ).unwrap();
    assert_eq!(read(worker, FAR), 3);
    protect(Rights::ALL).unwrap();
    assert_eq!(query(&space, FAR).rights(), Rights::READ.bits());
    assert_eq!(fault(worker, 2, FAR), Rights::WRITE);
}

fn status() {
    let space = confined::space();
    map(&space, arena::page(), FAR, Rights::READ_WRITE);
    let worker = worker(&space);
    let fresh = query(&space, FAR);
    assert!(fresh.is_mapped() && !fresh.is_referenced() && !fresh.is_dirty());
    read(worker, FAR);
    let clear = MapItem::CLEAR_REFERENCED | MapItem::CLEAR_DIRTY;
    let ask = MapItem::new(MapOperation::Query, target(FAR, Rights::NONE), 1, 0).clearing(clear);
    let answer = MapAnswer(one(&space, ask).unwrap());
    assert!(answer.is_referenced() && !answer.is_dirty());
    assert!(!query(&space, FAR).is_referenced());
    write(worker, FAR, 1);
    assert!(query(&space, FAR).is_dirty());
    assert!(query(&space, FAR).is_dirty(), "a query alone clears nothing");
    let answer = MapAnswer(one(&space, ask).unwrap());
    assert!(answer.is_dirty());
    assert!(!query(&space, FAR).is_dirty());
}

fn run() {
    let space = confined::space();
    let block = arena::block(17);
    let item = MapItem::new(MapOperation::Map, target(FAR, Rights::READ_WRITE), 32, block);
    assert_eq!(one(&space, item), Ok(32 << 32));
    let worker = worker(&space);
    for page in 0..32 {
        write(worker, FAR + page * 4096, page + 100);
        assert_eq!(read_at(block + page * 4096), page + 100);
    }
    let answer = one(&space, MapItem::new(MapOperation::Unmap, target(FAR, Rights::NONE), 32, 0)).unwrap();
    assert!(MapAnswer(answer).is_dirty());
    assert!((0..32).all(|page| !query(&space, FAR + page * 4096).is_mapped()));
}

fn wrong_item() {
    let space = confined::space();
    let page = arena::page();
    let item = |index: u64| {
        MapItem::new(MapOperation::Map, target(FAR + index * 4096, Rights::READ), 1, page.address)
    };
    let mut items: [MapItem; 100] = core::array::from_fn(|index| item(index as u64));
    items[60].control |= 1 << 5;
    let result = extension::map_control(space.first, &mut items);
    assert_eq!(result, Err((60, Some(ErrorCode::InvalidParameter))));
    assert!(query(&space, FAR + 59 * 4096).is_mapped());
    assert!(!query(&space, FAR + 61 * 4096).is_mapped());
}

fn owner_only() {
    let stranger = Space::new();
    let item = MapItem::new(MapOperation::Query, target(FAR, Rights::NONE), 1, 0);
    assert_eq!(one(&stranger, item), Err(Some(ErrorCode::NoPrivilege)));
    let result = extension::map_control(kip().sigma0(), &mut [item]);
    assert_eq!(result, Err((0, Some(ErrorCode::NoPrivilege))), "sigma0 has no owner");
    let result = extension::map_control(new_id(), &mut [item]);
    assert_eq!(result, Err((0, Some(ErrorCode::InvalidSpace))));
}

fn items_array() {
    let space = confined::space().first.raw();
    let page = arena::page().address;
    for (items, number) in [(page, 0), (page, 513), (page + 8, 1), (FAR, 1), (!31, 1), (page, u64::MAX)] {
        // SAFETY: the kernel refuses to use memory that is not the caller's.
        let (result, done) = unsafe { syscall::map_control(space, items, number) };
        assert_eq!((result, done), (0, 0), "{items:#x} {number}");
        assert_eq!(utcb::error_code(), Some(ErrorCode::InvalidParameter));
    }
    // The first item lies in a page that is present, the second in one that is not: neither is
    // carried out.
    let pages = arena::block(13);
    let size = size_of::<MapItem>() as u64;
    let query = MapItem::new(MapOperation::Query, target(FAR, Rights::NONE), 1, 0);
    // SAFETY: only this test uses the block, and items are aligned.
    unsafe { ((pages + 4096 - size) as *mut MapItem).write(query) };
    // SAFETY: the page has no content that is used.
    unsafe { space::flush(&mut [Fpage::memory(pages + 4096, 12).with_rights(Rights::ALL)]) };
    // SAFETY: only this test uses the block.
    let (result, done) = unsafe { syscall::map_control(space, pages + 4096 - size, 2) };
    assert_eq!((result, done), (0, 0));
}

fn in_registers() {
    let space = confined::space();
    let page = arena::page();
    page.write(5, 0xfeed);
    let one = |item: &MapItem| extension::map_control_one(space.first, item);
    let item = |operation, rights| MapItem::new(operation, target(FAR, rights), 1, page.address);
    assert_eq!(one(&item(MapOperation::Map, Rights::READ_WRITE)), Ok(1 << 32));
    assert_eq!(one(&item(MapOperation::Map, Rights::READ_WRITE)), Ok(1 << 32), "it is there already");
    let worker = worker(&space);
    assert_eq!(read(worker, FAR + 40), 0xfeed);
    write(worker, FAR + 48, 9);
    let answer = |operation, rights| MapAnswer(one(&item(operation, rights)).unwrap());
    let asked = answer(MapOperation::Query, Rights::NONE);
    assert!(asked.is_dirty() && asked.rights() & Rights::WRITE.bits() != 0);
    answer(MapOperation::Protect, Rights::READ);
    assert_eq!(fault(worker, 2, FAR), Rights::WRITE);
    let taken = answer(MapOperation::Unmap, Rights::NONE);
    assert_eq!((taken.is_mapped(), taken.rights()), (true, Rights::READ.bits()));
    assert!(!answer(MapOperation::Query, Rights::NONE).is_mapped());
    let refused = Err(Some(ErrorCode::InvalidParameter));
    let wrong = MapItem { control: 1 << 62 | 1, ..item(MapOperation::Map, Rights::READ) };
    assert_eq!(one(&wrong), refused);
    assert_eq!(one(&MapItem { source: page.address + 1, ..item(MapOperation::Map, Rights::READ) }), refused);
    assert_eq!(one(&item(MapOperation::Map, Rights::NONE)), refused);
    let kernels = MapItem::new(MapOperation::Map, target(kip().base(), Rights::READ), 1, page.address);
    assert_eq!(one(&kernels), refused);
    let nowhere = MapItem { source: FAR, ..item(MapOperation::Map, Rights::READ) };
    assert_eq!(one(&nowhere), Ok(0), "a hole");
    let own = extension::map_control_one(utcb::my_global_id(), &item(MapOperation::Map, Rights::READ));
    assert_eq!(own, refused);
    let of_no_space = extension::map_control_one(ThreadId::NIL, &item(MapOperation::Map, Rights::READ));
    assert_eq!(of_no_space, Err(Some(ErrorCode::InvalidSpace)));
}

fn forbidden_targets() {
    let space = confined::space();
    let page = arena::page();
    let refused = Err(Some(ErrorCode::InvalidParameter));
    for address in
        [kip().base(), space.utcb_area, space.utcb_area + 4096, (1 << 47) - 4096, 1 << 47, 0xffff << 48]
    {
        for operation in [MapOperation::Map, MapOperation::Query, MapOperation::Protect, MapOperation::Unmap]
        {
            let item = MapItem::new(operation, target(address, Rights::READ), 1, page.address);
            assert_eq!(one(&space, item), refused, "{operation:?} {address:#x}");
            let in_registers = extension::map_control_one(space.first, &item);
            assert_eq!(in_registers, refused, "{operation:?} {address:#x} in registers");
        }
    }
    // A run that begins before the area and ends in it.
    let item = MapItem::new(MapOperation::Unmap, target(kip().base() - 4096, Rights::READ), 2, 0);
    assert_eq!(one(&space, item), refused);
    let wrong_source = MapItem::new(MapOperation::Map, target(FAR, Rights::READ), 1, page.address + 1);
    assert_eq!(one(&space, wrong_source), refused);
    let no_rights = MapItem::new(MapOperation::Map, target(FAR, Rights::NONE), 1, page.address);
    assert_eq!(one(&space, no_rights), refused);
}

fn physical() {
    let space = confined::space();
    let page = arena::page();
    map(&space, page, FAR, Rights::READ);
    assert_eq!(query(&space, FAR).physical_address(), 0);
    let root = kip().root();
    extension::space_options(root, SpaceOption::PhysicalAddresses, [1, 0]).unwrap();
    let address = query(&space, FAR).physical_address();
    extension::space_options(root, SpaceOption::PhysicalAddresses, [0, 0]).unwrap();
    assert_eq!(address, page.address, "the root task's memory is mapped idempotently");
}

fn holes() {
    let space = confined::space();
    let block = arena::block(13);
    // SAFETY: the page belongs to the arena, and has no content that is used.
    unsafe { space::flush(&mut [Fpage::memory(block + 4096, 12).with_rights(Rights::ALL)]) };
    let item = MapItem::new(MapOperation::Map, target(FAR, Rights::READ), 2, block);
    assert_eq!(one(&space, item), Ok(1 << 32));
    assert!(query(&space, FAR).is_mapped() && !query(&space, FAR + 4096).is_mapped());
}

fn unmap_reaches() {
    let space = confined::space();
    let page = arena::page();
    map(&space, page, FAR, Rights::READ_WRITE);
    space::unmap_one(page.fpage(Rights::WRITE));
    assert_eq!(query(&space, FAR).rights(), Rights::READ.bits());
    space::unmap_one(page.fpage(Rights::ALL));
    assert!(!query(&space, FAR).is_mapped());
}

fn large_pages() {
    let space = confined::space();
    let block = arena::block(21);
    let page = arena::page();
    map(&space, page, FAR, Rights::READ);
    let large = Fpage::memory(FAR, 21).with_rights(Rights::READ_WRITE);
    assert_eq!(one(&space, MapItem::new(MapOperation::Map, large, 1, block)), Ok(1 << 32));
    let worker = worker(&space);
    write(worker, FAR + 0x1f_f000, 7);
    assert_eq!(read_at(block + 0x1f_f000), 7);
    // A part of the region is unmapped; the rest stays mapped.
    one(&space, MapItem::new(MapOperation::Unmap, target(FAR + 0x1000, Rights::NONE), 1, 0)).unwrap();
    assert!(query(&space, FAR).is_mapped() && !query(&space, FAR + 0x1000).is_mapped());
    assert_eq!(read(worker, FAR + 0x1f_f000), 7);
}

fn write_item(place: u64, item: MapItem) {
    for (word, value) in [item.target, item.control, item.source, 0].into_iter().enumerate() {
        write_at(place + word as u64 * 8, value);
    }
}

fn full_batch() {
    let space = confined::space();
    let page = arena::page();
    let place = arena::block(14);
    for index in 0..512 {
        let item = MapItem::new(MapOperation::Map, target(FAR + index * 4096, Rights::READ), 1, page.address);
        write_item(place + index * 32, item);
    }
    // SAFETY: the items lie in a block of the arena that only this test uses.
    let (result, done) = unsafe { syscall::map_control(space.first.raw(), place, 512) };
    assert_eq!((result, done), (1, 512));
    assert_eq!(read_at(place + 511 * 32 + 24), 1 << 32);
    assert!(query(&space, FAR + 511 * 4096).is_mapped());
}

fn own_space() {
    let (first, second) = (confined::space(), confined::space());
    let page = arena::page();
    let me = utcb::my_global_id();
    let own = |operation, rights| {
        let clear = MapItem::CLEAR_REFERENCED | MapItem::CLEAR_DIRTY;
        let mut items = [MapItem::new(operation, target(page.address, rights), 1, 0).clearing(clear)];
        extension::map_control(me, &mut items).map(|()| MapAnswer(items[0].answer))
    };
    map(&first, page, FAR, Rights::READ_WRITE);
    map(&second, page, FAR, Rights::READ_WRITE);
    let (one, other) = (worker(&first), worker(&second));
    own(MapOperation::Query, Rights::NONE).unwrap();
    write_at(page.address, 8);
    assert!(!own(MapOperation::Query, Rights::NONE).unwrap().is_dirty(), "own use does not count");
    assert_eq!(read(one, FAR), 8);
    let answer = own(MapOperation::Query, Rights::NONE).unwrap();
    assert!(answer.is_referenced() && !answer.is_dirty());
    write(other, FAR, 9);
    assert!(own(MapOperation::Query, Rights::NONE).unwrap().is_dirty());
    assert!(!own(MapOperation::Query, Rights::NONE).unwrap().is_referenced(), "it was cleared");
    own(MapOperation::Protect, Rights::READ).unwrap();
    assert_eq!((read(one, FAR), fault(other, 2, FAR)), (9, Rights::WRITE));
    own(MapOperation::Unmap, Rights::NONE).unwrap();
    assert_eq!(fault(one, 1, FAR), Rights::READ);
    write_at(page.address, 10);
    let item = MapItem::new(MapOperation::Map, target(FAR, Rights::READ), 1, page.address);
    assert_eq!(extension::map_control(me, &mut [item]), Err((0, Some(ErrorCode::InvalidParameter))));
}

fn wrong_among_thousands() {
    const BATCHES: u64 = 8;
    const WRONG: u64 = 4 * 512 + 300;
    let space = confined::space();
    let page = arena::page();
    let place = arena::block(14);
    // SAFETY: the items lie in a block of the arena that only this test uses.
    let carry_out = |place, number| unsafe { syscall::map_control(space.first.raw(), place, number) };
    for batch in 0..BATCHES {
        for index in 0..512 {
            let address = FAR + (batch * 512 + index) * 4096;
            let mut item = MapItem::new(MapOperation::Map, target(address, Rights::READ), 1, page.address);
            item.control |= u64::from(batch * 512 + index == WRONG) << 5;
            write_item(place + index * 32, item);
        }
        if batch == WRONG / 512 {
            let wrong = WRONG % 512;
            assert_eq!(carry_out(place, 512), (0, wrong));
            assert_eq!(utcb::error_code(), Some(ErrorCode::InvalidParameter));
            let rest = 511 - wrong;
            assert_eq!(carry_out(place + (wrong + 1) * 32, rest), (1, rest));
        } else {
            assert_eq!(carry_out(place, 512), (1, 512));
        }
    }
    for index in 0..BATCHES * 512 {
        let is_mapped = query(&space, FAR + index * 4096).is_mapped();
        assert_eq!(is_mapped, index != WRONG, "item {index}");
    }
}

fn gives_way() {
    const PAGES: u64 = 64;
    static WAKES: AtomicU64 = AtomicU64::new(0);
    WAKES.store(0, Ordering::Relaxed);
    let space = confined::space();
    let source = arena::block(18);
    let place = arena::block(14);
    for index in 0..512 {
        let address = target(FAR + index * PAGES * 4096, Rights::READ);
        write_item(place + index * 32, MapItem::new(MapOperation::Map, address, PAGES as u32, source));
    }
    let sleeper = spawn(|| {
        loop {
            ipc::sleep(Time::period(500));
            WAKES.fetch_add(1, Ordering::Relaxed);
        }
    });
    thread::set_priority(sleeper, 200).unwrap();
    // A batch of 32768 pages takes longer than a sleep, but the emulator's timer may be late.
    let interrupted = (0..100).any(|_| {
        let before = WAKES.load(Ordering::Relaxed);
        // SAFETY: the items lie in a block of the arena that only this test uses.
        let (result, done) = unsafe { syscall::map_control(space.first.raw(), place, 512) };
        assert_eq!((result, done), (1, 512));
        WAKES.load(Ordering::Relaxed) != before
    });
    thread::delete(sleeper).unwrap();
    assert!(interrupted, "the sleeper runs during a batch");
    for index in 0..512 {
        assert_eq!(read_at(place + index * 32 + 24), PAGES << 32, "item {index}");
    }
}
