//! Directories of the host that a machine shares, by QEMU's server of files.

use crate::devices::Device;
use crate::qemu::Machine;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A shared directory with this tag, by which the guest mounts it, and the server that drives it.
macro_rules! share {
    ($tag:literal) => {
        Device {
            qemu: concat!("virtio-9p-pci,disable-legacy=on,fsdev=", $tag, ",mount_tag=", $tag),
            program: "virtio-9p",
            server: concat!(
                "server ",
                $tag,
                "
    program    virtio-9p
    priority   200
    memory     1M
    dma        2M
    pci        1af4:1049
    restart    yes
"
            ),
        }
    };
}

/// As many directories as a machine can share, and their tags.
const SHARES: [(&str, Device); 4] = [
    ("share", share!("share")),
    ("share1", share!("share1")),
    ("share2", share!("share2")),
    ("share3", share!("share3")),
];

/// A directory of the host, and where the guest has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The directory of the host.
    pub directory: PathBuf,
    /// The directory of the guest, an absolute path.
    pub place: String,
}

impl std::str::FromStr for Share {
    type Err = String;

    /// Reads `DIR` or `DIR:/PLACE`.
    fn from_str(text: &str) -> Result<Share, String> {
        let (directory, place) = match text.rsplit_once(":/") {
            Some((directory, place)) => (directory, format!("/{place}")),
            None => (text, "/mnt/share".to_string()),
        };
        if directory.is_empty() {
            return Err("it is DIR or DIR:/PLACE".into());
        }
        Ok(Share { directory: directory.into(), place })
    }
}

/// What shares add to a machine.
#[derive(Debug, Default)]
pub struct Shared {
    /// The devices and their drivers.
    devices: Vec<Device>,
    /// QEMU's arguments for the directories.
    arguments: Vec<String>,
    /// What the guest mounts, as the Unix server's option has it: type, tag and place.
    mounts: Vec<String>,
}

impl Shared {
    /// Files that the guest makes belong to the user that runs QEMU.
    ///
    /// # Errors
    /// There are more directories than a machine can share, two have the same place, or one of them
    /// does not exist or is no directory.
    pub fn of(shares: &[Share]) -> Result<Shared> {
        if shares.len() > SHARES.len() {
            bail!("a machine shares at most {} directories", SHARES.len());
        }
        let mut shared = Shared::default();
        for (index, (share, (tag, device))) in shares.iter().zip(SHARES).enumerate() {
            if shares[..index].iter().any(|other| other.place == share.place) {
                bail!("two directories are shared at {}: say where, as in --share DIR:/PLACE", share.place);
            }
            shared.devices.push(device);
            shared.arguments.extend(["-fsdev".into(), file_system(tag, &share.directory)?]);
            shared.mounts.push(format!("9p:{tag}:{}", share.place));
        }
        Ok(shared)
    }

    /// Adds them to a machine.
    pub fn add_to(self, machine: &mut Machine) {
        machine.devices.extend(self.devices);
        machine.extra.extend(self.arguments);
        machine.mounts.extend(self.mounts);
    }
}

/// QEMU's description of a directory.
fn file_system(tag: &str, directory: &Path) -> Result<String> {
    let found = fs::metadata(directory).with_context(|| format!("sharing {}", directory.display()))?;
    if !found.is_dir() {
        bail!("sharing {}: it is not a directory", directory.display());
    }
    let path = crate::qemu::value(directory)?;
    // With the model `none` files are on the host as they are in the guest, with modes and links,
    // and no request fails because the host's user may not set an owner.
    Ok(format!("local,id={tag},path={path},security_model=none,multidevs=remap"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mac_build::scratch::Scratch;

    #[test]
    fn a_share_may_say_where_the_guest_has_it() {
        let share = |text: &str| text.parse::<Share>().map(|share| (share.directory, share.place));
        assert_eq!(share("a b"), Ok(("a b".into(), "/mnt/share".into())));
        assert_eq!(share("/x:y:/home/me"), Ok(("/x:y".into(), "/home/me".into())));
        assert!(share("").is_err() && share(":/x").is_err());
    }

    #[test]
    fn directories_are_devices_with_servers_and_mounts() {
        let scratch = Scratch::new("shares").unwrap();
        let directory = scratch.0.join("a, b");
        fs::create_dir(&directory).unwrap();
        let at = |place: &str| Share { directory: directory.clone(), place: place.into() };
        let shared = Shared::of(&[at("/mnt/share"), at("/b")]).unwrap();
        assert!(
            shared.arguments[1].contains("id=share,path=") && shared.arguments[1].contains("a,, b,security")
        );
        assert_eq!(shared.devices[1].qemu, "virtio-9p-pci,disable-legacy=on,fsdev=share1,mount_tag=share1");
        assert!(shared.devices[1].server.starts_with("server share1\n    program    virtio-9p\n"));
        assert_eq!(shared.mounts, ["9p:share:/mnt/share", "9p:share1:/b"]);
        let refusal = Shared::of(&[at("/b"), at("/b")]).unwrap_err().to_string();
        assert!(refusal.contains("/b"), "{refusal}");
        assert!(Shared::of(&[at("/1"), at("/2"), at("/3"), at("/4"), at("/5")]).is_err());
    }

    #[test]
    fn only_directories_are_shared() {
        let scratch = Scratch::new("shares").unwrap();
        let (file, missing) = (scratch.0.join("file"), scratch.0.join("missing"));
        fs::write(&file, "").unwrap();
        let refusal = |directory: &Path| {
            let share = Share { directory: directory.into(), place: "/a".into() };
            format!("{:#}", Shared::of(&[share]).unwrap_err())
        };
        assert!(refusal(&file).contains("file: it is not a directory"), "{}", refusal(&file));
        assert!(refusal(&missing).contains("missing: No such file"), "{}", refusal(&missing));
    }
}
