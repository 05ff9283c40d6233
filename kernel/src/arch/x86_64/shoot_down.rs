//! Telling other processors to forget what they remember: translations, ports, caches (K7).
//!
//! How that is agreed on is [`ShootDown`]'s; here is what a request says, and how it is carried
//! out. A processor that waits for a lock carries out the requests of others meanwhile; one that
//! runs the kernel does so when it leaves it or looks for interrupts.
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::interrupts::request_attention;
use super::tlb::{self, MOST_PAGES, Page};
use super::{cpu_count, cpu_local, ports, processor};
use crate::memory::{PhysAddr, VirtAddr};
use crate::processor::Public;
use crate::sync::ShootDown;
use crate::sync::delay::{self, Point};
use crate::trace::{self, Event};

/// Request: forget the listed pages.
const PAGES: u8 = 1;
/// Request: forget all pages.
const EVERYTHING: u8 = 2;
/// Do not use the page tables at `root` any more.
const UNLOAD: u8 = 3;
/// Request: forget the ports of the space at `root`.
const PORTS: u8 = 4;
/// Request: write back and empty the caches.
const CACHES: u8 = 5;

static SHOOT_DOWN: ShootDown = ShootDown::new();

/// The request. Its sender writes it before it asks any processor, so that relaxed accesses
/// suffice.
struct Request {
    action: AtomicU8,
    count: AtomicU32,
    pages: [[AtomicU64; 2]; MOST_PAGES],
    root: AtomicU64,
}

static REQUEST: Request = Request {
    action: AtomicU8::new(0),
    count: AtomicU32::new(0),
    pages: [const { [const { AtomicU64::new(0) }; 2] }; MOST_PAGES],
    root: AtomicU64::new(0),
};

/// Lets other processors forget pages that have changed; `None`: too many to name.
#[cold]
pub(super) fn forget(pages: Option<&[Page]>) {
    let Some(pages) = pages else {
        return send(EVERYTHING, &[], PhysAddr::new(0), |public| public.active_root.is_any());
    };
    send(PAGES, pages, PhysAddr::new(0), |public| {
        pages.iter().any(|page| public.active_root.is(page.0.value()))
    });
}

/// Lets other processors leave the space with this root table.
pub(super) fn unload(root: PhysAddr) {
    send(UNLOAD, &[], root, |public| public.active_root.is_held(root.value()));
}

/// Lets other processors forget which ports the space with this root table has.
pub(super) fn forget_ports(root: PhysAddr) {
    send(PORTS, &[], root, |public| public.runs.get());
}

/// Makes the other processors write back and empty their caches.
pub(super) fn flush_caches() {
    send(CACHES, &[], PhysAddr::new(0), |public| public.runs.get());
}

/// Sends a request to the processors that it concerns, and waits for them.
fn send(action: u8, pages: &[Page], root: PhysAddr, concerns: impl Fn(&'static Public) -> bool) {
    let here = cpu_local().number;
    delay::at(Point::ShootDown);
    let asked = SHOOT_DOWN.send(
        (0..cpu_count()).filter(|&number| number != here),
        |number| concerns(processor(number)),
        || {
            REQUEST.action.store(action, Ordering::Relaxed);
            REQUEST.root.store(root.value(), Ordering::Relaxed);
            REQUEST.count.store(pages.len() as u32, Ordering::Relaxed);
            for (place, page) in REQUEST.pages.iter().zip(pages) {
                place[0].store(page.0.value(), Ordering::Relaxed);
                place[1].store(page.1.value(), Ordering::Relaxed);
            }
        },
        |number| &processor(number).requested,
        request_attention,
    );
    if asked > 0 {
        trace::event(Event::ShootDown, u64::from(asked), pages.len() as u64);
    }
}

/// Carries out the request of another processor, if there is one for this processor.
#[inline]
pub fn serve_requests() {
    if cpu_local().processor.public.requested.get() {
        serve();
    }
}

#[cold]
fn serve() {
    SHOOT_DOWN.serve(&cpu_local().processor.public.requested, carry_out);
}

fn carry_out() {
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
}
