//! `root` as a program: the root task of the system. It reads `boot.conf` (the first boot module
//! whose name ends in `.conf`), starts the servers named there, each unprivileged in a space that
//! root owns and pages, and serves them until the machine stops.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod address_space;
mod console;
mod devices;
mod dma;
mod end;
mod fill;
mod frames;
mod functions;
mod job;
mod modules;
mod names;
mod owned;
mod piece;
mod requests;
mod resources;
mod server;
mod shares;
mod system;
mod workers;

use frames::Frames;
use l4::{kip, print, println};
use modules::Module;
use root::configuration::{self, MemoryLimit};
use system::System;
use x2::boot_info::Nodes;

l4::program!(run);

// Tables of threads and ranges for a large system, and the stacks of 64 processors' threads; root
// cannot ask itself for memory.
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

/// More of root's own memory than one step of any request needs.
const HEADROOM: usize = 64 << 10;

/// Whether root has memory for one more step. When it has not, it refuses requests: a server must
/// not be able to stop root.
fn has_headroom() -> bool {
    let mut room = alloc::vec::Vec::<u8>::new();
    let there_is = room.try_reserve_exact(HEADROOM).is_ok();
    // Without this the compiler would leave the allocation out.
    core::hint::black_box(&mut room);
    there_is
}

/// Reads the boot configuration. Returns the system with all servers that can be started.
fn configured() -> Result<System, alloc::string::String> {
    use alloc::string::ToString;
    let text = modules::find(|name| name.ends_with(b".conf"))
        .ok_or("there is no boot module boot.conf, or another whose name ends in .conf")?;
    let servers = configuration::parse(text.content()).map_err(|error| error.to_string())?;
    let mut found = alloc::vec::Vec::new();
    for server in &servers {
        let module = |wanted| module(&server.name, wanted);
        let modules = server.modules.iter().map(|name| module(name)).collect::<Result<_, _>>()?;
        found.push((module(&server.program)?, modules));
    }
    // Modules are found first: what has been asked for by address is not given out again as any
    // memory.
    let frames = Frames::take_all();
    let free = frames.free();
    let fixed = servers.iter().fold(0, |sum: u64, server| {
        let memory = match server.memory {
            MemoryLimit::Bytes(bytes) => bytes,
            MemoryLimit::Rest => 0,
        };
        sum.saturating_add(memory).saturating_add(server.dma.unwrap_or(0))
    });
    let rest = free.checked_sub(fixed).ok_or_else(|| {
        let (fixed, free) = (fixed >> 10, free >> 10);
        alloc::format!("the servers may have {fixed} KiB together, but the machine has {free} KiB")
    })?;
    println!("root: {} KiB of memory, {} servers", free >> 10, servers.len());
    modules::nodes().inspect(|nodes| report_nodes(*nodes));
    let mut system = System::new(frames, workers::fronts(), workers::first_number());
    if servers.iter().any(|server| !server.functions.is_empty()) {
        system.resources.functions = functions::find_all();
    }
    for (configuration, (program, modules)) in servers.into_iter().zip(found) {
        system.add(configuration, program, modules, rest);
    }
    Ok(system)
}

/// Says which memory and processors are near each other.
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
    modules::find(|name| name == wanted.as_bytes())
        .ok_or_else(|| alloc::format!("server `{server}`: there is no boot module `{wanted}`"))
}
