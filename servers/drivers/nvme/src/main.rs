//! The driver of an NVMe disk as a program: a server that root has started with the device's PCI
//! function and 128 KiB of memory for devices. [`block::service`] is what drivers of block devices
//! have in common.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod device;
mod memory;

use device::Disk;

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(256 << 10);

fn run() -> ! {
    block::service::run(Disk::open)
}
