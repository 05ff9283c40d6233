//! `root` as a program: the root task of the system. It reads `boot.conf` (the first boot module
//! whose name ends in `.conf`), starts the servers named there, each unprivileged in a space that
//! root owns and pages, and serves them until the machine stops.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod boot_modules;
mod console;
mod l4_machine;
mod workers;

use core::ops::Range;
use l4::{kip, print, println, sigma0};
use l4_machine::L4;
use root::configuration;
use root::frames::Frames;
use root::modules::Module;
use root::system::System;
use x2::boot_info::Nodes;

l4::program!(run);

// The heap holds the tables of threads and ranges of a large system, and the stacks of 64
// processors' threads. Its size is fixed: root has no root task that it could ask for memory.
rt::heap!(12 << 20);

fn run() -> ! {
    match configured() {
        Ok(system) => workers::run(system),
        Err(reason) => {
            println!("root: {reason}");
            println!("root: nothing is started");
            l4::start::halt()
        }
    }
}

/// Reads the boot configuration. Returns the system with all servers that can be started.
fn configured() -> Result<System<L4>, alloc::string::String> {
    use alloc::string::ToString;
    let text = boot_modules::find(|name| name.ends_with(b".conf"))
        .ok_or("there is no boot module boot.conf, or another whose name ends in .conf")?;
    let servers = configuration::parse(text.content).map_err(|error| error.to_string())?;
    let mut found = alloc::vec::Vec::new();
    for server in &servers {
        let module = |wanted| module(&server.name, wanted);
        let modules = server.modules.iter().map(|name| module(name)).collect::<Result<_, _>>()?;
        found.push((module(&server.program)?, modules));
    }
    // Modules are found before the frames are taken: a page that root has asked for by its address
    // is not given out again when root asks for any page.
    let frames = Frames::new(regions());
    println!("root: {} KiB of memory, {} servers", frames.free() >> 10, servers.len());
    boot_modules::nodes().inspect(|nodes| report_nodes(*nodes));
    let mut system = System::new(L4, frames, workers::request_threads(), workers::first_number());
    system.set_screen(boot_modules::screen());
    let drivers = servers.iter().filter(|server| !server.functions.is_empty()).count();
    if drivers > 0 {
        system.find_functions();
        system.set_up_iommu(boot_modules::remapping_table(), drivers as u64);
    }
    let rest = configuration::rest(&servers, system.free_memory())?;
    for (configuration, (program, modules)) in servers.into_iter().zip(found) {
        system.add(configuration, program, modules, rest);
    }
    Ok(system)
}

/// Takes all free memory from sigma0, the largest regions first.
fn regions() -> impl Iterator<Item = Range<u64>> {
    (12..=30).rev().flat_map(|size_log2| {
        core::iter::from_fn(move || {
            let region = sigma0::request_any(size_log2).ok()??;
            Some(region.base..region.last() + 1)
        })
    })
}

/// Prints which memory and processors are on the same NUMA node.
fn report_nodes(nodes: Nodes<'_>) {
    for node in 0..nodes.count() {
        let ranges = nodes.memory().filter(|range| range.node == node as u64);
        print!(
            "root: node {node}: {} KiB of memory, processors",
            ranges.map(|range| range.size >> 10).sum::<u64>()
        );
        for processor in 0..kip().processor_info().processors as usize {
            if nodes.of_processor(processor) == Some(node as u8) {
                print!(" {processor}");
            }
        }
        print!(", distances");
        for to in 0..nodes.count() {
            print!(" {}", nodes.distance(node, to).unwrap_or(0));
        }
        println!("");
    }
}

/// Finds the boot module `wanted`, which the server `server` needs.
fn module(server: &str, wanted: &str) -> Result<Module, alloc::string::String> {
    boot_modules::find(|name| name == wanted.as_bytes())
        .ok_or_else(|| alloc::format!("server `{server}`: there is no boot module `{wanted}`"))
}
