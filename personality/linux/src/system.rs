//! The file systems, and the devices in /dev, that only Linux has.

use crate::kmsg::LogDriver;
use crate::{file_capabilities, procfs, sysfs};
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use mach::Machine;
use unix::devfs::Additions;
use unix::process::{Pid, PidNamespace};
use unix::process_context::ProcessContext;
use unix::sync::SpinLock;
use unix::thread::System;
use unix::vfs::{DeviceNumber, FileSystemType, VnodeRef};
use unix::{Error, MaybeReady, Result};

/// The device number of /dev/kmsg.
const LOG: DeviceNumber = DeviceNumber { major: 1, minor: 11 };

/// The nodes and links that Linux has in /dev in addition to the devices of every Unix.
pub const DEVICES: Additions = Additions {
    nodes: &[("kmsg", 0o644, LOG)],
    links: &[
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ],
};

/// Registers procfs and sysfs, so that programs of this system can mount them (there is one sysfs,
/// which is made when it is first mounted), the attribute with capabilities of files, and
/// /dev/kmsg if the system has a log.
pub fn register<M: Machine>(system: &Arc<System<M>>) {
    system.vfs().keep_privileges_in(&file_capabilities::ATTRIBUTE);
    register_processes(system);
    register_file_system(system, "sysfs", |system| {
        let vfs = system.vfs().clone();
        let devices = Box::new(move || vfs.disks.devices());
        let (processors, terminals) = (system.host().processors(), system.terminals());
        let network = system.vfs().network.clone();
        let environment = system.environment().clone();
        let hardware = sysfs::Hardware { processors, terminals, devices, network, environment };
        sysfs::make(hardware, system.environment().realtime())
    });
    if let Some(log) = system.host().kept_log() {
        let driver = LogDriver { log: log.clone(), environment: system.environment().clone() };
        system.vfs().register_device(false, LOG, Arc::new(driver));
    }
}

/// Registers procfs: there is one for each namespace of processes.
fn register_processes<M: Machine>(system: &Arc<System<M>>) {
    let first = SpinLock::new(None);
    system.vfs().register_file_system("proc", Arc::new(Processes { system: Arc::downgrade(system), first }));
}

/// The type of procfs.
struct Processes<M: Machine> {
    system: Weak<System<M>>,
    /// The root of the one that shows the first namespace.
    first: SpinLock<Option<VnodeRef>>,
}

impl<M: Machine> FileSystemType for Processes<M> {
    fn make<'a>(&'a self, _: &'a [u8], _: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        let first = |system: Arc<System<M>>| {
            let make = || procfs::make(&system, PidNamespace::default());
            self.first.lock().get_or_insert_with(make).clone()
        };
        MaybeReady::ready(self.system.upgrade().map(first).ok_or(Error::ENODEV))
    }

    fn make_for<'a>(
        &'a self,
        process: &dyn ProcessContext,
        source: &'a [u8],
        options: &'a [u8],
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        let Some(system) = self.system.upgrade() else { return MaybeReady::ready(Err(Error::ENODEV)) };
        let namespace = Pid::new(process.process())
            .map(|pid| system.processes().with(|table| table.pid_namespace(pid)))
            .filter(|namespace| !namespace.is_first());
        match namespace {
            Some(namespace) => MaybeReady::ready(Ok(procfs::make(&system, namespace))),
            None => self.make(source, options),
        }
    }
}

fn register_file_system<M: Machine>(
    system: &Arc<System<M>>,
    name: &'static str,
    make: impl Fn(&Arc<System<M>>) -> VnodeRef + Send + Sync + 'static,
) {
    let (weak, root) = (Arc::downgrade(system), SpinLock::new(None::<VnodeRef>));
    let make = move |_: &[u8]| {
        let system = weak.upgrade().ok_or(Error::ENODEV)?;
        Ok(root.lock().get_or_insert_with(|| make(&system)).clone())
    };
    system.vfs().register_file_system(name, Arc::new(make));
}
