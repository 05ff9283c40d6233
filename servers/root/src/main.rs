//! `root` as a program: the root task of the system. It reads `boot.conf` (the
//! first boot module whose name ends in `.conf`), starts the servers
//! named there, each unprivileged in a space that root owns and pages, and serves them until the machine stops.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod frames;
mod modules;
mod server;
mod system;

use l4::println;
use root::configuration::{self, MemoryLimit};
use system::System;

l4::program!(run);

// Tables of threads and ranges for a large system; root cannot ask itself for memory.
rt::heap!(8 << 20);

fn run() -> ! {
    match configured() {
        Ok(mut system) => system.serve(),
        Err(reason) => {
            println!("root: {reason}");
            println!("root: nothing is started");
            l4::start::halt()
        }
    }
}

/// The system with everything started that can be started.
fn configured() -> Result<System, alloc::string::String> {
    use alloc::format;
    use alloc::string::ToString;
    let text = modules::find(|name| name.ends_with(b".conf"))
        .ok_or("there is no boot module boot.conf, or another whose name ends in .conf")?;
    let servers = configuration::parse(text).map_err(|error| error.to_string())?;
    let mut programs = alloc::vec::Vec::new();
    for server in &servers {
        let file = modules::find(|name| name == server.program.as_bytes()).ok_or_else(|| {
            format!("server `{}`: there is no boot module `{}`", server.name, server.program)
        })?;
        programs.push(file);
    }
    // Modules are found first: what has been asked for by address is not given out again as any memory.
    let memory = frames::take_all();
    let fixed = servers.iter().fold(0, |sum: u64, server| match server.memory {
        MemoryLimit::Bytes(bytes) => sum.saturating_add(bytes),
        MemoryLimit::Rest => sum,
    });
    let rest = memory.free().checked_sub(fixed).ok_or_else(|| {
        format!(
            "the servers may have {} KiB together, but the machine has {} KiB",
            fixed >> 10,
            memory.free() >> 10
        )
    })?;
    println!("root: {} KiB of memory, {} servers", memory.free() >> 10, servers.len());
    let mut system = System::new(memory);
    for (configuration, file) in servers.into_iter().zip(programs) {
        system.add(configuration, file, rest);
    }
    Ok(system)
}
