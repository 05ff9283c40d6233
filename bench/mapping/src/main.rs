//! What memory costs: page faults served by sigma0, and Unmap of small pages, in instructions from
//! user level to user level (kernel, sigma0 and stubs included).
#![cfg_attr(target_os = "none", no_std, no_main)]

use bench_framework::{Range, check_counter, now, region};
use l4::{println, sigma0, space};
use x2::{Fpage, Rights};

l4::program!(run);

/// Pages per measurement.
const PAGES: Range = Range::geometric(1, 256, 4);
const REPETITIONS: u64 = 3;
/// Pages of a region that is counted apart.
const REGION_PAGES: u64 = 64;
/// log2 of the memory that is used.
const REGION_BITS: u32 = 21;

fn report(test: &str, pages: u64, cost: u64) {
    bench_framework::report(format_args!("{test}"), pages, "instructions", cost);
}

/// Does `operation` to [`REGION_PAGES`] pages, as a region called `name`.
fn count(name: &str, operation: impl FnOnce() -> u64) {
    region(format_args!("{name}"), REGION_PAGES, || _ = operation());
}

/// Reads the first word of each page.
fn touch(base: u64, pages: u64) -> u64 {
    let start = now();
    for page in 0..pages {
        // SAFETY: the pages belong to this program and hold nothing.
        unsafe { ((base + page * 4096) as *const u64).read_volatile() };
    }
    now() - start
}

/// Unmaps each page by a call of its own; without `flush` the pages stay and only derived ones, of
/// which there are none, would go.
fn unmap(base: u64, pages: u64, flush: bool) -> u64 {
    let start = now();
    for page in 0..pages {
        let fpage = Fpage::memory(base + page * 4096, 12).with_rights(Rights::ALL);
        if flush {
            // SAFETY: nothing is kept in the page.
            unsafe { space::flush(&mut [fpage]) };
        } else {
            space::unmap(&mut [fpage]);
        }
    }
    now() - start
}

fn run() -> ! {
    println!("1..2");
    let region = sigma0::request_any(REGION_BITS).ok().flatten().map(|region| region.base);
    let Some(base) = region else {
        println!("not ok 1 - BMAP0001 sigma0 has memory to measure with");
        l4::start::halt()
    };
    for pages in PAGES.values() {
        for _ in 0..REPETITIONS {
            // SAFETY: nothing is kept in the region.
            unsafe { space::flush(&mut [Fpage::memory(base, REGION_BITS).with_rights(Rights::ALL)]) };
            // Page tables for the region stay during the measurement.
            touch(base + (511 * 4096), 1);
            report("page-fault-by-sigma0", pages, touch(base, pages));
            report("touch-mapped", pages, touch(base, pages));
            report("unmap-nothing-derived", pages, unmap(base, pages, false));
            report("flush-page", pages, unmap(base, pages, true));
        }
    }
    // The same operations once more, for the plugin that counts instructions.
    // SAFETY: nothing is kept in the region.
    unsafe { space::flush(&mut [Fpage::memory(base, REGION_BITS).with_rights(Rights::ALL)]) };
    touch(base + (511 * 4096), 1);
    count("page-fault-by-sigma0", || touch(base, REGION_PAGES));
    count("unmap-nothing-derived", || unmap(base, REGION_PAGES, false));
    count("flush-page", || unmap(base, REGION_PAGES, true));
    println!("ok 1 - BMAP0001 sigma0 has memory to measure with");
    check_counter(2, "BMAP0002");
    l4::start::halt()
}
