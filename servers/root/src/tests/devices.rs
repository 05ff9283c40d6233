//! Tests of interrupts, ports, device memory and PCI functions.

use super::*;
use simulation::{Device, MESSAGES};
use x2::boot_info::Screen;
use x2::protocol;
use x2::{Fpage, MapItem};

#[test]
fn devices_are_those_of_the_configuration() {
    let mut root = Root::start(&two(0, "interrupt 3\nports 0x80..0x8f\ndevice 0x10000000 8K\n"));
    let (a, b) = (root.first(0).raw(), root.first(1).raw());
    let resource = |root: &mut Root, kind, index| root.request(0, request::ROOT_RESOURCE, &[kind, index]);
    assert_eq!(resource(&mut root, 0, 0), Some(Answer::Two(3, 0)));
    assert_eq!(resource(&mut root, 1, 0), Some(Answer::Two(0x80, 0x8f)));
    assert_eq!(resource(&mut root, 2, 0), Some(Answer::Two(0x1000_0000, 0x2000)));
    for (kind, index) in [(0, 1), (1, u64::MAX), (3, 0), (4, 0), (u64::MAX, 0)] {
        assert_eq!(resource(&mut root, kind, index), refused(Status::NotFound));
    }
    let attach = |root: &mut Root, index, line, thread| {
        root.request(index, request::ROOT_INTERRUPT_ATTACH, &[line, thread])
    };
    assert_eq!(attach(&mut root, 0, 4, a), refused(Status::NotFound));
    assert_eq!(attach(&mut root, 0, 3 | 1 << 32, a), refused(Status::NotFound));
    assert_eq!(attach(&mut root, 1, 3, b), refused(Status::NotFound));
    assert_eq!(attach(&mut root, 0, 3, b), refused(Status::InvalidArgument));
    assert_eq!(attach(&mut root, 0, 3, a), Some(Answer::Done));
    assert_eq!(attach(&mut root, 0, 3, a), refused(Status::InUse));
    assert_eq!(root.request(1, request::ROOT_INTERRUPT_DETACH, &[3]), refused(Status::InvalidArgument));
    assert_eq!(root.request(0, request::ROOT_INTERRUPT_DETACH, &[3]), Some(Answer::Done));
    assert_eq!(root.request(0, request::ROOT_INTERRUPT_DETACH, &[3]), refused(Status::InvalidArgument));
    let map = |root: &mut Root, words: [u64; 3]| root.request(0, request::ROOT_DEVICE_MAP, &words);
    for words in [
        [0x1000_0000, 0x3000, ROOM],
        [0xfff_f000, 0x1000, ROOM],
        [0x10_0000, PAGE, ROOM],
        [0x1000_2000, PAGE, ROOM],
    ] {
        assert_eq!(map(&mut root, words), refused(Status::NotFound));
    }
    for words in [
        [0x1000_0001, PAGE, ROOM],
        [0x1000_0000, 1, ROOM],
        [u64::MAX - 4095, 2 * PAGE, ROOM],
        [0x1000_0000, PAGE, 0],
    ] {
        assert_eq!(map(&mut root, words), refused(Status::InvalidArgument));
    }
    assert_eq!(map(&mut root, [0x1000_1000, PAGE, ROOM]), Some(Answer::Done));
    assert_eq!(map(&mut root, [0x1000_0000, PAGE, ROOM]), refused(Status::InvalidArgument));
}

#[test]
fn the_screen_is_of_the_server_that_may_have_it() {
    let mut root = Root::start(&two(0, "screen yes\n"));
    let resource = |root: &mut Root, server, index| root.request(server, request::ROOT_RESOURCE, &[4, index]);
    assert_eq!(resource(&mut root, 0, 0), refused(Status::NotFound));
    let screen = Screen {
        physical: 0x1000_0800,
        pitch: 4096,
        width: 1000,
        height: 3,
        bits: 32,
        colours: 0x0800_0808_0810,
    };
    root.system.set_screen(Some(screen));
    assert_eq!(resource(&mut root, 0, 0), Some(Answer::Two(0x1000_0800, 4096)));
    assert_eq!(resource(&mut root, 0, 1), Some(Answer::Two(1000, 3)));
    assert_eq!(resource(&mut root, 0, 2), Some(Answer::Two(32, 0x0800_0808_0810)));
    assert_eq!(resource(&mut root, 0, 3), refused(Status::NotFound));
    assert_eq!(resource(&mut root, 1, 0), refused(Status::NotFound));
    let map = |root: &mut Root, server, physical, size| {
        root.request(server, request::ROOT_DEVICE_MAP, &[physical, size, ROOM])
    };
    // Four pages, from the one in which the screen begins to the one in which it ends.
    assert_eq!(map(&mut root, 0, 0x1000_0000, 5 * PAGE), refused(Status::NotFound));
    assert_eq!(map(&mut root, 0, 0xfff_f000, PAGE), refused(Status::NotFound));
    assert_eq!(map(&mut root, 1, 0x1000_0000, PAGE), refused(Status::NotFound));
    assert!(!root.machine().has_left_screen);
    assert_eq!(map(&mut root, 0, 0x1000_0000, 4 * PAGE), Some(Answer::Done));
    assert!(root.machine().has_left_screen, "the kernel writes there no more");
}

#[test]
fn an_interrupt_is_free_when_its_thread_or_server_has_ended() {
    let mut root = Root::start(&one(0, "interrupt 3\nrestart yes\n"));
    let thread = word(root.request(0, request::ROOT_THREAD_CREATE, &[0, 0]));
    assert_eq!(root.request(0, request::ROOT_INTERRUPT_ATTACH, &[3, thread]), Some(Answer::Done));
    root.request(0, request::ROOT_THREAD_DELETE, &[thread]);
    let first = root.first(0).raw();
    assert_eq!(root.request(0, request::ROOT_INTERRUPT_ATTACH, &[3, first]), Some(Answer::Done));
    root.request(0, request::ROOT_EXIT, &[0]);
    let first = root.first(0).raw();
    assert_eq!(root.request(0, request::ROOT_INTERRUPT_ATTACH, &[3, first]), Some(Answer::Done));
}

#[test]
fn the_first_use_of_a_port_gives_the_whole_range() {
    let mut root = Root::start(&one(0, "ports 0x81..0x86\nrestart yes\n"));
    let fault = |root: &mut Root, fpage: Fpage| {
        let tag = MessageTag::new(protocol::label(protocol::IO_PAGE_FAULT, 6), 2, 0);
        let from = root.first(0);
        handle(&mut root.system, from, tag, &[fpage.raw(), 0x20])
    };
    let (Outcome::Answer(tag), memory) = fault(&mut root, Fpage::io(0x84, 1)) else { panic!() };
    assert_eq!(tag, MessageTag::new(0, 0, 8));
    let items = memory.0[1..=8].chunks(2).map(|words| MapItem::from_words([words[0], words[1]]).unwrap());
    let given: Vec<_> = items.map(|item| item.fpage.ports().unwrap()).collect();
    assert_eq!((given[0].first, given[3].last()), (0x81, 0x86));
    let asked: Vec<_> = root.machine().ports.iter().map(|fpage| fpage.ports().unwrap()).collect();
    assert_eq!(
        asked.iter().map(|ports| (ports.first, ports.last())).collect::<Vec<_>>(),
        [(0x81, 0x81), (0x82, 0x83), (0x84, 0x85), (0x86, 0x86)]
    );
    for fpage in [
        Fpage::io(0x80, 0),
        Fpage::io(0x86, 1),
        Fpage::io(0, 16),
        Fpage::memory(0x80000, 12),
        Fpage::from_raw(0),
    ] {
        let (Outcome::Work(item), _) = fault(&mut root, fpage) else { panic!("{fpage:?}") };
        root.queue.push((item, Ok(())));
        root.finish();
    }
}

/// A function with a memory base address of 16 KiB, whose table of four messages is its second
/// page.
pub(super) fn function_with_table() -> Device {
    let words = [
        (0, 0x10d3_8086),
        (4, 1 << 20 | 3),
        (0x10, 0x2000_0000),
        (0x34, 0x40),
        (0x40, 3 << 16 | 0x11),
        (0x44, 0x1000),
    ];
    let writable = [(4, 0xffff), (0x10, !0x3fff), (0x40, 3 << 30)];
    Device { words: words.into(), writable: writable.into() }
}

pub(super) const PCI: &str = "pci 8086:10d3\nrestart yes\n";

fn with_function() -> Root {
    let mut machine = Simulation::default();
    machine.devices.insert(3 << 11, function_with_table());
    Root::start_on(machine, &two(0, PCI))
}

#[test]
fn a_server_reads_the_configuration_space_of_its_own_functions() {
    let mut root = with_function();
    let read =
        |root: &mut Root, server, words: [u64; 2]| root.request(server, request::ROOT_PCI_READ, &words);
    assert_eq!(read(&mut root, 0, [0, 0]), Some(Answer::One(0x10d3_8086)));
    assert_eq!(read(&mut root, 0, [0, 0x44]), Some(Answer::One(0x1000)));
    assert_eq!(read(&mut root, 0, [0, 0xfc]), Some(Answer::One(0)));
    for offset in [1, 2, 0x45, 0xff, 0x100, 1 << 32] {
        assert_eq!(read(&mut root, 0, [0, offset]), refused(Status::InvalidArgument));
    }
    for (server, function) in [(0, 1), (0, u64::MAX), (1, 0)] {
        assert_eq!(read(&mut root, server, [function, 0]), refused(Status::NotFound));
    }
}

#[test]
fn a_function_tells_its_messages_to_its_servers_threads_only() {
    let mut root = with_function();
    let (a, b) = (root.first(0).raw(), root.first(1).raw());
    assert_eq!(root.request(0, request::ROOT_RESOURCE, &[3, 0]), Some(Answer::Two(3 << 3, 4)));
    assert_eq!(
        root.request(0, request::ROOT_PCI_REGION, &[0, 0]),
        Some(Answer::Three(0, 0x2000_0000, 0x4000))
    );
    for (function, region) in [(0, 1), (0, 6), (0, u64::MAX), (1, 0), (u64::MAX, 0)] {
        assert_eq!(root.request(0, request::ROOT_PCI_REGION, &[function, region]), refused(Status::NotFound));
    }
    // Root keeps the page with the MSI-X table of the function: no server may map it.
    let map = |root: &mut Root, at, size| root.request(0, request::ROOT_DEVICE_MAP, &[at, size, ROOM]);
    assert_eq!(map(&mut root, 0x2000_1000, PAGE), refused(Status::NotFound));
    assert_eq!(map(&mut root, 0x2000_0000, 2 * PAGE), refused(Status::NotFound));
    assert_eq!(map(&mut root, 0x2000_2000, 2 * PAGE), Some(Answer::Done));
    let attach =
        |root: &mut Root, index, words: [u64; 3]| root.request(index, request::ROOT_MESSAGE_ATTACH, &words);
    assert_eq!(attach(&mut root, 1, [0, 0, b]), refused(Status::NotFound));
    assert_eq!(attach(&mut root, 0, [0, 0, b]), refused(Status::InvalidArgument));
    assert_eq!(attach(&mut root, 0, [0, 4, a]), refused(Status::NotFound));
    let interrupt = word(attach(&mut root, 0, [0, 1, a]));
    assert_eq!(attach(&mut root, 0, [0, 1, a]), refused(Status::InUse));
    assert_eq!(interrupt, u64::from(MESSAGES.start), "one of this processor's");
    assert_eq!(root.machine().registers[&0x2000_1010], 0xfee0_0000);
    assert_eq!(root.machine().registers[&0x2000_101c], 0);
    assert_eq!(root.machine().registers[&0x2000_102c], 1, "the others are masked");
    assert_eq!(root.machine().devices[&(3 << 11)].words[&4] & 0x404, 0x404);
    assert_eq!(root.request(1, request::ROOT_MESSAGE_DETACH, &[interrupt]), refused(Status::InvalidArgument));
    assert_eq!(root.request(0, request::ROOT_MESSAGE_DETACH, &[interrupt]), Some(Answer::Done));
    assert_eq!(root.machine().registers[&0x2000_101c], 1);
    assert_eq!(root.request(0, request::ROOT_MESSAGE_DETACH, &[interrupt]), refused(Status::InvalidArgument));
}

#[test]
fn the_functions_of_a_server_that_has_ended_write_no_memory() {
    let mut root = with_function();
    let first = root.first(0).raw();
    word(root.request(0, request::ROOT_MESSAGE_ATTACH, &[0, 0, first]));
    let from = root.first(0);
    root.send(from, request::ROOT_EXIT, &[0]);
    while root.system.servers[0].state == State::Ending {
        root.step(0);
    }
    let words = &root.machine().devices[&(3 << 11)].words;
    assert_eq!((words[&4] & 4, words[&0x40] >> 31), (0, 0));
    root.finish();
    let first = root.first(0).raw();
    word(root.request(0, request::ROOT_MESSAGE_ATTACH, &[0, 0, first]));
}

#[test]
fn a_message_that_the_kernel_refuses_leaves_the_function_as_it_was() {
    let mut root = with_function();
    let first = root.first(0).raw();
    for calls in 0..2 {
        root.machine().calls_left.set(Some(calls));
        assert!(matches!(
            root.request(0, request::ROOT_MESSAGE_ATTACH, &[0, 0, first]),
            Some(Answer::Refused(_))
        ));
    }
    root.machine().calls_left.set(None);
    assert_eq!(root.machine().devices[&(3 << 11)].words[&4] & 4, 0);
}

#[test]
fn a_configured_function_that_the_machine_lacks_is_reported() {
    let mut root = Root::start(&one(0, PCI));
    assert_eq!(root.machine().reports[0], "root: server a: there is no PCI function 8086:10d3");
    assert_eq!(root.request(0, request::ROOT_RESOURCE, &[3, 0]), refused(Status::NotFound));
    // Its driver would only end again.
    assert_eq!(root.request(0, request::ROOT_EXIT, &[1]), None);
    assert_eq!(root.running().count(), 0);
    assert_eq!(root.machine().reports.last().unwrap(), "root: server a has no device");
}

#[test]
fn a_function_is_found_by_its_class() {
    let with_class = |class: u32| {
        let mut machine = Simulation::default();
        let mut device = function_with_table();
        device.words.insert(8, class << 8 | 2);
        machine.devices.insert(3 << 11, device);
        let mut root = Root::start_on(machine, &one(0, "pci class:010802\n"));
        root.request(0, request::ROOT_RESOURCE, &[3, 0])
    };
    assert_eq!(with_class(0x01_0802), Some(Answer::Two(3 << 3, 4)));
    assert_eq!(with_class(0x01_0801), refused(Status::NotFound));
}

/// Two servers, of which the first has a function and both may allocate some pages.
fn two_with_function() -> Root {
    let mut machine = Simulation::default();
    machine.devices.insert(3 << 11, function_with_table());
    Root::start_on(machine, &two(8, PCI))
}

/// Whether the function may access memory and send messages.
fn is_enabled(root: &mut Root) -> (bool, bool) {
    let words = &root.machine().devices[&(3 << 11)].words;
    (words[&4] & 4 != 0, words[&0x40] >> 31 != 0)
}

#[test]
fn a_driver_finds_the_memory_of_a_pool_and_no_other_server_does() {
    let mut root = two_with_function();
    let (driver, own) = (root.first(0).raw(), root.first(1).raw());
    assert_eq!(root.request(1, request::ROOT_MEMORY_POOL, &[ROOM, 3 * PAGE]), Some(Answer::Done));
    let create = |root: &mut Root, words: [u64; 3]| root.request(1, request::ROOT_POOL_CREATE, &words);
    for words in [
        [ROOM, 2 * PAGE, driver],
        [ROOM + PAGE, PAGE, driver],
        [ROOM, 3 * PAGE, own],
        [ROOM, 3 * PAGE, root_thread(0).raw()],
        [ROOM, 3 * PAGE, 0],
        [room(8), PAGE, driver],
    ] {
        assert_eq!(create(&mut root, words), refused(Status::InvalidArgument), "{words:x?}");
    }
    assert_eq!(create(&mut root, [ROOM, 3 * PAGE, driver]), Some(Answer::One(1)));
    let find =
        |root: &mut Root, server, words: [u64; 2]| root.request(server, request::ROOT_POOL_FIND, &words);
    let pages = root.space(1).pages.clone();
    for offset in [0, 5, PAGE, 3 * PAGE - 1] {
        let Some(Answer::Two(physical, size)) = find(&mut root, 0, [1, offset]) else { panic!("{offset}") };
        let page = pages[&((ROOM + offset) & !(PAGE - 1))].0;
        assert_eq!(physical, page + offset % PAGE);
        assert!(size > 0 && offset + size <= 3 * PAGE);
    }
    for offset in [3 * PAGE, u64::MAX] {
        assert_eq!(find(&mut root, 0, [1, offset]), refused(Status::InvalidArgument));
    }
    for (server, pool) in [(1, 1), (0, 0), (0, 2)] {
        assert_eq!(find(&mut root, server, [pool, 0]), refused(Status::NotFound));
    }
    let free = |root: &mut Root| root.request(1, request::ROOT_MEMORY_FREE, &[ROOM, 3 * PAGE]);
    assert_eq!(free(&mut root), refused(Status::InUse), "devices use it");
    root.request(0, request::ROOT_EXIT, &[0]);
    assert_eq!(find(&mut root, 0, [1, 0]), refused(Status::NotFound), "the driver is another one");
    assert_eq!(free(&mut root), Some(Answer::Done));
}

#[test]
fn no_device_uses_the_memory_of_a_pool_after_its_owner_has_ended() {
    let mut root = two_with_function();
    let driver = root.first(0).raw();
    let interrupt = word(root.request(0, request::ROOT_MESSAGE_ATTACH, &[0, 0, driver]));
    assert_eq!(root.request(1, request::ROOT_MEMORY_POOL, &[ROOM, 3 * PAGE]), Some(Answer::Done));
    let words = [ROOM, 3 * PAGE, driver];
    assert_eq!(root.request(1, request::ROOT_POOL_CREATE, &words), Some(Answer::One(1)));
    assert_eq!(is_enabled(&mut root), (true, true));
    root.request(1, request::ROOT_EXIT, &[0]);
    assert_eq!(is_enabled(&mut root), (false, false));
    assert_eq!(root.request(0, request::ROOT_POOL_FIND, &[1, 0]), refused(Status::NotFound));
    // The driver goes on, and can start its device again.
    assert_eq!(root.request(0, request::ROOT_MESSAGE_DETACH, &[interrupt]), Some(Answer::Done));
    word(root.request(0, request::ROOT_MESSAGE_ATTACH, &[0, 0, driver]));
    assert_eq!(is_enabled(&mut root), (true, true));
}

#[test]
fn a_server_has_sixteen_pools_at_most() {
    let mut root = two_with_function();
    let driver = root.first(0).raw();
    assert_eq!(root.request(1, request::ROOT_MEMORY_POOL, &[ROOM, PAGE]), Some(Answer::Done));
    for number in 1..=16 {
        let created = root.request(1, request::ROOT_POOL_CREATE, &[ROOM, PAGE, driver]);
        assert_eq!(created, Some(Answer::One(number)));
    }
    let words = [ROOM, PAGE, driver];
    assert_eq!(root.request(1, request::ROOT_POOL_CREATE, &words), refused(Status::QuotaExceeded));
}
