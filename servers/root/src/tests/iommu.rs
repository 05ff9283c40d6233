//! Tests of what PCI functions reach through an IOMMU.

use super::devices::{PCI, function_with_table};
use super::simulation::{IO_APIC, MESSAGES};
use super::unit::{Abilities, REGISTERS, Unit};
use super::*;
use crate::iommu::dmar_tests::{io_apic, reserved_entry, scope, table, table_with_interrupts, unit_entry};
use crate::iommu::{MOST_FAULTS, TABLES};
use crate::machine::Machine;
use proptest::prelude::*;

/// The place of the function, and of another one.
const FUNCTION: u32 = 3 << 11;
const OTHER: u32 = 4 << 11;
/// Memory that the firmware has told the function of.
const RESERVED: core::ops::Range<u64> = 0xa0_0000..0xa0_2000;

/// The firmware's entry of the unit, and of the I/O APIC.
fn unit_with_io_apic() -> Vec<u8> {
    unit_entry(true, REGISTERS, &[io_apic(IO_APIC, 0xf0, &[(31, 0)])])
}

/// A machine with an IOMMU for its function.
fn machine(abilities: Abilities) -> Simulation {
    let mut machine = Simulation::default();
    machine.devices.insert(FUNCTION, function_with_table());
    machine.unit = Some(Unit::new(abilities));
    machine.dmar = Some(table_with_interrupts(&[unit_with_io_apic()]));
    machine
}

/// Two servers, of which the first has the function and memory for it, and a client.
fn start(machine: Simulation) -> Root {
    Root::start_on(machine, &two(8, &format!("{PCI}dma 16K\n")))
}

fn unit(root: &mut Root) -> &mut Unit {
    root.machine().unit.as_mut().expect("the machine has one")
}

/// The physical address of memory of `pages` pages for the function, which may use memory then.
fn memory(root: &mut Root, pages: u64) -> u64 {
    let driver = root.first(0).raw();
    word(root.request(0, request::ROOT_MESSAGE_ATTACH, &[0, 0, driver]));
    plain_memory(root, pages)
}

/// As [`memory`], but the function is as it was.
fn plain_memory(root: &mut Root, pages: u64) -> u64 {
    word(root.request(0, request::ROOT_MEMORY_DMA, &[ROOM, pages * PAGE, 32, 0]))
}

/// The physical addresses of a pool of three pages of the client's.
fn pool(root: &mut Root) -> Vec<u64> {
    let driver = root.first(0).raw();
    assert_eq!(root.request(1, request::ROOT_MEMORY_POOL, &[ROOM, 3 * PAGE]), Some(Answer::Done));
    word(root.request(1, request::ROOT_POOL_CREATE, &[ROOM, 3 * PAGE, driver]));
    let mapped = &root.space(1).pages;
    (0..3).map(|page| mapped[&room(page)].0).collect()
}

fn reach(root: &mut Root, place: u32) -> usize {
    pages(MEMORY).filter(|&page| root.machine().reaches(place, page)).count()
}

#[test]
fn a_function_reaches_what_its_driver_and_its_clients_have_given_it() {
    let mut root = start(machine(Abilities::USUAL));
    assert!(unit(&mut root).is_on());
    assert_eq!(root.machine().reports[0], "root: IOMMU at 0xfed90000, tables of 3 levels, PCI functions: 1");
    let own = memory(&mut root, 2);
    assert!(root.machine().reaches(FUNCTION, own) && root.machine().reaches(FUNCTION, own + PAGE));
    assert_eq!(reach(&mut root, FUNCTION), 2);
    let lent = pool(&mut root);
    assert!(lent.iter().all(|&page| root.machine().reaches(FUNCTION, page)));
    assert_eq!(reach(&mut root, FUNCTION), 5);
    root.check();
}

#[test]
fn a_unit_that_keeps_what_was_not_there_is_told_of_what_is_new() {
    let mut root = start(machine(Abilities { keeps_absent: true, ..Abilities::USUAL }));
    let driver = root.first(0).raw();
    word(root.request(0, request::ROOT_MESSAGE_ATTACH, &[0, 0, driver]));
    assert_eq!(reach(&mut root, FUNCTION), 0);
    plain_memory(&mut root, 1);
    assert_eq!(reach(&mut root, FUNCTION), 1);
    pool(&mut root);
    assert_eq!(reach(&mut root, FUNCTION), 4);
}

#[test]
fn large_memory_is_mapped_by_large_pages_where_the_unit_knows_them() {
    for (large, tables) in [(0, 3), (1, 1), (3, 1)] {
        let large = machine(Abilities { large, ..Abilities::USUAL });
        let mut root =
            Root::start_on(large, &format!("{}{}", one(0, PCI), "server b\nprogram p\nmemory 6M\n"));
        let driver = root.first(0).raw();
        let size = 4 << 20;
        assert_eq!(root.request(1, request::ROOT_MEMORY_POOL, &[ROOM, size]), Some(Answer::Done));
        let before = root.system.resources.frames.size_of(TABLES);
        word(root.request(1, request::ROOT_POOL_CREATE, &[ROOM, size, driver]));
        assert_eq!(unit(&mut root).reachable(FUNCTION).len() as u64, size / PAGE);
        let used = (root.system.resources.frames.size_of(TABLES) - before) / PAGE;
        // One of the second level, and without large pages two of the lowest.
        assert_eq!(used, tables);
        root.check();
    }
}

#[test]
fn ends_of_drivers_and_of_owners_of_pools_cost_no_memory() {
    let mut root = Root::start_on(
        machine(Abilities::USUAL),
        &two(8, "pci 8086:10d3\ndma 16K\nrestart 100\n")
            .replace("server b\nprogram p\n", "server b\nprogram p\nrestart 100\n"),
    );
    let mut sizes = Vec::new();
    for round in 0..20 {
        memory(&mut root, 1);
        pool(&mut root);
        sizes.push(root.system.resources.frames.size_of(TABLES));
        root.request(round % 2, request::ROOT_EXIT, &[0]);
        root.request(1 - round % 2, request::ROOT_EXIT, &[0]);
    }
    assert!(sizes.iter().all(|size| *size == sizes[0]), "{sizes:?}");
}

#[test]
fn a_function_reaches_nothing_of_a_driver_that_has_ended() {
    let mut root = start(machine(Abilities::USUAL));
    let own = memory(&mut root, 1);
    let lent = pool(&mut root);
    unit(&mut root).use_all(FUNCTION);
    let from = root.first(0);
    root.send(from, request::ROOT_EXIT, &[0]);
    while root.system.servers[0].state == State::Ending {
        root.step(0);
    }
    // Even if it ignored that it must not use memory.
    let left = unit(&mut root).reachable(FUNCTION);
    assert!(left.is_empty(), "{left:x?}");
    root.finish();
    assert_eq!(memory(&mut root, 1), own, "the next driver has the same memory");
    assert!(root.machine().reaches(FUNCTION, own));
    assert!(!root.machine().reaches(FUNCTION, lent[0]), "the pool was the driver's that has ended");
}

#[test]
fn a_pool_ends_with_its_owner_and_the_others_stay() {
    let mut root = Root::start_on(
        machine(Abilities::USUAL),
        &format!("{}{}", two(8, &format!("{PCI}dma 16K\n")), one(8, "").replace("server a", "server c")),
    );
    let own = memory(&mut root, 1);
    let lent = pool(&mut root);
    let driver = root.first(0).raw();
    assert_eq!(root.request(2, request::ROOT_MEMORY_POOL, &[ROOM, PAGE]), Some(Answer::Done));
    word(root.request(2, request::ROOT_POOL_CREATE, &[ROOM, PAGE, driver]));
    let stays = root.space(2).pages[&ROOM].0;
    unit(&mut root).use_all(FUNCTION);
    root.request(1, request::ROOT_EXIT, &[0]);
    let left: Vec<u64> = unit(&mut root).reachable(FUNCTION).into_iter().collect();
    let mut expected = vec![own, stays];
    expected.sort_unstable();
    assert_eq!(left, expected);
    assert!(lent.iter().all(|page| !left.contains(page)));
    assert!(!root.machine().reaches(FUNCTION, own), "it was disabled, and is until its driver enables it");
}

#[test]
fn what_is_refused_is_reported_until_it_is_too_much() {
    let mut root = start(machine(Abilities::USUAL));
    memory(&mut root, 1);
    let line = root.system.resources.iommu.interrupt.expect("an interrupt tells of faults");
    let interrupt = ThreadId::interrupt(line);
    assert_eq!(root.machine().interrupts[&line], root_thread(0));
    let refuse = |root: &mut Root| {
        let before = unit(root).interrupts;
        assert!(!root.machine().reaches(FUNCTION, 0x7f_f000));
        if unit(root).interrupts == before {
            return 0;
        }
        root.machine().reports.clear();
        let (outcome, _) = handle(&mut root.system, interrupt, MessageTag::EMPTY, &[]);
        assert!(matches!(outcome, Outcome::Answer(tag) if tag == MessageTag::EMPTY));
        root.machine().reports.len()
    };
    assert_eq!(refuse(&mut root), 2);
    let reads = "root: function 00:03.0 (driver: a) may not read 0x7ff000 (reason 6)";
    assert_eq!(root.machine().reports, [reads, &reads.replace("read", "write")]);
    let lines: usize = (0..20).map(|_| refuse(&mut root)).sum();
    assert_eq!(lines as u32, MOST_FAULTS - 2 + 1);
    assert_eq!(
        root.machine().reports.last().unwrap(),
        "root: faults of function 00:03.0 are not reported any more"
    );
    // The next driver's faults are reported again.
    root.request(0, request::ROOT_EXIT, &[0]);
    memory(&mut root, 1);
    assert_eq!(refuse(&mut root), 2);
}

#[test]
fn without_an_interrupt_faults_are_reported_when_the_driver_ends() {
    let machine = machine(Abilities::USUAL);
    machine.calls_left.set(Some(0));
    let mut root = Root::start_on(machine, "");
    root.machine().calls_left.set(None);
    assert_eq!(root.system.resources.iommu.interrupt, None);
    assert!(
        root.machine().reports.contains(&"root: faults of devices are seen only when drivers end".into())
    );
    root.check();
}

/// Two servers, each of which has a function, on a machine that remaps interrupts.
fn start_two(mut machine: Simulation) -> Root {
    let mut other = function_with_table();
    other.words.insert(0x10, 0x3000_0000);
    machine.devices.insert(OTHER, other);
    let driver = |name: &str| format!("server {name}\nprogram p\nmemory 256K\nrestart 1000\npci 8086:10d3\n");
    Root::start_on(machine, &(driver("a") + &driver("b")))
}

/// Makes message `entry` of the server's function an interrupt. Returns its number.
fn attach(root: &mut Root, server: usize, entry: u64) -> u32 {
    let thread = root.first(server).raw();
    word(root.request(server, request::ROOT_MESSAGE_ATTACH, &[0, entry, thread])) as u32
}

#[test]
fn a_function_raises_its_own_interrupts_and_no_others() {
    let mut root = start_two(machine(Abilities::USUAL));
    assert!(unit(&mut root).is_remapping());
    assert_eq!(root.machine().io_apic, Some(0xf0f8));
    assert!(
        root.machine()
            .reports
            .contains(&"root: interrupts of PCI functions go through the kernel's table".into())
    );
    let (first, second) = (attach(&mut root, 0, 0), attach(&mut root, 1, 3));
    let raised = |root: &mut Root| {
        let all = [(FUNCTION, first), (FUNCTION, second), (OTHER, first), (OTHER, second)];
        all.map(|(place, interrupt)| root.machine().raises(place, interrupt))
    };
    assert_eq!(raised(&mut root), [true, false, false, true]);
    assert_eq!(root.machine().registers[&0x2000_1000], 0xfee0_0010 | first << 5);
    // What is given back is no function's, and then another's, whatever the unit has kept.
    assert_eq!(root.request(0, request::ROOT_MESSAGE_DETACH, &[first.into()]), Some(Answer::Done));
    assert_eq!(raised(&mut root), [false, false, false, true]);
    assert_eq!(attach(&mut root, 1, 0), first);
    assert_eq!(raised(&mut root), [false, false, true, true]);
    // The end of a driver gives its interrupts back.
    root.request(1, request::ROOT_EXIT, &[0]);
    assert_eq!(raised(&mut root), [false; 4]);
    assert_eq!(attach(&mut root, 0, 1), first);
    assert_eq!(raised(&mut root), [true, false, false, false]);
}

#[test]
fn a_message_that_cannot_be_attached_is_given_back() {
    let mut root = start_two(machine(Abilities::USUAL));
    let driver = root.first(0).raw();
    for calls in 0..2 {
        root.machine().calls_left.set(Some(calls));
        let attach = root.request(0, request::ROOT_MESSAGE_ATTACH, &[0, 0, driver]);
        assert!(matches!(attach, Some(Answer::Refused(_))));
        assert!(root.machine().sources.is_empty());
    }
    root.machine().calls_left.set(None);
    attach(&mut root, 0, 0);
    unit(&mut root).is_stuck = true;
    let other = root.first(1).raw();
    let attach = root.request(1, request::ROOT_MESSAGE_ATTACH, &[0, 0, other]);
    assert_eq!(attach, refused(Status::Unsupported));
    assert_eq!(root.machine().devices[&OTHER].words[&4] & 4, 0);
}

/// The reasons why functions can raise any interrupt.
#[test]
fn without_remapping_drivers_are_trusted_with_interrupts() {
    let no_table = "the kernel has no table of interrupts (boot option interrupt-remapping)";
    let not_all = "not all units can keep them from that";
    let no_io_apic = "the firmware's table lacks an I/O APIC";
    let usual = || Some(table_with_interrupts(&[unit_with_io_apic()]));
    let other_io_apic = unit_entry(true, REGISTERS, &[io_apic(IO_APIC + 1, 0xf0, &[(31, 0)])]);
    let beyond_no_bridge = unit_entry(true, REGISTERS, &[io_apic(IO_APIC, 0, &[(31, 0), (1, 0)])]);
    let second_unit = unit_entry(false, REGISTERS + (1 << 20), &[scope(1, 0, &[(9, 0)])]);
    let without = Abilities { remaps: false, ..Abilities::USUAL };
    for (dmar, has_table, abilities, reason) in [
        (usual(), false, Abilities::USUAL, no_table),
        (usual(), true, without, not_all),
        (Some(table(&[unit_with_io_apic()])), true, Abilities::USUAL, not_all),
        (
            Some(table_with_interrupts(&[unit_entry(true, REGISTERS, &[])])),
            true,
            Abilities::USUAL,
            no_io_apic,
        ),
        (Some(table_with_interrupts(&[other_io_apic])), true, Abilities::USUAL, no_io_apic),
        (Some(table_with_interrupts(&[beyond_no_bridge])), true, Abilities::USUAL, no_io_apic),
        (Some(table_with_interrupts(&[unit_with_io_apic(), second_unit])), true, Abilities::USUAL, not_all),
    ] {
        let mut machine = machine(abilities);
        (machine.dmar, machine.has_table) = (dmar, has_table);
        // The second unit of two cannot be used.
        machine.registers.extend([8, 12, 16, 20].map(|at| (REGISTERS + (1 << 20) + at, 0)));
        let mut root = start_two(machine);
        assert!(unit(&mut root).is_on() && !unit(&mut root).is_remapping());
        let said = format!(
            "root: PCI functions can raise any interrupt, since {reason}: drivers are trusted not to"
        );
        assert!(root.machine().reports.contains(&said), "{:?}", root.machine().reports);
        let first = attach(&mut root, 0, 0);
        assert_eq!(root.machine().registers[&0x2000_1000], 0xfee0_0000);
        assert!(root.machine().raises(FUNCTION, first));
        root.request(0, request::ROOT_EXIT, &[0]);
        root.check();
    }
}

#[test]
fn a_function_that_goes_on_raising_other_interrupts_is_stopped() {
    let mut root = start_two(machine(Abilities::USUAL));
    let line = root.system.resources.iommu.interrupt.expect("an interrupt tells of faults");
    let (first, second) = (attach(&mut root, 0, 0), attach(&mut root, 1, 0));
    let refuse = |root: &mut Root, interrupt| {
        root.machine().reports.clear();
        assert!(!root.machine().raises(FUNCTION, interrupt));
        handle(&mut root.system, ThreadId::interrupt(line), MessageTag::EMPTY, &[]);
        root.machine().reports.clone()
    };
    let said = |entry, reason| {
        format!(
            "root: function 00:03.0 (driver: a) may not raise the interrupt of entry {entry} (reason {reason})"
        )
    };
    assert_eq!(refuse(&mut root, second), [said(second, 0x26)]);
    assert_eq!(refuse(&mut root, MESSAGES.end - 1), [said(MESSAGES.end - 1, 0x22)]);
    let is_on = |root: &mut Root, place| root.machine().devices[&place].words[&4] & 4 != 0;
    for _ in 2..MOST_FAULTS {
        assert!(is_on(&mut root, FUNCTION) && root.machine().raises(FUNCTION, first));
        refuse(&mut root, second);
    }
    let last = "root: faults of function 00:03.0 are not reported any more";
    assert_eq!(root.machine().reports, [said(second, 0x26), last.into()]);
    assert!(!is_on(&mut root, FUNCTION), "it is stopped");
    assert!(is_on(&mut root, OTHER) && root.machine().raises(OTHER, second));
    // Its driver can let it go on, and it is stopped at the next attempt, without a line.
    attach(&mut root, 0, 1);
    assert!(is_on(&mut root, FUNCTION));
    assert_eq!(refuse(&mut root, second), [""; 0]);
    assert!(!is_on(&mut root, FUNCTION));
    // The next driver's attempts are reported again.
    root.request(0, request::ROOT_EXIT, &[0]);
    attach(&mut root, 0, 0);
    assert_eq!(refuse(&mut root, second).len(), 1);
}

#[test]
fn faults_of_functions_that_are_not_known_are_not_reported_for_ever() {
    let mut root = start(machine(Abilities::USUAL));
    let line = root.system.resources.iommu.interrupt.unwrap();
    root.machine().devices.insert(OTHER, function_with_table());
    root.machine().devices.get_mut(&OTHER).unwrap().words.insert(4, 7);
    root.machine().reports.clear();
    for _ in 0..20 {
        assert!(!root.machine().reaches(OTHER, 0x10_0000));
        handle(&mut root.system, ThreadId::interrupt(line), MessageTag::EMPTY, &[]);
    }
    let before = unit(&mut root).interrupts;
    assert!(before <= MOST_FAULTS);
    let lines = root.machine().reports.len() as u32;
    root.request(0, request::ROOT_EXIT, &[0]);
    let ends = root.machine().reports[lines as usize..].iter().filter(|line| line.contains("unknown"));
    assert_eq!((lines, ends.count()), (MOST_FAULTS + 1, 0));
    assert_eq!(root.machine().reports[0], "root: unknown function 00:04.0 may not read 0x100000 (reason 2)");
}

#[test]
fn a_function_reaches_what_the_firmware_has_told_it() {
    let mut machine = machine(Abilities::USUAL);
    let own = [scope(1, 0, &[(3, 0)])];
    let free = MEMORY.start..MEMORY.start + PAGE;
    let entries = [
        unit_entry(true, REGISTERS, &[]),
        reserved_entry(RESERVED, &own),
        reserved_entry(free, &own),
        reserved_entry(0xb0_0000..0xb0_1000, &[scope(1, 0, &[(4, 0)])]),
    ];
    machine.dmar = Some(table(&entries));
    let mut root = start(machine);
    let reachable: Vec<u64> = unit(&mut root).reachable(FUNCTION).into_iter().collect();
    assert_eq!(reachable, [RESERVED.start, RESERVED.start + PAGE]);
    let refused =
        "the firmware reserves 0x100000..0x101000 for function 00:03.0, which is free memory: not granted";
    assert!(root.machine().reports.iter().any(|line| line.ends_with(refused)));
    root.check();
}

#[test]
fn a_unit_that_does_not_answer_stops_its_functions_and_nothing_else() {
    let mut root = start(machine(Abilities::USUAL));
    memory(&mut root, 1);
    unit(&mut root).is_stuck = true;
    let before = root.machine().now();
    root.request(0, request::ROOT_EXIT, &[0]);
    assert!(root.machine().now() - before < 200_000, "root waits for it once");
    let said = "root: the IOMMU at 0xfed90000 does not answer: its functions are stopped";
    assert!(root.machine().reports.iter().any(|line| line == said));
    let driver = root.first(0).raw();
    let attach = root.request(0, request::ROOT_MESSAGE_ATTACH, &[0, 0, driver]);
    assert_eq!(attach, refused(Status::Unsupported));
    assert_eq!(root.machine().devices[&FUNCTION].words[&4] & 4, 0);
    assert_eq!(root.request(1, ALLOCATE, &[ROOM, PAGE]), Some(Answer::Done));
}

#[test]
fn a_unit_that_never_answers_stops_its_functions() {
    let mut machine = machine(Abilities::USUAL);
    machine.unit.as_mut().unwrap().is_stuck = true;
    let mut root = start(machine);
    let driver = root.first(0).raw();
    let attach = root.request(0, request::ROOT_MESSAGE_ATTACH, &[0, 0, driver]);
    assert_eq!(attach, refused(Status::Unsupported));
}

#[test]
fn without_a_unit_that_can_be_used_drivers_are_trusted() {
    let usual = machine(Abilities::USUAL).dmar;
    let without_queue = Abilities { has_queue: false, ..Abilities::USUAL };
    let five_levels = Abilities { levels: 8, ..Abilities::USUAL };
    let none = Some(table(&[]));
    for (dmar, abilities, reason) in [
        (usual.clone(), without_queue, "none can be used"),
        (usual, five_levels, "none can be used"),
        (none, Abilities::USUAL, "none can be used"),
        (Some(b"DMAR".to_vec()), Abilities::USUAL, "the firmware's table: it is not whole"),
    ] {
        let mut machine = machine(abilities);
        machine.dmar = dmar;
        let mut root = start(machine);
        assert!(!unit(&mut root).is_on());
        let said = format!("root: there is no IOMMU: {reason}: drivers of devices are trusted");
        assert!(root.machine().reports.contains(&said), "{:?}", root.machine().reports);
        memory(&mut root, 1);
        pool(&mut root);
    }
    let mut root = Root::start("");
    root.system.set_up_iommu(None, 0);
    assert_eq!(root.machine().reports, ["root: there is no IOMMU: drivers of devices are trusted"]);
}

#[test]
fn a_function_without_a_unit_is_reported() {
    let mut machine = machine(Abilities::USUAL);
    machine.dmar = Some(table(&[unit_entry(false, REGISTERS, &[scope(1, 0, &[(9, 0)])])]));
    let mut root = start(machine);
    let said = "root: no IOMMU translates for function 00:03.0: its driver is trusted";
    assert!(root.machine().reports.iter().any(|line| line == said));
    memory(&mut root, 1);
    pool(&mut root);
}

/// A bridge from bus 0 to bus 1, of conventional PCI or of PCI Express with this type of port.
fn bridge(port: Option<u32>) -> simulation::Device {
    let mut words: std::collections::BTreeMap<u8, u32> =
        [(0, 0x1234_1234), (4, 1 << 20), (0xc, 1 << 16), (0x18, 0x01_0100)].into();
    if let Some(port) = port {
        words.extend([(0x34, 0x40), (0x40, port << 20 | 0x10)]);
    }
    simulation::Device { words, writable: [(4, 0xffff)].into() }
}

#[test]
fn functions_beyond_a_conventional_bridge_are_of_one_driver() {
    for (port, alias) in [(None, Some(2 << 11)), (Some(7), Some(1 << 16)), (Some(4), None)] {
        let mut machine = machine(Abilities::USUAL);
        machine.devices.remove(&FUNCTION);
        machine.devices.insert(2 << 11, bridge(port));
        let (first, second) = (1 << 16 | 1 << 11, 1 << 16 | 2 << 11);
        machine.devices.insert(first, function_with_table());
        machine.devices.insert(second, function_with_table());
        let settings = "pci 8086:10d3\ndma 16K\n";
        let mut root = Root::start_on(
            machine,
            &format!("{}{}", one(8, settings), one(8, settings).replace("server a", "server b")),
        );
        let own = memory(&mut root, 1);
        assert!(root.machine().reaches(first, own));
        if let Some(alias) = alias {
            assert!(unit(&mut root).reachable(alias).contains(&own), "{port:?}");
        }
        let sources: Vec<u16> = root.machine().sources.values().copied().collect();
        assert_eq!(sources, [(alias.unwrap_or(first) >> 8) as u16], "{port:?}");
        let is_refused = root.request(1, request::ROOT_RESOURCE, &[3, 0]) == refused(Status::NotFound);
        assert_eq!(is_refused, alias.is_some(), "{port:?}");
        root.check();
    }
}

fn abilities() -> impl Strategy<Value = Abilities> {
    let levels = proptest::sample::select(vec![2u64, 4, 6]);
    let large = proptest::sample::select(vec![0u64, 1, 3]);
    (levels, large, any::<[bool; 3]>()).prop_map(
        |(levels, large, [is_coherent, keeps_absent, has_write_buffers])| Abilities {
            levels,
            large,
            is_coherent,
            keeps_absent,
            has_write_buffers,
            has_queue: true,
            remaps: true,
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Attach { server: usize, entry: u64 },
    Detach { server: usize, interrupt: u32 },
    Raise,
    Memory { page: u64, size: u64 },
    Pool { server: usize, page: u64, size: u64 },
    Access { page: u64 },
    UseAll,
    End(usize),
    Work(usize),
    OutOfMemory(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let size = || proptest::sample::select(vec![1u64, 2, 4]);
    prop_oneof![
        3 => (0usize..2, 0u64..4).prop_map(|(server, entry)| Step::Attach { server, entry }),
        2 => (0usize..2, MESSAGES).prop_map(|(server, interrupt)| Step::Detach { server, interrupt }),
        3 => Just(Step::Raise),
        4 => (0u64..12, size()).prop_map(|(page, size)| Step::Memory { page, size }),
        4 => (1usize..3, 12u64..30, size()).prop_map(|(server, page, size)| Step::Pool { server, page, size }),
        4 => any::<u64>().prop_map(|page| Step::Access { page: MEMORY.start + page % 2048 * PAGE }),
        4 => Just(Step::UseAll),
        2 => (0usize..3).prop_map(Step::End),
        6 => any::<usize>().prop_map(Step::Work),
        1 => proptest::bool::weighted(0.2).prop_map(Step::OutOfMemory),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// For any order of grants, accesses and ends, with units of all abilities: a function never
    /// reaches a page that is neither its driver's nor one of its pools, and it raises the
    /// interrupts that its driver has, and no others.
    #[test]
    fn a_function_never_reaches_other_memory_or_interrupts(
        abilities in abilities(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let server = |name: &str, more: &str| format!("server {name}\nprogram p\nmemory 256K\nrestart 1000\n{more}");
        let driver = server("a", "pci 8086:10d3\ndma 32K\n");
        let other = server("b", "pci 8086:10d3\n");
        let mut machine = machine(abilities);
        machine.devices.insert(OTHER, function_with_table());
        let mut root = Root::start_on(machine, &(driver + &other + &server("c", "")));
        for step in steps {
            let first = |root: &Root, index: usize| root.system.servers[index].first.unwrap_or(ThreadId::NIL);
            let a = first(&root, 0).raw();
            let send = |root: &mut Root, index: usize, label, words: &[u64]| {
                let from = first(root, index);
                root.send(from, label, words)
            };
            match step {
                Step::Attach { server, entry } => {
                    let thread = first(&root, server).raw();
                    send(&mut root, server, request::ROOT_MESSAGE_ATTACH, &[0, entry, thread]);
                }
                Step::Detach { server, interrupt } => {
                    send(&mut root, server, request::ROOT_MESSAGE_DETACH, &[interrupt.into()]);
                }
                Step::Raise => root.check_interrupts(),
                Step::Memory { page, size } => {
                    send(&mut root, 0, request::ROOT_MEMORY_DMA, &[room(page), size * PAGE, 32, 0]);
                }
                Step::Pool { server, page, size } => {
                    send(&mut root, server, request::ROOT_MEMORY_POOL, &[room(page), size * PAGE]);
                    send(&mut root, server, request::ROOT_POOL_CREATE, &[room(page), size * PAGE, a]);
                }
                Step::Access { page } => drop(root.machine().reaches(FUNCTION, page)),
                Step::UseAll => unit(&mut root).use_all(FUNCTION),
                Step::End(server) => drop(send(&mut root, server, request::ROOT_EXIT, &[0])),
                Step::Work(at) if !root.queue.is_empty() => {
                    let at = at % root.queue.len();
                    root.step(at);
                }
                Step::Work(_) => {}
                Step::OutOfMemory(is_out) => root.machine().is_out_of_memory = is_out,
            }
            root.check_reach();
        }
        root.finish();
    }
}
