//! The driver of a virtio block device as a program: a server that root has started with the
//! device's PCI function and memory for devices, 64 KiB for each queue. [`block::service`] is what
//! drivers of block devices have in common.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod device;

use device::Disk;

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(256 << 10);

fn run() -> ! {
    block::service::run(Disk::open)
}
