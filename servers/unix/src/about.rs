//! Descriptions of the system: the text of /proc/macadamia and the first lines on the console.

use crate::processor;
use alloc::format;
use alloc::string::String;
use core::fmt::Write;
use l4::kip;
use l4::x2::kip::MemoryKind;
use rt::root::servers;
use unix::vfs::Vfs;
use unix_server::start::Root;

/// The version of the servers and the kernel, which are built together.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The text of /proc/macadamia: lines of a name, a tabulator and a value. `bounce` is how system
/// calls are delivered; `used` of `all` bytes of the server's heap are in use.
pub(crate) fn text(bounce: bool, (used, all): (usize, usize)) -> String {
    let mut text = format!(
        "kernel\tMacadamia {VERSION}, L4 X.2\nprocessor\t{}\nprocessors\t{}\nmemory\t{} KiB\ncalls\t{}\nheap\t{} KiB\t{} KiB\n",
        processor::name(),
        processors(),
        memory() >> 10,
        if bounce { "bounce mode" } else { "exception mode" },
        used >> 10,
        all >> 10,
    );
    // Writing to a string cannot fail, so the result is ignored.
    for name in ["sigma0", "root"] {
        let _ = writeln!(text, "server\t{name}\truns");
    }
    let mut place = 0;
    while let Ok(server) = servers::describe(place) {
        let name = String::from_utf8_lossy(&server.name);
        let state = if server.runs { "runs" } else { "has ended" };
        let [used, limit, kernel] =
            [server.used, server.limit, server.kernel_memory].map(|bytes| bytes >> 10);
        let (threads, spaces, restarts) = (server.threads, server.spaces, server.restarts);
        let _ = writeln!(
            text,
            "server\t{name}\t{state}\t{used} KiB\t{limit} KiB\t{kernel} KiB\t{threads}\t{spaces}\t{restarts}"
        );
        place += 1;
    }
    text
}

/// The times of the steps of the start, in microseconds since the kernel started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    /// When the Unix server began to run.
    pub(crate) begun: u64,
    /// When the driver of the console was found.
    pub(crate) console: u64,
    /// When the file systems were mounted.
    pub(crate) files: u64,
}

/// The lines that the console shows at the start: what has been started, and how long after the
/// machine's start.
///
/// `files` says where the files of the system are.
pub(crate) fn greeting(moments: &Moments, files: &str, free: u64) -> String {
    let seconds = |time: u64| format!("{}.{:02} s", time / 1_000_000, time / 10_000 % 100);
    let (processors, memory) = (processors(), memory() >> 20);
    let plural = if processors == 1 { "" } else { "s" };
    format!(
        "Macadamia {VERSION}\r\n\
         {:>9}  kernel (L4 X.2), sigma0, root: {processors} processor{plural}, {memory} MiB\r\n\
         {:>9}  console: this terminal\r\n\
         {:>9}  unix: {files}, {} MiB for programs\r\n",
        seconds(moments.begun),
        seconds(moments.console),
        seconds(moments.files),
        free >> 20,
    )
}

/// Where the files of the system are, for the greeting.
pub(crate) fn files(root: &Root, vfs: &Vfs) -> String {
    match root {
        Root::Archive(archive) => {
            let archive = (**archive).as_ref();
            let files = unix::initramfs::names(archive).map_or(0, |names| names.len());
            format!("{files} files in {} MiB", archive.len() >> 20)
        }
        Root::Device(_) => {
            let mount = vfs.tree.root().mount;
            let (name, status) = (mount.source(), mount.file_system().status());
            let size = |blocks: u64| blocks.saturating_mul(status.block_size.into()) >> 20;
            let used = size(status.blocks.saturating_sub(status.free_blocks));
            format!("the files of {name}, {used} of {} MiB", size(status.blocks))
        }
    }
}

/// The number of processors of the machine.
pub(crate) fn processors() -> usize {
    kip().processor_info().processors as usize
}

/// The size of the machine's memory in bytes.
pub(crate) fn memory() -> u64 {
    let descriptors = kip().memory_descriptors();
    let physical = descriptors.filter(|memory| !memory.is_virtual && memory.kind == MemoryKind::Conventional);
    physical.map(|memory| memory.last + 1 - memory.low).sum()
}
