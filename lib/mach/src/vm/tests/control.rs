//! Tests of the requests of pagers to the library, and of the library to pagers.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use std::sync::Mutex;

use super::super::{
    BoxFuture, CopyStrategy, DataRequest, DataReturn, LockRequest, MapRequest, Pager, Placement, ReturnPages,
    Settings, Vm, VmMap, VmObject,
};
use super::support::{BASE, System, load, store};
use crate::machine::simulated::{Executor, Simulated};
use crate::machine::{Machine, PAGE_SIZE, Protection};
use crate::{KernError, KernResult};

const PAGES: u64 = 8;
const SIZE: u64 = PAGES * PAGE_SIZE;

/// What a test pager does when it is asked to allow an access.
#[derive(Clone, Copy, Default, PartialEq)]
enum Unlocks {
    #[default]
    Always,
    Never,
    Silently,
}

/// A pager that records the requests that it gets.
#[derive(Default)]
struct Asked {
    contents: Mutex<Vec<u8>>,
    requests: Mutex<Vec<(u64, Protection)>>,
    returns: Mutex<Vec<(u64, u64, bool)>>,
    unlocks: Mutex<Vec<(u64, Protection)>>,
    /// The accesses that the pager prohibits when it provides pages.
    lock: Mutex<Protection>,
    unlock: Mutex<Unlocks>,
    refuses: Mutex<bool>,
}

impl Pager<Simulated> for Asked {
    fn data_request<'a>(&'a self, request: DataRequest<'a, Simulated>) -> BoxFuture<'a, KernResult<usize>> {
        alloc::boxed::Box::pin(async move {
            self.requests.lock().unwrap().push((request.offset / PAGE_SIZE, request.access));
            request.lock(*self.lock.lock().unwrap());
            request.machine.sleep_until(request.machine.now() + 10).await;
            request.write(0, &self.contents.lock().unwrap()[request.offset as usize..]);
            Ok(request.length())
        })
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, Simulated>) -> BoxFuture<'a, KernResult> {
        alloc::boxed::Box::pin(async move {
            let pages = data.frames.len() as u64;
            self.returns.lock().unwrap().push((data.offset / PAGE_SIZE, pages, data.kept));
            data.machine.sleep_until(data.machine.now() + 10).await;
            if *self.refuses.lock().unwrap() {
                return Err(KernError::Failure);
            }
            data.read(0, &mut self.contents.lock().unwrap()[data.offset as usize..][..data.length()]);
            Ok(())
        })
    }

    fn data_unlock<'a>(&'a self, offset: u64, access: Protection) -> BoxFuture<'a, KernResult> {
        alloc::boxed::Box::pin(async move {
            self.unlocks.lock().unwrap().push((offset / PAGE_SIZE, access));
            let unlock = *self.unlock.lock().unwrap();
            match unlock {
                Unlocks::Always => Ok(()),
                Unlocks::Never => Err(KernError::NoAccess),
                Unlocks::Silently => std::future::pending().await,
            }
        })
    }
}

type Object = Arc<VmObject<Simulated>>;

/// A pager whose pages are full of sevens, its object, and a map that shares the object at `BASE`.
fn paged(system: &System) -> (Arc<Asked>, Object, Arc<VmMap<Simulated>>) {
    let pager = Arc::new(Asked { contents: Mutex::new(vec![7; SIZE as usize]), ..Asked::default() });
    let object = VmObject::paged(system.vm(), pager.clone(), SIZE, CopyStrategy::Delay).unwrap();
    let map = system.map();
    let request = MapRequest::shared(object.clone(), 0, SIZE).at(Placement::Fixed(BASE));
    system.run(map.map(&request)).unwrap();
    (pager, object, map)
}

const fn page(number: u64) -> u64 {
    BASE + number * PAGE_SIZE
}

#[test]
fn a_pager_takes_its_pages_back() {
    let system = System::new(64);
    let (pager, object, map) = paged(&system);
    let take = |returned, flush| LockRequest { returned, flush, prohibited: None };
    system.run(async {
        for number in 0..6 {
            load(&map, page(number), 1).await.unwrap();
        }
        for number in [1, 2, 4] {
            store(&map, page(number), &[number as u8]).await.unwrap();
        }
        // The pager asks for the pages that were written to, which stay.
        object.lock_request(0, SIZE, take(ReturnPages::Dirty, false)).await.unwrap();
        assert_eq!(core::mem::take(&mut *pager.returns.lock().unwrap()), [(1, 2, true), (4, 1, true)]);
        assert_eq!((object.resident_pages(), pager.contents.lock().unwrap()[PAGE_SIZE as usize]), (8, 1));
        // The pager asks for all pages of a part, which are removed.
        store(&map, page(2), &[9]).await.unwrap();
        object.lock_request(PAGE_SIZE, 3 * PAGE_SIZE + 1, take(ReturnPages::All, true)).await.unwrap();
        // Pages that were changed are not returned together with pages that were not.
        let returned = core::mem::take(&mut *pager.returns.lock().unwrap());
        assert_eq!(returned, [(1, 1, false), (2, 1, false), (3, 1, false)]);
        assert_eq!((object.resident_pages(), pager.contents.lock().unwrap()[2 * PAGE_SIZE as usize]), (5, 9));
        // Reads see the changes that the pager has made to its contents meanwhile.
        pager.contents.lock().unwrap()[2 * PAGE_SIZE as usize] = 10;
        assert_eq!(load(&map, page(2), 1).await.unwrap(), [10]);
        // The pages are flushed without being returned: what was written is lost.
        store(&map, page(2), &[11]).await.unwrap();
        object.lock_request(0, SIZE, take(ReturnPages::None, true)).await.unwrap();
        assert_eq!((object.resident_pages(), system.vm().statistics().free), (0, 64));
        assert_eq!(load(&map, page(2), 1).await.unwrap(), [10]);
        assert!(pager.returns.lock().unwrap().is_empty() && pager.unlocks.lock().unwrap().is_empty());
        // An object without a pager has nothing to ask for access.
        let own = VmObject::anonymous(system.vm()).unwrap();
        let refused = own.lock_request(0, SIZE, LockRequest::default()).await;
        assert_eq!(refused, Err(KernError::InvalidObject));
    });
}

#[test]
fn what_a_pager_forbids_it_is_asked_for() {
    let system = System::new(64);
    let (pager, object, map) = paged(&system);
    let other = system.map();
    let request = MapRequest::shared(object.clone(), 0, SIZE).at(Placement::Fixed(BASE));
    system.run(other.map(&request)).unwrap();
    let forbid = |prohibited| LockRequest {
        returned: ReturnPages::Dirty,
        prohibited: Some(prohibited),
        ..LockRequest::default()
    };
    let unlocks = || core::mem::take(&mut *pager.unlocks.lock().unwrap());
    system.run(async {
        store(&map, page(0), b"mine").await.unwrap();
        load(&other, page(0), 1).await.unwrap();
        assert_eq!(pager.requests.lock().unwrap()[0], (0, Protection::WRITE));
        object.lock_request(0, SIZE, forbid(Protection::WRITE)).await.unwrap();
        // Reading is allowed, for programs and for files, and no map has a writable page left.
        assert_eq!(load(&other, page(0), 4).await.unwrap(), b"mine");
        assert_eq!(map.with_pmap(|pmap| system.machine.user_write(pmap, page(0), &[1])), Some(None));
        assert_eq!(unlocks(), []);
        store(&map, page(0), b"M").await.unwrap();
        assert_eq!(unlocks(), [(0, Protection::WRITE)]);
        // Write access to this page is granted to all maps; to the next page it is not.
        store(&other, page(0), b"m").await.unwrap();
        assert_eq!(unlocks(), []);
        object.write(PAGE_SIZE, &[1]).await.unwrap();
        assert_eq!(unlocks(), [(1, Protection::WRITE)]);

        *pager.unlock.lock().unwrap() = Unlocks::Never;
        object.lock_request(0, SIZE, forbid(Protection::READ)).await.unwrap();
        for access in [Protection::READ, Protection::WRITE, Protection::EXECUTE] {
            map.protect(page(0), PAGE_SIZE, Protection::ALL, false).await.unwrap();
            assert_eq!(map.fault(page(0), access).await, Err(KernError::MemoryError));
        }
        assert_eq!(unlocks().len(), 3);
        assert_eq!(object.read(0, &mut [0]).await, Err(KernError::MemoryError));
        // A forbidden page is not mapped together with its neighbour that is allowed.
        object.lock_request(PAGE_SIZE, 2 * PAGE_SIZE, forbid(Protection::NONE)).await.unwrap();
        assert_eq!(load(&map, page(1), 1).await.unwrap(), [1]);
        assert_eq!(map.with_pmap(|pmap| system.machine.mapped_pages(pmap)), Some(1));
    });
}

#[test]
fn a_pager_can_lock_the_pages_that_it_provides() {
    let system = System::new(64);
    let (pager, object, map) = paged(&system);
    *pager.lock.lock().unwrap() = Protection::WRITE;
    system.run(async {
        assert_eq!(load(&map, page(3), 1).await.unwrap(), [7]);
        store(&map, page(3), &[8]).await.unwrap();
        assert_eq!(*pager.unlocks.lock().unwrap(), [(3, Protection::WRITE)]);
        // A copy of a page that may only be read may be written.
        let private = map.map(&MapRequest::private(object.clone(), 0, SIZE)).await.unwrap();
        store(&map, private + 4 * PAGE_SIZE, &[9]).await.unwrap();
        assert_eq!(pager.unlocks.lock().unwrap().len(), 1);
        // The first store to this page asks the pager twice: for the page and for the right to
        // write it.
        store(&map, page(0), &[1]).await.unwrap();
        assert_eq!(pager.unlocks.lock().unwrap()[1..], [(0, Protection::WRITE)]);
    });
}

#[test]
fn a_delayed_copy_keeps_what_the_pager_takes() {
    let system = System::new(64);
    let (pager, object, map) = paged(&system);
    system.run(async {
        for number in 0..4 {
            store(&map, page(number), &[1]).await.unwrap();
        }
        let copy = map.map(&MapRequest::private(object.clone(), 0, SIZE)).await.unwrap();
        let request = LockRequest { returned: ReturnPages::Dirty, flush: true, prohibited: None };
        object.lock_request(0, 4 * PAGE_SIZE, request).await.unwrap();
        pager.contents.lock().unwrap().fill(5);
        for number in 0..4 {
            assert_eq!(load(&map, copy + number * PAGE_SIZE, 1).await.unwrap(), [1]);
            assert_eq!(load(&map, page(number), 1).await.unwrap(), [5]);
        }
    });
}

#[test]
fn wired_pages_and_refused_ones_stay() {
    let system = System::new(64);
    let (pager, object, map) = paged(&system);
    let flush = LockRequest { returned: ReturnPages::Dirty, flush: true, prohibited: None };
    system.run(async {
        map.wire(page(1), PAGE_SIZE).await.unwrap();
        for number in 0..4 {
            store(&map, page(number), &[1]).await.unwrap();
        }
        object.lock_request(0, SIZE, flush).await.unwrap();
        assert_eq!((object.resident_pages(), system.vm().statistics().wired), (1, 1));
        assert_eq!(*pager.returns.lock().unwrap(), [(0, 1, false), (1, 1, true), (2, 2, false)]);
        map.unwire(page(1), PAGE_SIZE).await.unwrap();
        store(&map, page(2), &[2]).await.unwrap();
        *pager.refuses.lock().unwrap() = true;
        assert_eq!(object.lock_request(0, SIZE, flush).await, Err(KernError::MemoryError));
        assert_eq!(load(&map, page(2), 1).await.unwrap(), [2]);
        *pager.refuses.lock().unwrap() = false;
        object.lock_request(0, SIZE, flush).await.unwrap();
        assert_eq!((object.resident_pages(), pager.contents.lock().unwrap()[2 * PAGE_SIZE as usize]), (0, 2));
    });
}

#[test]
fn a_pager_that_never_allows_an_access_delays_only_faults_that_need_it() {
    let system = System::new(64);
    let (pager, object, map) = paged(&system);
    *pager.unlock.lock().unwrap() = Unlocks::Silently;
    let mut executor = Executor::new(system.machine.clone());
    executor.block_on(object.read(0, &mut [0])).unwrap();
    let forbid = LockRequest { prohibited: Some(Protection::WRITE), ..LockRequest::default() };
    executor.block_on(object.lock_request(0, SIZE, forbid)).unwrap();
    let waiting = map.clone();
    let writer = executor.spawn(async move {
        let _ = waiting.fault(page(0), Protection::WRITE).await;
    });
    assert!(!executor.run());
    assert_eq!(executor.block_on(load(&map, page(0), 1)).unwrap(), [7]);
    // The pager may allow the access after all, and the pages may be removed.
    let allow = LockRequest { flush: true, prohibited: Some(Protection::NONE), ..LockRequest::default() };
    executor.block_on(object.lock_request(0, SIZE, allow)).unwrap();
    executor.block_on(store(&map, page(0), &[1])).unwrap();
    executor.block_on(map.terminate());
    executor.cancel(writer);
}

/// A pager that writes a page only after it has noted the page's place in another object.
struct Notes {
    journal: Object,
    written: Mutex<u64>,
}

impl Pager<Simulated> for Notes {
    fn data_request<'a>(&'a self, _: DataRequest<'a, Simulated>) -> BoxFuture<'a, KernResult<usize>> {
        alloc::boxed::Box::pin(std::future::ready(Ok(0)))
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, Simulated>) -> BoxFuture<'a, KernResult> {
        alloc::boxed::Box::pin(async move {
            let at = *self.written.lock().unwrap() * PAGE_SIZE;
            self.journal.write(at, &data.offset.to_le_bytes()).await?;
            *self.written.lock().unwrap() += 1;
            Ok(())
        })
    }
}

/// Writes twice as many pages as there are frames to an object whose pager needs memory to write
/// them.
fn fill_beyond_memory(privileged: bool) -> KernResult {
    const FRAMES: u32 = 64;
    let machine = Simulated::new(FRAMES);
    let settings =
        Settings { fault_around: 1, cluster: 1, free_target: 4, free_reserve: 8, large_pages: false };
    let vm = Vm::with_settings(machine.clone(), settings).unwrap();
    assert_eq!((vm.statistics().free, machine.free_frames()), (FRAMES, FRAMES - 8));
    let mut executor = Executor::new(machine.clone());
    let journal = VmObject::anonymous(&vm).unwrap();
    journal.set_privileged(privileged);
    let pager = Arc::new(Notes { journal, written: Mutex::new(0) });
    let size = u64::from(2 * FRAMES) * PAGE_SIZE;
    let object = VmObject::paged(&vm, pager.clone(), size, CopyStrategy::Symmetric).unwrap();
    let result = (0..size / PAGE_SIZE).try_for_each(|page| {
        let written = executor.block_on(object.write(page * PAGE_SIZE, &[1]));
        written.map(|count| assert_eq!(count, 1))
    });
    // With the privilege to use the reserve, the pager can write what is left.
    pager.journal.set_privileged(true);
    executor.block_on(vm.finish_writes());
    drop((object, pager));
    assert_eq!(vm.statistics().free, FRAMES);
    drop(vm);
    assert_eq!((machine.free_frames(), machine.reserved()), (FRAMES, 0));
    result
}

#[test]
fn page_out_goes_on_when_a_pager_needs_memory_and_there_is_none() {
    assert_eq!(fill_beyond_memory(false), Err(KernError::ResourceShortage));
    assert_eq!(fill_beyond_memory(true), Ok(()));
}

#[test]
fn the_reserve_is_for_privileged_maps_and_objects_alone() {
    let machine = Simulated::new(8);
    let settings =
        Settings { fault_around: 1, cluster: 1, free_target: 0, free_reserve: 3, large_pages: false };
    let vm = Vm::with_settings(machine.clone(), settings).unwrap();
    let map = machine.block_on(VmMap::new(&vm, PAGE_SIZE, 1 << 40)).unwrap();
    let pager = machine.block_on(VmMap::new(&vm, PAGE_SIZE, 1 << 40)).unwrap();
    pager.set_privileged(true);
    machine.block_on(async {
        for map in [&map, &pager] {
            map.allocate(Placement::Fixed(BASE), 16 * PAGE_SIZE).await.unwrap();
        }
        for number in 0..5 {
            store(&map, page(number), &[1]).await.unwrap();
        }
        assert_eq!(store(&map, page(5), &[1]).await, Err(KernError::ResourceShortage));
        for number in 0..3 {
            store(&pager, page(number), &[1]).await.unwrap();
        }
        assert_eq!(store(&pager, page(3), &[1]).await, Err(KernError::ResourceShortage));
        // Pages that become free go to the reserve first.
        map.deallocate(page(0), 3 * PAGE_SIZE).await.unwrap();
        assert_eq!(store(&map, page(5), &[1]).await, Err(KernError::ResourceShortage));
        map.deallocate(page(3), PAGE_SIZE).await.unwrap();
        store(&map, page(5), &[1]).await.unwrap();
        assert_eq!(vm.statistics().free, 3);
    });
}
