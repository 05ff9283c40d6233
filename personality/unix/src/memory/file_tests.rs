//! Tests of files in Mach objects on the simulated machine: transfers from page to page must have
//! the same effect as transfers through a buffer.

use super::file_memory::{ObjectMemory, ObjectProvider};
use super::{Layout, Memory, PAGE, UserRanges};
use crate::front_end::FrontEndNumber;
use crate::personality::Task;
use crate::testing::account;
use crate::vfs::{FileMemory, InitialContents, MemoryProvider, Quota};
use crate::{AttemptError, Bytes, CopyError, Error, UserBuffer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Waker};
use mach::machine::Protection;
use mach::machine::simulated::Simulated;
use mach::vm::{MapRequest, Placement, Vm};
use proptest::prelude::*;

const LAYOUT: Layout = Layout { low: 0x10000, high: 0x7fff_f000_0000, randomise: false };
const BASE: u64 = 0x40_0000;
const SIZE: usize = PAGE as usize;

/// A quota: how many pages a file may have.
struct Pages(AtomicU64);

impl Quota for Pages {
    fn charge(&self, pages: u64) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(pages)).is_ok()
    }
    fn release(&self, pages: u64) {
        self.0.fetch_add(pages, Ordering::SeqCst);
    }
}

/// The kinds of pages in the address space of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Untouched,
    Touched,
    ReadOnly,
    Nothing,
    /// The page shows the file, from this page of the file on.
    Shared(u64),
    Private(u64),
    /// The page shows the file from this page on, and was written after that.
    Written(u64),
    /// Another process shares the page until one of them writes to it.
    Forked,
}

use Kind::*;

const PAGES: [Kind; 14] = [
    Untouched,
    Untouched,
    Touched,
    Touched,
    ReadOnly,
    Nothing,
    Shared(0),
    Shared(1),
    Private(0),
    Private(1),
    Written(1),
    Forked,
    Forked,
    Nothing,
];

fn address(page: usize) -> u64 {
    BASE + page as u64 * PAGE
}

/// A process, its child, and a file whose first two pages the process has mapped.
struct Place {
    memory: Arc<Task<Simulated>>,
    child: Arc<Task<Simulated>>,
    file: Arc<ObjectMemory<Simulated>>,
}

impl Place {
    async fn new(vm: &Arc<Vm<Simulated>>, initial: usize, quota: u64) -> Place {
        let contents: Vec<u8> = (0..initial).map(|at| at as u8 ^ (at >> 8) as u8).collect();
        let initial = (initial > 0).then(|| InitialContents {
            length: contents.len(),
            holder: Arc::new(contents),
            start: 0,
        });
        let provider = ObjectProvider(vm.clone());
        let file = provider.file_memory(Arc::new(Pages(AtomicU64::new(quota))), initial).unwrap();
        let file: Arc<ObjectMemory<Simulated>> = ObjectMemory::of(file).unwrap();
        file.truncate(file.size().max(2 * PAGE)).await;
        let host = mach::Host::new(vm.clone(), Default::default(), 0);
        let memory = Memory::create(&host, &LAYOUT, &account(), FrontEndNumber::default()).await.unwrap();
        let map = memory.map();
        for (page, kind) in PAGES.into_iter().enumerate() {
            let request = match kind {
                Nothing => continue,
                Shared(at) => MapRequest::shared(file.object().clone(), at * PAGE, PAGE),
                Private(at) | Written(at) => MapRequest::private(file.object().clone(), at * PAGE, PAGE),
                _ => MapRequest::anonymous(PAGE),
            };
            map.map(&request.at(Placement::Fixed(address(page)))).await.unwrap();
            if !matches!(kind, Untouched | Shared(_) | Private(_)) {
                map.copyout(address(page), &[page as u8; SIZE]).await.unwrap();
            }
            if kind == ReadOnly {
                map.protect(address(page), PAGE, Protection::READ, false).await.unwrap();
            }
        }
        let child = Memory::fork(&memory, &account()).await.unwrap();
        // The child does not touch these pages after the fork.
        for page in (0..PAGES.len()).filter(|page| matches!(PAGES[*page], Touched | Written(_))) {
            map.copyout(address(page), &[0x80 | page as u8; SIZE]).await.unwrap();
        }
        Place { memory, child, file }
    }

    fn buffer(&self, ranges: &[(u64, usize)]) -> UserRanges<Simulated> {
        UserRanges::many(&self.memory, ranges.to_vec())
    }

    /// A read or write as open files do it, or with `old` a transfer that goes through a buffer as
    /// a whole. Returns how far it came, and the error that ended it.
    async fn transfer(
        &self,
        (write, old): (bool, bool),
        offset: u64,
        ranges: &[(u64, usize)],
    ) -> (usize, Option<Error>) {
        let mut buffer = self.buffer(ranges);
        let buffer: &mut dyn UserBuffer = &mut buffer;
        while buffer.remaining() > 0 {
            let (at, all) = (offset + buffer.transferred() as u64, buffer.remaining());
            let before = buffer.transferred();
            let done = match (write, old) {
                (false, true) => self.file.read_through_buffer(at, all, buffer).await,
                (false, false) => self.file.read(at, all, buffer).await,
                (true, true) => self.file.write_through_buffer(at, all, buffer).await,
                (true, false) => self.file.write(at, all, buffer).await,
            };
            assert_eq!(
                buffer.transferred() - before,
                *done.as_ref().unwrap_or(&0),
                "the buffer moves by the count"
            );
            match done {
                Ok(0) | Err(AttemptError::WouldBlock) => panic!("nothing is waited for"),
                Ok(_) => {}
                Err(AttemptError::Failed(error)) => return (buffer.transferred(), Some(error)),
                Err(AttemptError::NotResident) => {
                    if let Err(error) = buffer.resolve(!write).await {
                        return (buffer.transferred(), Some(error));
                    }
                }
            }
        }
        (buffer.transferred(), None)
    }

    /// All that a program can see: each page of both processes, and the file.
    async fn contents(&self) -> (Vec<Option<Vec<u8>>>, Vec<u8>, u64) {
        let mut pages = Vec::new();
        for memory in [&self.memory, &self.child] {
            for page in 0..PAGES.len() {
                let mut bytes = vec![0; SIZE];
                let read = memory.map().copyin(address(page), &mut bytes).await;
                pages.push(read.is_ok().then_some(bytes));
            }
        }
        let mut file = vec![0; 16 * SIZE];
        let length = self.file.object().read(0, &mut file).await.unwrap();
        file.truncate(length);
        (pages, file, self.file.pages())
    }
}

/// Runs a test, and checks that no frame is lost.
fn with_vm<T>(test: impl AsyncFnOnce(&Arc<Vm<Simulated>>) -> T) -> T {
    let machine = Simulated::new(1024);
    let vm = Vm::new(machine.clone()).unwrap();
    let free = vm.statistics().free;
    let result = machine.block_on(test(&vm));
    assert_eq!(vm.statistics().free, free, "every page was freed");
    result
}

#[derive(Clone, Debug)]
enum Step {
    Read(u64, Vec<(u64, usize)>),
    Write(u64, Vec<(u64, usize)>),
    Truncate(u64),
    Punch(u64, u64),
}

fn range(pages: core::ops::Range<usize>) -> impl Strategy<Value = (u64, usize)> {
    (pages, 0..PAGE, prop_oneof![0usize..64, 0usize..3 * SIZE])
        .prop_map(|(page, within, length)| (address(page) + within, length))
}

/// What is written to the file: ranges that do not show the file, or one range within a page that
/// shows it. A write of several ranges, one of which shows the file, would see what the ranges
/// before have written, and that page by page.
fn source() -> impl Strategy<Value = Vec<(u64, usize)>> {
    let to_page_end = |(at, length): (u64, usize)| vec![(at, length.min((PAGE - at % PAGE) as usize))];
    let of_file = (6..11usize, 0..PAGE, 0usize..=SIZE)
        .prop_map(|(page, within, length)| (address(page) + within, length))
        .prop_map(to_page_end);
    let other = prop_oneof![range(0..3), range(11..14)]
        // Cut the range, so that it ends before the pages that show the file.
        .prop_map(|(at, length)| (at, length.min((address(6).wrapping_sub(at)) as usize)));
    prop_oneof![proptest::collection::vec(other, 1..4), of_file]
}

/// Where what is read from the file goes: as [`source`], or several ranges that may be private
/// copies of the file. A read to several ranges, one of which shows the file, would find for the
/// ranges after it what it has itself written.
fn target() -> impl Strategy<Value = Vec<(u64, usize)>> {
    let private = prop_oneof![range(0..1), range(8..14)];
    prop_oneof![source(), proptest::collection::vec(private, 1..4)]
}

fn step() -> impl Strategy<Value = Step> {
    let offset = || 0..5 * PAGE;
    prop_oneof![
        3 => (offset(), target()).prop_map(|(at, to)| Step::Read(at, to)),
        3 => (offset(), source()).prop_map(|(at, from)| Step::Write(at, from)),
        1 => (0..6 * PAGE).prop_map(Step::Truncate),
        1 => (offset(), 1..2 * PAGE).prop_map(|(at, length)| Step::Punch(at, length)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Transfers of both kinds have the same effect for pages of all kinds, ranges that end at an
    /// unmapped address, and files that shrink or reach their quota.
    #[test]
    fn transfers_by_page_and_by_buffer_have_the_same_effect(
        initial in prop_oneof![Just(0), 1usize..3 * SIZE],
        quota in 0u64..8,
        steps in proptest::collection::vec(step(), 1..12),
    ) {
        with_vm(async |vm| {
            let (new, old) = (Place::new(vm, initial, quota).await, Place::new(vm, initial, quota).await);
            for step in &steps {
                let both = match step {
                    Step::Read(at, ranges) => [
                        new.transfer((false, false), *at, ranges).await,
                        old.transfer((false, true), *at, ranges).await,
                    ],
                    Step::Write(at, ranges) => [
                        new.transfer((true, false), *at, ranges).await,
                        old.transfer((true, true), *at, ranges).await,
                    ],
                    Step::Truncate(size) => {
                        new.file.truncate(*size).await;
                        old.file.truncate(*size).await;
                        continue;
                    }
                    Step::Punch(at, length) => {
                        let done = [
                            new.file.allocate(*at, *length, true).await,
                            old.file.allocate(*at, *length, true).await,
                        ];
                        prop_assert_eq!(done[0], done[1]);
                        continue;
                    }
                };
                prop_assert_eq!(&both[0], &both[1], "{:?}", step);
                prop_assert_eq!(new.contents().await, old.contents().await, "{:?}", step);
            }
            Ok(())
        })?;
    }
}

/// How many bytes a transfer that does not use a buffer has moved; `None` if it cannot move any.
fn pages(
    place: &Place,
    write: bool,
    offset: u64,
    ranges: &[(u64, usize)],
) -> Option<Result<usize, AttemptError>> {
    let mut buffer = place.buffer(ranges);
    match write {
        true => place.file.write_pages(offset, usize::MAX, &mut buffer),
        false => place.file.read_pages(offset, buffer.remaining(), &mut buffer),
    }
}

#[test]
fn pages_of_every_kind_are_copied_without_a_buffer() {
    with_vm(async |vm| {
        let place = Place::new(vm, 4 * SIZE, 8).await;
        let all = |write, page| pages(&place, write, 3 * PAGE, &[(address(page), SIZE)]);
        // The file has its pages from the first read on.
        place.transfer((false, true), 0, &[(address(0), 4 * SIZE)]).await;
        for (page, kind) in PAGES.into_iter().enumerate() {
            let (read, write) = match kind {
                Untouched | Touched | Forked | Written(_) => (Some(Ok(SIZE)), Some(Ok(SIZE))),
                ReadOnly => (Some(Err(CopyError::Fault.into())), Some(Ok(SIZE))),
                Nothing => (Some(Err(CopyError::Fault.into())), Some(Err(CopyError::Fault.into()))),
                // A transfer from the object to itself needs a buffer. A private page is not of the
                // object any more after a write.
                Shared(_) => (None, None),
                Private(_) => (Some(Ok(SIZE)), Some(Ok(SIZE))),
            };
            if let Private(_) = kind {
                assert_eq!(all(true, page), None, "page {page} is the file's still");
            }
            assert_eq!(all(false, page), read, "read to page {page}");
            assert_eq!(all(true, page), write, "written from page {page}");
        }
        let mut child = [0; 1];
        place.child.map().copyin(address(11), &mut child).await.unwrap();
        assert_eq!(child, [11], "what another process shares is copied before it is written");
    });
}

#[test]
fn a_page_fault_ends_a_transfer_at_its_byte() {
    with_vm(async |vm| {
        let place = Place::new(vm, 5 * SIZE, 8).await;
        for old in [false, true] {
            // The read fills 100 bytes of page 3, and stops at the page that must not be written.
            let read = place.transfer((false, old), 7, &[(address(4) - 100, 300)]).await;
            assert_eq!(read, (100, Some(Error::EFAULT)));
            // The write takes all of the page that can only be read, and stops at the unmapped one.
            let write = place.transfer((true, old), PAGE - 7, &[(address(4), 2 * SIZE)]).await;
            assert_eq!(write, (SIZE, Some(Error::EFAULT)));
            assert_eq!(place.transfer((true, old), 0, &[(address(5), 1)]).await, (0, Some(Error::EFAULT)));
        }
    });
}

#[test]
fn a_file_can_be_written_from_a_mapping_of_itself() {
    with_vm(async |vm| {
        let place = Place::new(vm, 2 * SIZE, 8).await;
        let mut before = [0; 200];
        place.file.object().read(0, &mut before).await.unwrap();
        // From the mapping of the file's first page to its second page, and to where the first page
        // is.
        assert_eq!(place.transfer((true, false), PAGE + 50, &[(address(6), 200)]).await, (200, None));
        let mut after = [0; 200];
        place.file.object().read(PAGE + 50, &mut after).await.unwrap();
        assert_eq!(after, before);
        assert_eq!(place.transfer((false, false), 0, &[(address(6) + 10, 100)]).await, (100, None));
        place.file.object().read(10, &mut after[..100]).await.unwrap();
        assert_eq!(after[..100], before[..100]);
    });
}

#[test]
fn a_write_leaves_bytes_beyond_the_quota_in_the_buffer() {
    with_vm(async |vm| {
        let place = Place::new(vm, 0, 2).await;
        for old in [false, true] {
            let write =
                place.transfer((true, old), PAGE, &[(address(2), 2 * SIZE), (address(11), 2 * SIZE)]).await;
            assert_eq!(write, (2 * SIZE, Some(Error::ENOSPC)));
        }
        assert_eq!(place.file.pages(), 2);
    });
}

#[test]
fn seek_finds_no_hole_from_the_end_of_a_grown_file_on() {
    with_vm(async |vm| {
        let place = Place::new(vm, 2 * SIZE + 100, 8).await;
        place.file.truncate(2 * PAGE + 100).await;
        for offset in [2 * PAGE + 100, 2 * PAGE + 200, 3 * PAGE, u64::MAX - 1] {
            assert_eq!(place.file.allocate(offset, 50, true).await, Ok(()), "from {offset}");
        }
        let mut bytes = [0; 100];
        assert_eq!(place.file.object().read(2 * PAGE, &mut bytes).await, Ok(100));
        assert_eq!(bytes[7], 7 ^ ((2 * PAGE) >> 8) as u8, "it has what it had");
    });
}

#[test]
fn a_dropped_transfer_has_advanced_its_buffer_by_what_it_wrote() {
    with_vm(async |vm| {
        let place = Place::new(vm, 0, 8).await;
        let mut bytes = Bytes::of(&[7; 100]);
        {
            let _resized = place.file.resize.lock().await;
            let mut writing = pin!(place.file.write(3 * PAGE, 100, &mut bytes));
            assert!(writing.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(bytes.transferred(), 0, "no byte is in the file");
        assert_eq!(place.file.write(3 * PAGE, 100, &mut bytes).await, Ok(100));
        assert_eq!(bytes.transferred(), 100);
    });
}
