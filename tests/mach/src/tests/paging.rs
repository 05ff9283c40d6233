//! Tests of paging: more memory in use than there are frames, pagers that are slow or do not
//! answer, tasks that end meanwhile.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::pending;
use core::sync::atomic::{AtomicU32, Ordering};

use macadamia_sync::Event;
use mach::machine::{Machine, PAGE_SIZE, Protection, Resume};
use mach::vm::{
    BoxFuture, CopyStrategy, DataRequest, DataReturn, LockRequest, MapRequest, Pager, Placement, ReturnPages,
    VmObject,
};
use mach::{KernError, KernResult};
use mach_l4::L4Machine;

use crate::code::command;
use crate::report::{TestResult, holds, same, tests};
use crate::servant::Outcome;
use crate::system::{REQUESTED, RETURNED, System};
use crate::tests::pause;

tests! {
    MACH0200 "a program that uses twice the memory that there is finds all that it wrote" page_out;
    MACH0201 "two programs under pressure do not disturb each other" two_under_pressure;
    MACH0202 "a pager's pages appear in the program" paged_object;
    MACH0203 "a task that dies while its pager does not answer leaves nothing" pager_that_never_answers;
    MACH0204 "a pager's error is the fault's" pager_that_fails;
    MACH0206 "more memory than there is cannot be wired; what is tried leaves nothing, and others go on" wire_too_much;
    MACH0207 "a pager takes its pages back, and is asked for what it forbids" pager_asks;
    MACH0208 "without kernel memory for its mappings a program's fault fails, and later succeeds" no_kernel_memory;
    MACH0209 "a pager that never writes holds up who needs memory only so long, and then nobody" pager_that_never_writes;
    MACH0205 "pages in use are kept before pages that are not" use_is_noticed;
}

const HERE: u64 = 0x4000_0000;
/// The number of pages that a program uses: twice as many as there are frames.
const MANY: u64 = 4096;

async fn page_out(system: &System) -> TestResult {
    let servant = system.servant().await?;
    servant.map().map(&MapRequest::anonymous(MANY * PAGE_SIZE).at(Placement::Fixed(HERE))).await?;
    let before = (RETURNED.load(Ordering::Relaxed), REQUESTED.load(Ordering::Relaxed));
    same!(servant.fill(HERE, MANY, 1_000_000).await, Outcome::Done(HERE + MANY * PAGE_SIZE));
    same!(servant.check(HERE, MANY, 1_000_000).await, Outcome::Done(0));
    holds!(RETURNED.load(Ordering::Relaxed) > before.0 + MANY as u32 / 2);
    holds!(REQUESTED.load(Ordering::Relaxed) > before.1 + MANY as u32 / 2);
    // The pages are written again, while some are paged out.
    same!(servant.fill(HERE, MANY, 7).await, Outcome::Done(HERE + MANY * PAGE_SIZE));
    same!(servant.check(HERE, MANY, 7).await, Outcome::Done(0));
    servant.task.terminate().await;
    Ok(())
}

async fn two_under_pressure(system: &System) -> TestResult {
    let (one, other) = (system.servant().await?, system.servant().await?);
    for servant in [&one, &other] {
        servant.map().map(&MapRequest::anonymous(MANY * PAGE_SIZE).at(Placement::Fixed(HERE))).await?;
    }
    let part = MANY / 4;
    for step in 0..4 {
        let at = HERE + step * part * PAGE_SIZE;
        same!(one.fill(at, part, 10_000 * step).await, Outcome::Done(at + part * PAGE_SIZE));
        same!(other.fill(at, part, 20_000 * step).await, Outcome::Done(at + part * PAGE_SIZE));
    }
    for step in (0..4).rev() {
        let at = HERE + step * part * PAGE_SIZE;
        same!(one.check(at, part, 10_000 * step).await, Outcome::Done(0));
        same!(other.check(at, part, 20_000 * step).await, Outcome::Done(0));
    }
    one.task.terminate().await;
    other.task.terminate().await;
    Ok(())
}

/// A pager that fills pages with their numbers, after a delay; or does what pagers must not do.
enum TestPager {
    Numbers,
    Never,
    Fails,
    /// Provides numbers, and completes no write until the event is set.
    KeepsOnce(Arc<Event>),
}

/// How often the pager of numbers was given pages, and how often it was asked to allow an access.
static KEPT: AtomicU32 = AtomicU32::new(0);
static ALLOWED: AtomicU32 = AtomicU32::new(0);

impl Pager<L4Machine> for TestPager {
    fn data_request<'a>(&'a self, request: DataRequest<'a, L4Machine>) -> BoxFuture<'a, KernResult<usize>> {
        Box::pin(async move {
            match self {
                TestPager::Numbers | TestPager::KeepsOnce(_) => {
                    request.machine.sleep_until(request.machine.now() + 100).await;
                    for at in (0..request.length()).step_by(PAGE_SIZE as usize) {
                        let number = (request.offset + at as u64) / PAGE_SIZE + 500;
                        request.write(at, &number.to_le_bytes());
                        request.write(at + 8, &[0; PAGE_SIZE as usize - 8]);
                    }
                    Ok(request.length())
                }
                TestPager::Never => pending().await,
                TestPager::Fails => Err(KernError::Failure),
            }
        })
    }

    fn data_return<'a>(&'a self, _data: DataReturn<'a, L4Machine>) -> BoxFuture<'a, KernResult> {
        Box::pin(async move {
            if let TestPager::KeepsOnce(event) = self {
                event.wait().await;
            }
            KEPT.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    }

    fn data_unlock<'a>(&'a self, _offset: u64, _access: Protection) -> BoxFuture<'a, KernResult> {
        ALLOWED.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }
}

const PAGED: u64 = 64;

fn paged(system: &System, pager: TestPager) -> KernResult<Arc<VmObject<L4Machine>>> {
    VmObject::paged(system.vm(), Arc::new(pager), PAGED * PAGE_SIZE, CopyStrategy::Delay)
}

async fn paged_object(system: &System) -> TestResult {
    let (one, other) = (system.servant().await?, system.servant().await?);
    let object = paged(system, TestPager::Numbers)?;
    let at = Placement::Fixed(HERE);
    one.map().map(&MapRequest::shared(object.clone(), 0, PAGED * PAGE_SIZE).at(at)).await?;
    other.map().map(&MapRequest::private(object, 0, PAGED * PAGE_SIZE).at(at)).await?;
    same!(one.check(HERE, PAGED, 500).await, Outcome::Done(0));
    same!(other.store(HERE, 3).await, Outcome::Done(HERE));
    same!(one.store(HERE + PAGE_SIZE, 4).await, Outcome::Done(HERE + PAGE_SIZE));
    same!(one.load(HERE).await, Outcome::Done(500));
    same!(other.load(HERE).await, Outcome::Done(3));
    same!(other.check(HERE + 2 * PAGE_SIZE, PAGED - 2, 502).await, Outcome::Done(0));
    one.task.terminate().await;
    other.task.terminate().await;
    Ok(())
}

async fn pager_that_never_answers(system: &System) -> TestResult {
    let servant = system.servant().await?;
    let object = paged(system, TestPager::Never)?;
    servant.map().map(&MapRequest::shared(object, 0, PAGED * PAGE_SIZE).at(Placement::Fixed(HERE))).await?;
    servant.begin(command::LOAD, |state| state.rdi = HERE);
    // Faults are served by another async task, which ends with the thread.
    let task = servant.task.clone();
    let ended = Arc::new(Event::new());
    let told = ended.clone();
    let serving = system.machine.spawn(0, async move {
        servant.serve(None).await;
        told.set();
    })?;
    pause(system).await;
    pause(system).await;
    holds!(!ended.is_set());
    task.terminate().await;
    // The async task that serves the program gives up when it learns that the program has ended.
    serving.abort();
    let _ = serving.await;
    Ok(())
}

async fn pager_that_fails(system: &System) -> TestResult {
    let servant = system.servant().await?;
    let object = paged(system, TestPager::Fails)?;
    servant.map().map(&MapRequest::shared(object, 0, PAGED * PAGE_SIZE).at(Placement::Fixed(HERE))).await?;
    same!(servant.load(HERE).await, Outcome::Fault(HERE, KernError::MemoryError));
    servant.task.terminate().await;
    Ok(())
}

async fn wire_too_much(system: &System) -> TestResult {
    let (servant, other) = (system.servant().await?, system.servant().await?);
    let map = servant.map();
    map.map(&MapRequest::anonymous(MANY * PAGE_SIZE).at(Placement::Fixed(HERE))).await?;
    other.map().map(&MapRequest::anonymous(PAGE_SIZE).at(Placement::Fixed(HERE))).await?;
    let wired = system.vm().statistics().wired;
    same!(map.wire(HERE, MANY * PAGE_SIZE).await, Err(KernError::ResourceShortage));
    same!(system.vm().statistics().wired, wired);
    // Most of the memory can be wired. A further request fails.
    let most = u64::from(system.vm().statistics().free) - 64;
    map.wire(HERE, most * PAGE_SIZE).await?;
    same!(other.store(HERE, 3).await, Outcome::Done(HERE));
    let more = map.wire(HERE + most * PAGE_SIZE, 200 * PAGE_SIZE).await;
    same!(more, Err(KernError::ResourceShortage));
    same!(other.load(HERE).await, Outcome::Done(3));
    servant.task.terminate().await;
    same!(system.vm().statistics().wired, wired);
    same!(other.store(HERE, 4).await, Outcome::Done(HERE));
    other.task.terminate().await;
    Ok(())
}

async fn pager_asks(system: &System) -> TestResult {
    let servant = system.servant().await?;
    let object = paged(system, TestPager::Numbers)?;
    let request = MapRequest::shared(object.clone(), 0, PAGED * PAGE_SIZE).at(Placement::Fixed(HERE));
    servant.map().map(&request).await?;
    let before = (KEPT.load(Ordering::Relaxed), ALLOWED.load(Ordering::Relaxed));
    let now = || (KEPT.load(Ordering::Relaxed) - before.0, ALLOWED.load(Ordering::Relaxed) - before.1);
    same!(servant.store(HERE, 1).await, Outcome::Done(HERE));
    same!(servant.check(HERE + PAGE_SIZE, PAGED - 1, 501).await, Outcome::Done(0));
    let forbid =
        LockRequest { returned: ReturnPages::Dirty, flush: false, prohibited: Some(Protection::WRITE) };
    object.lock_request(0, PAGED * PAGE_SIZE, forbid).await?;
    same!(now(), (1, 0));
    // The program may read without a request to the pager; its first store makes one.
    let faults = servant.faults();
    same!(servant.load(HERE).await, Outcome::Done(1));
    same!((now(), servant.faults() - faults), ((1, 0), 0));
    same!(servant.store(HERE, 2).await, Outcome::Done(HERE));
    same!(servant.store(HERE, 3).await, Outcome::Done(HERE));
    same!((now(), servant.faults() - faults), ((1, 1), 1));
    // The page is flushed: the program then sees the pager's contents.
    let flush = LockRequest { returned: ReturnPages::Dirty, flush: true, prohibited: None };
    object.lock_request(0, PAGED * PAGE_SIZE, flush).await?;
    same!((now(), object.resident_pages()), ((2, 1), 0));
    same!(servant.check(HERE, PAGED, 500).await, Outcome::Done(0));
    servant.task.terminate().await;
    Ok(())
}

async fn no_kernel_memory(system: &System) -> TestResult {
    // The distance of the pages that are used: in each gigabyte one, which needs two page tables of
    // its own.
    const APART: u64 = 1 << 30;
    const MOST: u64 = 16_000;
    let (servant, other) = (system.servant().await?, system.servant().await?);
    let map = servant.map();
    for servant in [&servant, &other] {
        let request = MapRequest::anonymous(PAGE_SIZE).at(Placement::Fixed(HERE));
        servant.map().map(&request).await?;
        same!(servant.store(HERE, 9).await, Outcome::Done(HERE));
    }
    let mut last = HERE;
    let outcome = loop {
        last += APART;
        holds!(last < HERE + MOST * APART);
        let shared = map.share(HERE, PAGE_SIZE).await?;
        map.insert(shared, Placement::Fixed(last)).await.map_err(|(error, _)| error)?;
        match servant.load(last).await {
            Outcome::Done(9) => {}
            outcome => break outcome,
        }
    };
    same!(outcome, Outcome::Fault(last, KernError::ResourceShortage));
    same!(other.load(HERE).await, Outcome::Done(9));
    // After some of the memory is given back, the same access succeeds.
    map.deallocate(HERE + APART, last - HERE - APART).await?;
    same!(servant.serve(Some(Resume::Continue)).await, Outcome::Done(9));
    servant.task.terminate().await;
    same!(other.store(HERE, 10).await, Outcome::Done(HERE));
    other.task.terminate().await;
    Ok(())
}

async fn pager_that_never_writes(system: &System) -> TestResult {
    let (servant, other) = (system.servant().await?, system.servant().await?);
    let keeps = Arc::new(Event::new());
    let pager = Arc::new(TestPager::KeepsOnce(keeps.clone()));
    let frames = u64::from(system.vm().statistics().free);
    let object = VmObject::paged(system.vm(), pager, MANY * PAGE_SIZE, CopyStrategy::Delay)?;
    let request = MapRequest::shared(object.clone(), 0, MANY * PAGE_SIZE).at(Placement::Fixed(HERE));
    servant.map().map(&request).await?;
    other.map().map(&MapRequest::anonymous(PAGE_SIZE).at(Placement::Fixed(HERE))).await?;
    same!(other.store(HERE, 1).await, Outcome::Done(HERE));
    // The program writes to more pages than there are, none of which can be paged out.
    let Outcome::Fault(address, error) = servant.fill(HERE, frames + 100, 1).await else {
        return Err("more pages than there are".into());
    };
    same!(error, KernError::ResourceShortage);
    holds!(address > HERE + frames / 2 * PAGE_SIZE);
    // The pager answers at last.
    keeps.set();
    same!(servant.serve(Some(Resume::Continue)).await, Outcome::Done(HERE + (frames + 100) * PAGE_SIZE));
    same!(other.load(HERE).await, Outcome::Done(1));
    servant.task.terminate().await;
    other.task.terminate().await;
    system.vm().finish_writes().await;
    Ok(())
}

async fn use_is_noticed(system: &System) -> TestResult {
    const HOT: u64 = 100;
    let servant = system.servant().await?;
    servant.map().map(&MapRequest::anonymous(2 * MANY * PAGE_SIZE).at(Placement::Fixed(HERE))).await?;
    same!(servant.fill(HERE, HOT, 1).await, Outcome::Done(HERE + HOT * PAGE_SIZE));
    // A few pages are used between all pieces of a long run through many others.
    let mut faults = 0;
    for step in 0..40 {
        let at = HERE + (HOT + step * 80) * PAGE_SIZE;
        same!(servant.fill(at, 80, 5).await, Outcome::Done(at + 80 * PAGE_SIZE));
        let before = servant.faults();
        same!(servant.check(HERE, HOT, 1).await, Outcome::Done(0));
        faults += servant.faults() - before;
    }
    // If page-out did not recognise which pages are used, they would be read from swap space
    // repeatedly: the run takes 1200 pages.
    holds!(faults < 10 * HOT as u32);
    servant.task.terminate().await;
    Ok(())
}
