//! Telling other processors to forget what they remember: translations, ports, caches (K7).
//!
//! One request at a time, in one place: its sender holds the lock, interrupts whom it concerns and waits for all of them.
//! A processor that waits, for a lock or for answers, carries out the requests of others meanwhile; one that runs the
//! kernel does so when it leaves it or looks for interrupts. So nobody waits in a circle.
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

use super::interrupts::request_attention;
use super::tlb::{self, MOST_PAGES, Page};
use super::{cpu_count, cpu_local, ports, processor};
use crate::memory::{PhysAddr, VirtAddr};
use crate::processor::Public;
use crate::sync::SpinLock;
use crate::sync::delay::{self, Point};
use crate::trace::{self, Event};

/// Forget the listed pages.
const PAGES: u8 = 1;
/// Forget all pages.
const EVERYTHING: u8 = 2;
/// Do not use the page tables at `root` any more.
const UNLOAD: u8 = 3;
/// Forget the ports of the space at `root`.
const PORTS: u8 = 4;
/// Empty the caches.
const CACHES: u8 = 5;

/// Held by the sender of a request until it is carried out.
static SENDING: SpinLock<()> = SpinLock::new(());

/// The request. Written by its sender before anybody is asked, so that a relaxed access does.
struct Request {
    action: AtomicU8,
    count: AtomicU32,
    pages: [[AtomicU64; 2]; MOST_PAGES],
    root: AtomicU64,
    /// How many processors have not answered.
    waiting: AtomicU32,
}

static REQUEST: Request = Request {
    action: AtomicU8::new(0),
    count: AtomicU32::new(0),
    pages: [const { [const { AtomicU64::new(0) }; 2] }; MOST_PAGES],
    root: AtomicU64::new(0),
    waiting: AtomicU32::new(0),
};

/// Lets other processors forget pages that have changed; `None`: too many to name.
#[cold]
pub(super) fn forget(pages: Option<&[Page]>) {
    let Some(pages) = pages else {
        return send(EVERYTHING, &[], PhysAddr::new(0), |public| public.active_root.get() != 0);
    };
    send(PAGES, pages, PhysAddr::new(0), |public| {
        let root = public.active_root.get();
        pages.iter().any(|page| page.0.value() == root)
    });
}

/// Lets other processors leave the space with this root table.
pub(super) fn unload(root: PhysAddr) {
    send(UNLOAD, &[], root, |public| public.active_root.get() == root.value());
}

/// Lets other processors forget which ports the space with this root table has.
pub(super) fn forget_ports(root: PhysAddr) {
    send(PORTS, &[], root, |public| public.runs.get());
}

/// Lets other processors empty their caches.
pub(super) fn flush_caches() {
    send(CACHES, &[], PhysAddr::new(0), |public| public.runs.get());
}

/// Sends a request to the processors that it concerns, and waits for them.
fn send(action: u8, pages: &[Page], root: PhysAddr, concerns: impl Fn(&'static Public) -> bool) {
    let here = cpu_local().number;
    delay::at(Point::ShootDown);
    // What has changed comes before the look at who may remember it (`Public::active_root`).
    fence(Ordering::SeqCst);
    let concerned = |number: &u32| *number != here && concerns(processor(*number));
    if !(0..cpu_count()).any(|number| concerned(&number)) {
        return;
    }
    let _alone = SENDING.lock();
    REQUEST.action.store(action, Ordering::Relaxed);
    REQUEST.root.store(root.value(), Ordering::Relaxed);
    REQUEST.count.store(pages.len() as u32, Ordering::Relaxed);
    for (place, page) in REQUEST.pages.iter().zip(pages) {
        place[0].store(page.0.value(), Ordering::Relaxed);
        place[1].store(page.1.value(), Ordering::Relaxed);
    }
    REQUEST.waiting.store(0, Ordering::Relaxed);
    let mut asked = 0;
    for number in (0..cpu_count()).filter(concerned) {
        asked += 1;
        REQUEST.waiting.fetch_add(1, Ordering::Relaxed);
        // Release: the request is complete.
        processor(number).requested.store(true, Ordering::Release);
        request_attention(number);
    }
    trace::event(Event::ShootDown, asked, pages.len() as u64);
    // Acquire: what the others did before they answered is over.
    while REQUEST.waiting.load(Ordering::Acquire) != 0 {
        core::hint::spin_loop();
    }
}

/// Carries out the request of another processor, if there is one for this.
#[inline]
pub fn serve_requests() {
    if cpu_local().processor.public.requested.load(Ordering::Relaxed) {
        serve();
    }
}

#[cold]
fn serve() {
    // Acquire: the request is complete.
    if !cpu_local().processor.public.requested.swap(false, Ordering::Acquire) {
        return;
    }
    let root = PhysAddr::new(REQUEST.root.load(Ordering::Relaxed));
    match REQUEST.action.load(Ordering::Relaxed) {
        PAGES => {
            let count = REQUEST.count.load(Ordering::Relaxed) as usize;
            tlb::forget(Some(REQUEST.pages.iter().take(count).map(|place| {
                let [root, address] = [0, 1].map(|index| place[index].load(Ordering::Relaxed));
                (PhysAddr::new(root), VirtAddr::new(address))
            })));
        }
        EVERYTHING => tlb::forget(None::<core::iter::Empty<Page>>),
        UNLOAD => tlb::unload_here(root),
        PORTS => ports::forget_here(root),
        CACHES => tlb::flush_caches_here(),
        _ => {}
    }
    delay::at(Point::Answer);
    // Release: it is done.
    REQUEST.waiting.fetch_sub(1, Ordering::Release);
}
