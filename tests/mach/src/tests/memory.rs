//! Tests of address spaces: the effects of the library's operations on the memory that programs
//! see.

use mach::KernError;
use mach::machine::{Caching, PAGE_SIZE, Protection};
use mach::vm::{AttributeValue, Behavior, Inheritance, MachineAttribute, MapRequest, Placement, VmObject};

use crate::code::command;
use crate::report::{TestResult, holds, same, tests};
use crate::servant::{Outcome, Servant};
use crate::system::System;

tests! {
    MACH0001 "fresh memory is zero, and what a program writes the server reads" zero_fill;
    MACH0002 "what the server writes a program reads" copyout;
    MACH0003 "a child has a copy of the memory: neither sees what the other writes" copy_on_write;
    MACH0004 "copies of copies, written in every order, stay apart" generations;
    MACH0005 "shared memory is shared with a child, and none is inherited where none shall be" inheritance;
    MACH0006 "protection is taken from and given to a program that has touched the page" protect;
    MACH0007 "memory that is deallocated while a program uses it faults" unmap_under_use;
    MACH0008 "wired memory is there before it is touched, and again after its protection changes" wire;
    MACH0009 "memory that is mapped a second time is the same memory" remap;
    MACH0010 "a virtual copy keeps what was there" virtual_copy;
    MACH0011 "two megabytes of large pages cost one fault and hold what is written" large_pages;
    MACH0012 "a region of ten thousand pages is forked, written by the child, and freed" large_fork;
    MACH0013 "memory outside every region faults with the library's error" no_region;
    MACH0015 "device memory is what the device has, in every program that has it; the server needs none of it" device_memory;
    MACH0016 "a region is told as it is, before and after it is touched, shared and wired" region_info;
    MACH0017 "memory in use is replaced by a copy of other memory, private and shared" copy_and_write;
    MACH0018 "attributes of the machine are told, and those that it cannot change are refused" attributes;
    MACH0019 "ranges that wrap, overlap or are not aligned have their errors, and a program does not notice" bad_ranges;
    MACH0020 "of 65 536 regions each is found, a child has them, and all go" many_regions;
    MACH0014 "many tasks one after the other use no more memory than one" many_tasks;
}

const HERE: u64 = 0x4000_0000;

fn region(pages: u64) -> MapRequest<mach_l4::L4Machine> {
    MapRequest::anonymous(pages * PAGE_SIZE).at(Placement::Fixed(HERE))
}

async fn zero_fill(system: &System) -> TestResult {
    let servant = system.servant().await?;
    servant.map().map(&region(4)).await?;
    same!(servant.load(HERE + 8).await, Outcome::Done(0));
    same!(servant.store(HERE + 8, 77).await, Outcome::Done(HERE + 8));
    same!(servant.load(HERE + 8).await, Outcome::Done(77));
    let mut word = [0; 8];
    servant.map().copyin(HERE + 8, &mut word).await?;
    same!(u64::from_le_bytes(word), 77);
    same!(servant.load(HERE + 3 * PAGE_SIZE).await, Outcome::Done(0));
    servant.task.terminate().await;
    Ok(())
}

/// The page of the screen's text, which the configuration gives this server. No server has the page
/// after it.
const SCREEN: u64 = 0xb_8000;

async fn device_memory(system: &System) -> TestResult {
    let servant = system.servant().await?;
    let screen = VmObject::device(system.vm(), SCREEN, 2 * PAGE_SIZE, Caching::Uncached)?;
    let request = MapRequest::shared(screen.clone(), 0, 2 * PAGE_SIZE).at(Placement::Fixed(HERE));
    servant.map().map(&request).await?;
    let other = Servant::start(&servant.task.create_task(true).await?).await?;
    for word in [0x0741_0742_0743_0744, 0x0720_0720_0720_0720] {
        same!(servant.store(HERE + 0xf00, word).await, Outcome::Done(HERE + 0xf00));
        same!(other.load(HERE + 0xf00).await, Outcome::Done(word));
    }
    // A page of a device has no frame, but is protected and unmapped like any other page.
    same!(
        servant.map().copyin(HERE, &mut [0]).await.map_err(|fault| fault.error),
        Err(KernError::NotSupported)
    );
    servant.map().protect(HERE, PAGE_SIZE, Protection::READ, false).await?;
    same!(other.store(HERE, 1).await, Outcome::Done(HERE));
    same!(servant.load(HERE).await, Outcome::Done(1));
    same!(servant.store(HERE, 2).await, Outcome::Fault(HERE, KernError::ProtectionFailure));
    let behind = other.map().fault(HERE + PAGE_SIZE, Protection::READ).await;
    same!(behind, Err(KernError::ResourceShortage));
    other.map().deallocate(HERE, 2 * PAGE_SIZE).await?;
    same!(other.load(HERE).await, Outcome::Fault(HERE, KernError::InvalidAddress));
    servant.task.terminate().await;
    other.task.terminate().await;
    Ok(())
}

async fn copyout(system: &System) -> TestResult {
    let servant = system.servant().await?;
    servant.map().map(&region(2)).await?;
    let bytes: [u8; 16] = core::array::from_fn(|index| index as u8);
    servant.map().copyout(HERE + PAGE_SIZE - 8, &bytes).await?;
    same!(servant.load(HERE + PAGE_SIZE - 8).await, Outcome::Done(0x0706_0504_0302_0100));
    same!(servant.load(HERE + PAGE_SIZE).await, Outcome::Done(0x0f0e_0d0c_0b0a_0908));
    servant.task.terminate().await;
    Ok(())
}

async fn copy_on_write(system: &System) -> TestResult {
    let parent = system.servant().await?;
    parent.map().map(&region(2)).await?;
    parent.store(HERE, 1).await;
    let child = Servant::start(&parent.task.create_task(true).await?).await?;
    same!(child.load(HERE).await, Outcome::Done(1));
    same!(child.store(HERE, 2).await, Outcome::Done(HERE));
    same!(parent.load(HERE).await, Outcome::Done(1));
    same!(parent.store(HERE, 3).await, Outcome::Done(HERE));
    same!(child.load(HERE).await, Outcome::Done(2));
    // This page was never touched before.
    same!(parent.store(HERE + PAGE_SIZE, 4).await, Outcome::Done(HERE + PAGE_SIZE));
    same!(child.load(HERE + PAGE_SIZE).await, Outcome::Done(0));
    parent.task.terminate().await;
    same!(child.load(HERE).await, Outcome::Done(2));
    child.task.terminate().await;
    Ok(())
}

async fn generations(system: &System) -> TestResult {
    const COUNT: usize = 5;
    let mut family = alloc::vec![system.servant().await?];
    family[0].map().map(&region(COUNT as u64)).await?;
    same!(family[0].fill(HERE, COUNT as u64, 100).await, Outcome::Done(HERE + COUNT as u64 * PAGE_SIZE));
    for index in 1..COUNT {
        let child = family[index - 1].task.create_task(true).await?;
        family.push(Servant::start(&child).await?);
    }
    // Each task writes its own page, from the youngest to the oldest, and sees the others as they
    // were.
    for (index, servant) in family.iter().enumerate().rev() {
        same!(
            servant.store(HERE + index as u64 * PAGE_SIZE, 7).await,
            Outcome::Done(HERE + index as u64 * PAGE_SIZE)
        );
    }
    for (index, servant) in family.iter().enumerate() {
        same!(servant.check(HERE, COUNT as u64, 100).await, Outcome::Done(1));
        same!(servant.load(HERE + index as u64 * PAGE_SIZE).await, Outcome::Done(7));
    }
    for servant in family.iter().step_by(2).chain(family.iter().skip(1).step_by(2)) {
        servant.task.terminate().await;
    }
    Ok(())
}

async fn inheritance(system: &System) -> TestResult {
    let parent = system.servant().await?;
    let map = parent.map();
    map.map(&region(3)).await?;
    map.inherit(HERE, PAGE_SIZE, Inheritance::Share).await?;
    map.inherit(HERE + 2 * PAGE_SIZE, PAGE_SIZE, Inheritance::None).await?;
    same!(parent.fill(HERE, 3, 50).await, Outcome::Done(HERE + 3 * PAGE_SIZE));
    let child = Servant::start(&parent.task.create_task(true).await?).await?;
    same!(child.store(HERE, 60).await, Outcome::Done(HERE));
    same!(parent.load(HERE).await, Outcome::Done(60));
    same!(parent.store(HERE, 61).await, Outcome::Done(HERE));
    same!(child.load(HERE).await, Outcome::Done(61));
    same!(child.load(HERE + PAGE_SIZE).await, Outcome::Done(51));
    let there = HERE + 2 * PAGE_SIZE;
    same!(child.load(there).await, Outcome::Fault(there, KernError::InvalidAddress));
    child.task.terminate().await;
    parent.task.terminate().await;
    Ok(())
}

async fn protect(system: &System) -> TestResult {
    let servant = system.servant().await?;
    let map = servant.map();
    map.map(&region(2)).await?;
    same!(servant.store(HERE, 5).await, Outcome::Done(HERE));
    map.protect(HERE, PAGE_SIZE, Protection::READ, false).await?;
    same!(servant.load(HERE).await, Outcome::Done(5));
    same!(servant.store(HERE, 6).await, Outcome::Fault(HERE, KernError::ProtectionFailure));
    map.protect(HERE, PAGE_SIZE, Protection::NONE, false).await?;
    same!(servant.recover().await, Outcome::Done(0));
    same!(servant.load(HERE).await, Outcome::Fault(HERE, KernError::ProtectionFailure));
    map.protect(HERE, PAGE_SIZE, Protection::DEFAULT, false).await?;
    same!(servant.recover().await, Outcome::Done(0));
    same!(servant.store(HERE, 6).await, Outcome::Done(HERE));
    // The code cannot be written: to the program its own write is a fault.
    let code = crate::servant::CODE;
    same!(servant.store(code, 0).await, Outcome::Fault(code, KernError::ProtectionFailure));
    servant.task.terminate().await;
    Ok(())
}

async fn unmap_under_use(system: &System) -> TestResult {
    let servant = system.servant().await?;
    servant.map().map(&region(1)).await?;
    same!(servant.store(HERE, 0).await, Outcome::Done(HERE));
    servant.begin(command::COUNT, |state| state.rdi = HERE);
    let mut counted = [0; 8];
    while u64::from_le_bytes(counted) < 1000 {
        crate::tests::pause(system).await;
        servant.map().copyin(HERE, &mut counted).await?;
    }
    servant.map().deallocate(HERE, PAGE_SIZE).await?;
    same!(servant.serve(None).await, Outcome::Fault(HERE, KernError::InvalidAddress));
    servant.task.terminate().await;
    Ok(())
}

async fn wire(system: &System) -> TestResult {
    let servant = system.servant().await?;
    let map = servant.map();
    map.map(&region(8)).await?;
    map.wire(HERE, 8 * PAGE_SIZE).await?;
    let wired = system.vm().statistics().wired;
    holds!(wired >= 8);
    let before = servant.faults();
    same!(servant.fill(HERE, 8, 9).await, Outcome::Done(HERE + 8 * PAGE_SIZE));
    same!(servant.faults(), before);
    map.unwire(HERE, 8 * PAGE_SIZE).await?;
    same!(system.vm().statistics().wired, wired - 8);
    same!(servant.check(HERE, 8, 9).await, Outcome::Done(0));
    servant.task.terminate().await;
    Ok(())
}

async fn remap(system: &System) -> TestResult {
    const THERE: u64 = 0x5000_0000;
    let (one, other) = (system.servant().await?, system.servant().await?);
    one.map().map(&region(2)).await?;
    same!(one.store(HERE, 1).await, Outcome::Done(HERE));
    let shared = one.map().share(HERE, 2 * PAGE_SIZE).await?;
    other.map().insert(shared, Placement::Fixed(THERE)).await.map_err(|(error, _)| error)?;
    same!(other.load(THERE).await, Outcome::Done(1));
    same!(other.store(THERE + PAGE_SIZE, 2).await, Outcome::Done(THERE + PAGE_SIZE));
    same!(one.load(HERE + PAGE_SIZE).await, Outcome::Done(2));
    // The memory stays in the other task.
    one.task.terminate().await;
    same!(other.load(THERE).await, Outcome::Done(1));
    other.task.terminate().await;
    Ok(())
}

async fn virtual_copy(system: &System) -> TestResult {
    const THERE: u64 = 0x5000_0000;
    let servant = system.servant().await?;
    let map = servant.map();
    map.map(&region(4)).await?;
    same!(servant.fill(HERE, 4, 30).await, Outcome::Done(HERE + 4 * PAGE_SIZE));
    let copy = map.read(HERE, 4 * PAGE_SIZE).await?;
    same!(servant.fill(HERE, 4, 40).await, Outcome::Done(HERE + 4 * PAGE_SIZE));
    map.insert(copy, Placement::Fixed(THERE)).await.map_err(|(error, _)| error)?;
    same!(servant.check(THERE, 4, 30).await, Outcome::Done(0));
    same!(servant.check(HERE, 4, 40).await, Outcome::Done(0));
    same!(servant.fill(THERE, 4, 50).await, Outcome::Done(THERE + 4 * PAGE_SIZE));
    same!(servant.check(HERE, 4, 40).await, Outcome::Done(0));
    servant.task.terminate().await;
    Ok(())
}

async fn large_pages(system: &System) -> TestResult {
    const SIZE: u64 = 2 << 20;
    let servant = system.servant().await?;
    let map = servant.map();
    map.map(&MapRequest::anonymous(SIZE).at(Placement::Fixed(HERE))).await?;
    map.behavior(HERE, SIZE, Behavior::LargePages).await?;
    let before = servant.faults();
    same!(servant.fill(HERE, SIZE / PAGE_SIZE, 3).await, Outcome::Done(HERE + SIZE));
    same!(servant.faults(), before + 1);
    same!(servant.check(HERE, SIZE / PAGE_SIZE, 3).await, Outcome::Done(0));
    // A page in the middle is deallocated, the others stay.
    map.deallocate(HERE + 5 * PAGE_SIZE, PAGE_SIZE).await?;
    let there = HERE + 5 * PAGE_SIZE;
    same!(servant.load(there).await, Outcome::Fault(there, KernError::InvalidAddress));
    same!(servant.recover().await, Outcome::Done(0));
    same!(servant.check(HERE, 5, 3).await, Outcome::Done(0));
    same!(servant.check(HERE + 6 * PAGE_SIZE, 506, 9).await, Outcome::Done(0));
    servant.task.terminate().await;
    Ok(())
}

async fn large_fork(system: &System) -> TestResult {
    const PAGES: u64 = 10_000;
    let parent = system.servant().await?;
    parent.map().map(&region(PAGES)).await?;
    // The program fills as many pages as memory allows, with room for the child's.
    same!(parent.fill(HERE, 500, 8).await, Outcome::Done(HERE + 500 * PAGE_SIZE));
    let child = Servant::start(&parent.task.create_task(true).await?).await?;
    same!(child.check(HERE, 500, 8).await, Outcome::Done(0));
    same!(child.fill(HERE, 500, 1000).await, Outcome::Done(HERE + 500 * PAGE_SIZE));
    same!(parent.check(HERE, 500, 8).await, Outcome::Done(0));
    same!(child.check(HERE, 500, 1000).await, Outcome::Done(0));
    same!(child.load(HERE + (PAGES - 1) * PAGE_SIZE).await, Outcome::Done(0));
    parent.task.terminate().await;
    same!(child.check(HERE, 500, 1000).await, Outcome::Done(0));
    child.task.terminate().await;
    Ok(())
}

async fn no_region(system: &System) -> TestResult {
    let servant = system.servant().await?;
    for address in [0, HERE, 0x7ffe_0000_0000] {
        same!(servant.load(address).await, Outcome::Fault(address, KernError::InvalidAddress));
        same!(servant.recover().await, Outcome::Done(0));
    }
    servant.task.terminate().await;
    Ok(())
}

async fn region_info(system: &System) -> TestResult {
    let servant = system.servant().await?;
    let map = servant.map();
    // The region is placed by its alignment, above the first region that is free.
    let large = MapRequest { alignment: 1 << 21, ..MapRequest::anonymous(2 * PAGE_SIZE) };
    let at = map.map(&large.at(Placement::Above(HERE + 1))).await?;
    same!(at, HERE + (1 << 21));
    let untouched = map.region(at).await?;
    same!((untouched.start, untouched.size, untouched.object), (at, 2 * PAGE_SIZE, None));
    same!(servant.store(at, 1).await, Outcome::Done(at));
    map.protect(at, PAGE_SIZE, Protection::READ, true).await?;
    map.inherit(at, PAGE_SIZE, Inheritance::Share).await?;
    map.behavior(at, PAGE_SIZE, Behavior::Random).await?;
    let child = servant.task.create_task(true).await?;
    map.wire(at, PAGE_SIZE).await?;
    // For an address before the region the answer is the next region.
    let first = map.region(at - 1).await?;
    same!((first.start, first.size), (at, PAGE_SIZE));
    same!((first.protection, first.max_protection), (Protection::READ, Protection::READ));
    same!((first.inheritance, first.behavior), (Inheritance::Share, Behavior::Random));
    same!((first.shared, first.wired), (true, 1));
    same!(child.map().region(at).await?.object, first.object);
    same!(map.region(at + PAGE_SIZE).await?.max_protection, Protection::ALL);
    same!(map.region(at + 2 * PAGE_SIZE).await, Err(KernError::NoSpace));
    child.terminate().await;
    servant.task.terminate().await;
    Ok(())
}

async fn copy_and_write(system: &System) -> TestResult {
    const THERE: u64 = 0x5000_0000;
    let servant = system.servant().await?;
    let map = servant.map();
    map.map(&region(4)).await?;
    same!(servant.fill(HERE, 4, 30).await, Outcome::Done(HERE + 4 * PAGE_SIZE));
    map.allocate(Placement::Fixed(THERE), 4 * PAGE_SIZE).await?;
    map.inherit(THERE + 2 * PAGE_SIZE, 2 * PAGE_SIZE, Inheritance::Share).await?;
    same!(servant.fill(THERE, 4, 60).await, Outcome::Done(THERE + 4 * PAGE_SIZE));
    let child = Servant::start(&servant.task.create_task(true).await?).await?;
    // Two pages are the program's own, two are its child's as well.
    map.copy(HERE, 4 * PAGE_SIZE, THERE).await?;
    same!(servant.check(THERE, 4, 30).await, Outcome::Done(0));
    same!(child.check(THERE, 2, 60).await, Outcome::Done(0));
    same!(child.check(THERE + 2 * PAGE_SIZE, 2, 32).await, Outcome::Done(0));
    // The copy stays as it was, and can be written into another program.
    let copy = map.read(HERE, 2 * PAGE_SIZE).await?;
    same!(servant.fill(HERE, 4, 90).await, Outcome::Done(HERE + 4 * PAGE_SIZE));
    child.map().write(THERE, copy).await?;
    same!(child.check(THERE, 2, 30).await, Outcome::Done(0));
    same!(servant.check(THERE, 4, 30).await, Outcome::Done(0));
    map.protect(THERE, PAGE_SIZE, Protection::READ, false).await?;
    same!(map.copy(HERE, PAGE_SIZE, THERE).await, Err(KernError::ProtectionFailure));
    child.task.terminate().await;
    servant.task.terminate().await;
    Ok(())
}

async fn attributes(system: &System) -> TestResult {
    let servant = system.servant().await?;
    servant.map().map(&region(1)).await?;
    let ask = |attribute, value| servant.map().machine_attribute(HERE, PAGE_SIZE, attribute, value);
    same!(ask(MachineAttribute::Cache, AttributeValue::Get).await, Ok(AttributeValue::On));
    same!(ask(MachineAttribute::Cache, AttributeValue::CacheSync).await, Ok(AttributeValue::On));
    same!(ask(MachineAttribute::Cache, AttributeValue::Off).await, Err(KernError::NotSupported));
    same!(ask(MachineAttribute::Migrate, AttributeValue::On).await, Err(KernError::NotSupported));
    let beyond = servant.map().machine_attribute(
        HERE + PAGE_SIZE,
        PAGE_SIZE,
        MachineAttribute::Cache,
        AttributeValue::Get,
    );
    same!(beyond.await, Err(KernError::InvalidAddress));
    servant.task.terminate().await;
    Ok(())
}

async fn bad_ranges(system: &System) -> TestResult {
    let servant = system.servant().await?;
    let map = servant.map();
    map.map(&region(2)).await?;
    same!(servant.fill(HERE, 2, 5).await, Outcome::Done(HERE + 2 * PAGE_SIZE));
    // The ranges are not aligned, empty, beyond the last address, or half of them is not mapped.
    let ranges = [
        (HERE + 1, PAGE_SIZE, KernError::InvalidArgument),
        (HERE, 0, KernError::InvalidArgument),
        (HERE, u64::MAX, KernError::InvalidAddress),
        (!(PAGE_SIZE - 1), 2 * PAGE_SIZE, KernError::InvalidAddress),
        (HERE + PAGE_SIZE, 2 * PAGE_SIZE, KernError::InvalidAddress),
    ];
    for (number, (start, size, error)) in ranges.into_iter().enumerate() {
        same!(map.protect(start, size, Protection::READ, false).await, Err(error));
        same!(map.inherit(start, size, Inheritance::None).await, Err(error));
        same!(map.behavior(start, size, Behavior::Random).await, Err(error));
        same!(map.wire(start, size).await, Err(error));
        same!(map.unwire(start, size).await, Err(error));
        same!(map.read(start, size).await.err(), Some(error));
        same!(map.share(start, size).await.err(), Some(error));
        same!(map.take(start, size).await.err(), Some(error));
        same!(map.copy(start, size, HERE).await, Err(error));
        if number < 4 {
            // Deallocating a range that is not mapped is not an error.
            same!(map.deallocate(start, size).await, Err(error));
            same!(map.allocate(Placement::Fixed(start), size).await.err(), Some(error));
        }
    }
    same!(map.allocate(Placement::Fixed(HERE + PAGE_SIZE), PAGE_SIZE).await, Err(KernError::NoSpace));
    same!(map.allocate(Placement::Fixed(0), PAGE_SIZE).await, Err(KernError::InvalidAddress));
    same!(map.allocate(Placement::Above(0), 1 << 47).await, Err(KernError::NoSpace));
    same!(map.region(HERE).await?.size, 2 * PAGE_SIZE);
    same!(servant.check(HERE, 2, 5).await, Outcome::Done(0));
    servant.task.terminate().await;
    Ok(())
}

async fn many_regions(system: &System) -> TestResult {
    const REGIONS: u64 = 1 << 16;
    let servant = system.servant().await?;
    let map = servant.map();
    let before = map.entry_count().await;
    // Every other page is allocated: none can be joined with the next.
    for number in 0..REGIONS {
        map.allocate(Placement::Fixed(HERE + 2 * number * PAGE_SIZE), PAGE_SIZE).await?;
    }
    same!(map.entry_count().await, before + REGIONS as usize);
    for number in [0, 1, REGIONS / 3, REGIONS - 1] {
        let address = HERE + 2 * number * PAGE_SIZE;
        same!(servant.store(address, number).await, Outcome::Done(address));
        let gap = address + PAGE_SIZE;
        same!(servant.load(gap).await, Outcome::Fault(gap, KernError::InvalidAddress));
        same!(servant.recover().await, Outcome::Done(0));
    }
    let child = Servant::start(&servant.task.create_task(true).await?).await?;
    let last = HERE + 2 * (REGIONS - 1) * PAGE_SIZE;
    same!(child.load(last).await, Outcome::Done(REGIONS - 1));
    map.deallocate(HERE, 2 * REGIONS * PAGE_SIZE).await?;
    same!(map.entry_count().await, before);
    same!(servant.load(last).await, Outcome::Fault(last, KernError::InvalidAddress));
    same!(child.load(last).await, Outcome::Done(REGIONS - 1));
    child.task.terminate().await;
    servant.task.terminate().await;
    Ok(())
}

async fn many_tasks(system: &System) -> TestResult {
    for number in 0..60 {
        let servant = system.servant().await?;
        servant.map().map(&region(4)).await?;
        same!(servant.fill(HERE, 4, number).await, Outcome::Done(HERE + 4 * PAGE_SIZE));
        servant.task.terminate().await;
    }
    Ok(())
}
