//! The seed of the random source that a file keeps while the system is off, so that programs get
//! random bytes without waiting for a device.
//!
//! A seed is used once: the next one is on the disk before the first is relied on, so two starts
//! never depend on the same seed alone, whenever the power fails. Two copies of a disk have the
//! same seed. What they have in addition is the clock, the processor's counter and its random
//! source, which the random source begins with.

use crate::vfs::{At, Caller, FileType, Metadata, Mode, OpenFlags, RenameHow};
use crate::{Bytes, Environment, Error, Result, UserBuffer};
use alloc::vec::Vec;
use core::fmt::{self, Arguments};

/// The file with the seed, and the one that takes its place when it is complete.
const FILE: &str = "/var/lib/random-seed";
const NEXT: &str = "/var/lib/random-seed.new";
/// The directory of both.
const DIRECTORY: &str = "/var/lib";
/// The size of a seed in bytes.
const SIZE: usize = 512;
/// The mode of the file: only the superuser can read it, or could have written it.
const MODE: Mode = Mode::new(0o600);

/// Why a seed cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unusable {
    /// It cannot be read.
    Error(Error),
    /// It is no regular file.
    NoFile,
    /// Others than the superuser can read or write it.
    Exposed,
    /// It has not the size of a seed.
    Size(u64),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Error(Error::ENOENT) => write!(f, "there is no {FILE}"),
            Unusable::Error(error) => write!(f, "{FILE} cannot be read: {error:?}"),
            Unusable::NoFile => write!(f, "{FILE} is no regular file"),
            Unusable::Exposed => write!(f, "{FILE} is not the superuser's alone (mode 0600)"),
            Unusable::Size(size) => write!(f, "{FILE} has {size} bytes, not {SIZE}"),
        }
    }
}

/// Mixes the seed that was kept into the random source, and keeps another one. If both succeed, the
/// random source is seeded. `log` is told what became of it.
pub(crate) async fn load(
    caller: &Caller<'_>,
    environment: &dyn Environment,
    log: &(dyn Fn(Arguments<'_>) + Sync),
) {
    let seed = read(caller).await;
    if let Ok(seed) = &seed {
        environment.stir(seed);
    }
    let kept = keep(caller, environment).await;
    match (seed, kept) {
        (Ok(_), Ok(())) => {
            if let Some(seeding) = environment.seeding() {
                seeding.finish();
            }
            log(format_args!("random: seeded by {FILE}"));
        }
        (Ok(_), Err(error)) => {
            log(format_args!("random: {FILE} is not relied on, since it cannot be replaced: {error:?}"));
        }
        (Err(why), kept) => {
            log(format_args!("random: no seed of an earlier start: {why}"));
            if let Err(error) = kept {
                log(format_args!("random: no seed is kept: {error:?}"));
            }
        }
    }
}

/// Keeps another seed, which is on the disk when this returns.
///
/// # Errors
/// Those of the file system; the seed that was there stays.
pub(crate) async fn keep(caller: &Caller<'_>, environment: &dyn Environment) -> Result<()> {
    let mut seed = [0; SIZE];
    environment.fill_random(&mut seed);
    // A file that was left by a start without an end.
    match caller.unlink(&At::Current, NEXT.as_bytes()).await {
        Ok(()) | Err(Error::ENOENT) => {}
        Err(error) => return Err(error),
    }
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
    let file = caller.open(&At::Current, NEXT.as_bytes(), flags, MODE).await?;
    let written = async {
        let mut bytes = Bytes::of(&seed);
        while bytes.remaining() > 0 {
            file.write(caller, &mut bytes).await?;
        }
        file.synchronize().await?;
        let (next, name) = (NEXT.as_bytes(), FILE.as_bytes());
        caller.rename(&At::Current, next, &At::Current, name, RenameHow::Replace).await
    };
    if let Err(error) = written.await {
        // The error of the write is the one that matters.
        let _ = caller.unlink(&At::Current, NEXT.as_bytes()).await;
        return Err(error);
    }
    let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
    caller.open(&At::Current, DIRECTORY.as_bytes(), flags, Mode::empty()).await?.synchronize().await
}

/// The seed that was kept.
async fn read(caller: &Caller<'_>) -> Result<Vec<u8>, Unusable> {
    // Only a regular file is opened: others might wait. No program runs that could exchange it.
    let flags = OpenFlags::READ | OpenFlags::NO_FOLLOW | OpenFlags::NO_ACCESS_TIME;
    let metadata = caller.status(&At::Current, FILE.as_bytes(), false, false).await;
    check(&metadata.map_err(Unusable::Error)?)?;
    let file = caller.open(&At::Current, FILE.as_bytes(), flags, Mode::empty()).await;
    let file = file.map_err(Unusable::Error)?;
    let mut bytes = Bytes::empty(SIZE);
    while bytes.remaining() > 0 {
        if file.read(caller, &mut bytes).await.map_err(Unusable::Error)? == 0 {
            return Err(Unusable::Size(bytes.transferred() as u64));
        }
    }
    Ok(bytes.done().to_vec())
}

fn check(metadata: &Metadata) -> Result<(), Unusable> {
    if metadata.file_type != FileType::Regular {
        return Err(Unusable::NoFile);
    }
    if metadata.user != 0 || metadata.mode != MODE {
        return Err(Unusable::Exposed);
    }
    if metadata.size != SIZE as u64 {
        return Err(Unusable::Size(metadata.size));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
