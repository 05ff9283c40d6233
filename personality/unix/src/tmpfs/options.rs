//! Mount options of tmpfs (tmpfs(5)).

use crate::vfs::{Mode, PAGE_SIZE};
use crate::{Error, Result};

/// The options with which a tmpfs is made.
#[derive(Clone, Debug)]
pub struct TmpfsOptions {
    /// The name of the file-system type: "tmpfs", "devtmpfs", "rootfs".
    pub kind: &'static str,
    /// The most pages that the files may have.
    pub pages: u64,
    /// The most files that the file system may have.
    pub files: u64,
    /// How many pages the machine has; sizes in percent refer to this.
    pub memory_pages: u64,
    /// The mode of the root directory.
    pub mode: Mode,
    /// The owner of the root directory.
    pub user: u32,
    /// The group of the root directory.
    pub group: u32,
}

impl TmpfsOptions {
    /// The default options for a machine with `pages` pages of memory: half of them for contents,
    /// and as many files.
    pub fn for_memory(pages: u64) -> TmpfsOptions {
        let half = pages / 2;
        TmpfsOptions {
            kind: "tmpfs",
            pages: half,
            files: half,
            memory_pages: pages,
            mode: Mode::new(0o1777),
            user: 0,
            group: 0,
        }
    }

    /// These options changed by a comma-separated list: size, nr_blocks, nr_inodes, mode, uid, gid.
    /// Sizes may end in k, m, g or %; 0 means no limit. `EINVAL` for anything else.
    pub fn parse(mut self, text: &[u8], memory_pages: u64) -> Result<TmpfsOptions> {
        let text = core::str::from_utf8(text).map_err(|_| Error::EINVAL)?;
        for option in text.split(',').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or(Error::EINVAL)?;
            match name {
                "size" => {
                    self.pages = match value.strip_suffix('%') {
                        Some(percent) => memory_pages.saturating_mul(number(percent, 10)?) / 100,
                        None => unlimited(amount(value)?.div_ceil(PAGE_SIZE as u64)),
                    }
                }
                "nr_blocks" => self.pages = unlimited(amount(value)?),
                "nr_inodes" => self.files = unlimited(amount(value)?),
                "mode" => {
                    let mode = number(value, 8)?;
                    self.mode = Mode::new((mode & 0o7777) as u16);
                }
                "uid" => self.user = number(value, 10)?.try_into().map_err(|_| Error::EINVAL)?,
                "gid" => self.group = number(value, 10)?.try_into().map_err(|_| Error::EINVAL)?,
                _ => return Err(Error::EINVAL),
            }
        }
        Ok(self)
    }
}

fn unlimited(amount: u64) -> u64 {
    if amount == 0 { u64::MAX / PAGE_SIZE as u64 } else { amount }
}

fn number(text: &str, radix: u32) -> Result<u64> {
    u64::from_str_radix(text, radix).map_err(|_| Error::EINVAL)
}

fn amount(text: &str) -> Result<u64> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    number(digits, 10)?.checked_mul(1 << shift).ok_or(Error::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_strictly() {
        let parse = |text: &str| TmpfsOptions::for_memory(1000).parse(text.as_bytes(), 1000);
        let options = parse("size=10m,nr_inodes=1k,mode=755,uid=1,gid=2").unwrap();
        assert_eq!((options.pages, options.files, options.mode.bits()), (2560, 1024, 0o755));
        assert_eq!((options.user, options.group), (1, 2));
        assert_eq!(parse("size=25%").unwrap().pages, 250);
        assert_eq!(parse("size=1").unwrap().pages, 1);
        assert!(parse("size=0").unwrap().pages > 1 << 50);
        assert_eq!(parse("").unwrap().pages, 500);
        for bad in ["size", "size=x", "size=99999999999g", "colour=red", "mode=9", "uid=-1"] {
            assert_eq!(parse(bad).err(), Some(Error::EINVAL), "{bad}");
        }
    }
}
